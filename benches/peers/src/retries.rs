//! Three failures, then success, with a sleep that is ready at once: what a retry costs.

use std::hint::black_box;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use relent::rng::{Rng, SeededRng};
use relent::{Policy, retry};
use tower::{Service, service_fn};

use crate::first::{BASE, CAP, NoSleeper, TowerPolicy, backoff_policy, contender};
use crate::operation::{Busy, Operation, fails_thrice, no_sleep, poll};
use crate::{Calls, Contender, Group, Side, repeat};

const POLICY: Policy = Policy::exponential(BASE).max_attempts(4);
static SHARED: Policy = POLICY;

/// The settings of the loop by hand, as they come from a configuration: unknown to the compiler.
pub struct Settings {
    base_ms: f64,
    factor: f64,
    cap_ms: f64,
    max_attempts: u32,
}

pub static SETTINGS: Settings = Settings { base_ms: 100.0, factor: 2.0, cap_ms: 30_000.0, max_attempts: 4 };

/// The policy's steps by hand: grow, cap, jitter, clamp, floor, round.
pub async fn by_hand<R: Rng, S: Future<Output = ()>>(
    settings: &Settings,
    mut rng: R,
    x: u64,
    sleep: impl Fn(Duration) -> S,
) -> Result<u64, Busy> {
    let (mut attempt, mut grown) = (1, settings.base_ms);
    loop {
        match fails_thrice::<Busy>(attempt, x).await {
            Ok(value) => return Ok(value),
            Err(error) if attempt == settings.max_attempts => return Err(error),
            Err(_) => {
                let nominal = grown.min(settings.cap_ms);
                let drawn = 0.5 * nominal + rng.next_f64() * (0.5 * nominal);
                let delay = drawn.min(settings.cap_ms).max(0.0);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the cap")]
                sleep(Duration::from_millis((delay + 0.5) as u64)).await;
            }
        }
        attempt += 1;
        grown *= settings.factor;
    }
}

/// A closure that counts its attempts, for drivers that do not tell.
fn counting<E>(x: u64) -> impl FnMut() -> Operation<E> {
    let mut attempt = 0;
    move || {
        attempt += 1;
        fails_thrice(attempt, x)
    }
}

fn backon_policy() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(BASE).with_max_delay(CAP).with_max_times(3)
}

fn tower_call() -> Calls {
    repeat(|x| {
        let mut attempt = 0;
        let operation = move |x| {
            attempt += 1;
            fails_thrice::<Busy>(attempt, x)
        };
        // The attempts share the count only through a clone that tower makes for each call.
        let shared = std::cell::RefCell::new(operation);
        let service = service_fn(|x| (shared.borrow_mut())(x));
        let mut service = tower::retry::Retry::new(TowerPolicy { left: 3, sleep: no_sleep }, service);
        let _ = black_box(poll(service.call(x)));
    })
}

pub fn group() -> Group {
    let contenders = vec![
        contender!("by hand: the same arithmetic", Floor, |x| {
            by_hand(black_box(&SETTINGS), SeededRng::new(x), x, no_sleep)
        }),
        contender!("relent: by value, `SeededRng`", Relent, |x| {
            retry(move |attempt| fails_thrice::<Busy>(attempt.number(), x), POLICY)
                .sleep(no_sleep)
                .rng(SeededRng::new(x))
        }),
        contender!("relent: by reference, `SeededRng`", Relent, |x| {
            retry(move |attempt| fails_thrice::<Busy>(attempt.number(), x), black_box(&SHARED))
                .sleep(no_sleep)
                .rng(SeededRng::new(x))
        }),
        contender!("relent: by reference, default generator", Relent, |x| {
            retry(move |attempt| fails_thrice::<Busy>(attempt.number(), x), black_box(&SHARED)).sleep(no_sleep)
        }),
        contender!("backon", Peer, |x| counting::<Busy>(x).retry(backon_policy().with_jitter()).sleep(no_sleep)),
        contender!("backon: no jitter", Peer, |x| counting::<Busy>(x).retry(backon_policy()).sleep(no_sleep)),
        contender!("backoff", Peer, |x| {
            let op = counting::<backoff::Error<Busy>>(x);
            backoff::future::Retry::new(NoSleeper, backoff_policy(), |_, _| {}, op)
        }),
        Contender { name: "tower: no delay computed", side: Side::Peer, size: None, make: tower_call },
    ];
    Group {
        name: "retries",
        title: "Three failures, then success; no-op sleep, jitter on: the whole call",
        per_call: 1,
        contenders,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// The floor computes what it is a floor for.
    #[test]
    fn the_loop_by_hand_waits_as_the_policy_does() {
        for seed in 0..10_000 {
            let waits = RefCell::new(Vec::new());
            let sleep = |wait| {
                waits.borrow_mut().push(wait);
                std::future::ready(())
            };
            assert_eq!(poll(by_hand(&SETTINGS, SeededRng::new(seed), 7, sleep)), Ok(7));
            assert_eq!(waits.into_inner(), POLICY.delays(SeededRng::new(seed)).take(3).collect::<Vec<_>>());
        }
    }
}
