//! The first attempt succeeds: what a driver costs when nothing fails.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use relent::{Policy, retry};
use tower::{Service, service_fn};

use crate::operation::{Busy, Operation, no_sleep, poll, succeeds};
use crate::{Calls, Contender, Group, Side, repeat};

pub const BASE: Duration = Duration::from_millis(100);
pub const CAP: Duration = Duration::from_secs(30);

const POLICY: Policy = Policy::exponential(BASE).max_attempts(4);
static SHARED: Policy = POLICY;

/// A loop by hand: four attempts, doubling up to a cap.
async fn by_hand<S: Future<Output = ()>>(x: u64, sleep: impl Fn(Duration) -> S) -> Result<u64, Busy> {
    let (mut attempt, mut delay) = (1, BASE);
    loop {
        match succeeds::<Busy>(x).await {
            Ok(value) => return Ok(value),
            Err(error) if attempt == 4 => return Err(error),
            Err(_) => sleep(delay).await,
        }
        attempt += 1;
        delay = (delay * 2).min(CAP);
    }
}

pub fn backoff_policy() -> backoff::ExponentialBackoff {
    backoff::ExponentialBackoffBuilder::new()
        .with_initial_interval(BASE)
        .with_multiplier(2.0)
        .with_max_interval(CAP)
        .build()
}

pub struct NoSleeper;

impl backoff::future::Sleeper for NoSleeper {
    type Sleep = std::future::Ready<()>;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        no_sleep(duration)
    }
}

/// What a user of tower writes: how often, and how to wait.
#[derive(Clone)]
pub struct TowerPolicy<S> {
    pub left: u32,
    pub sleep: S,
}

impl<S: Fn(Duration) -> F, F: Future<Output = ()>> tower::retry::Policy<u64, u64, Busy> for TowerPolicy<S> {
    type Future = F;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, Busy>) -> Option<F> {
        if result.is_ok() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some((self.sleep)(Duration::ZERO))
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

fn tower<S, F>(sleep: S) -> impl Service<u64, Response = u64, Error = Busy>
where
    S: Fn(Duration) -> F + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    tower::retry::Retry::new(TowerPolicy { left: 3, sleep }, service_fn(succeeds::<Busy>))
}

/// A contender that makes one future for a call.
macro_rules! contender {
    ($name:literal, $side:ident, |$x:ident| $future:expr) => {{
        fn size<T: Future>(make: impl FnOnce(u64) -> T) -> usize {
            std::mem::size_of_val(&make(7))
        }
        fn make() -> Calls {
            repeat(|$x| {
                let _ = std::hint::black_box(poll($future));
            })
        }
        Contender { name: $name, side: Side::$side, size: Some(size(|$x| $future)), make }
    }};
}
pub(crate) use contender;

fn backon_policy() -> ExponentialBuilder {
    ExponentialBuilder::new().with_min_delay(BASE).with_max_delay(CAP).with_max_times(3)
}

pub fn group() -> Group {
    let contenders = vec![
        contender!("direct call", Floor, |x| succeeds::<Busy>(x)),
        contender!("by hand: loop, no-op sleep", Floor, |x| by_hand(x, no_sleep)),
        contender!("by hand: loop, tokio sleep", Floor, |x| by_hand(x, tokio::time::sleep)),
        contender!("relent: by value, no-op sleep", Relent, |x| {
            retry(move |_| succeeds::<Busy>(x), POLICY).sleep(no_sleep)
        }),
        contender!("relent: by reference, no-op sleep", Relent, |x| {
            retry(move |_| succeeds::<Busy>(x), &SHARED).sleep(no_sleep)
        }),
        contender!("relent: by value, `SystemClock`", Relent, |x| retry(move |_| succeeds::<Busy>(x), POLICY)),
        contender!("relent: by reference, `SystemClock`", Relent, |x| retry(move |_| succeeds::<Busy>(x), &SHARED)),
        contender!("backon: no-op sleep", Peer, |x| {
            (move || succeeds::<Busy>(x)).retry(backon_policy()).sleep(no_sleep)
        }),
        contender!("backon: tokio sleep", Peer, |x| (move || succeeds::<Busy>(x)).retry(backon_policy())),
        contender!("tokio-retry", Peer, |x| {
            let delays = tokio_retry::strategy::ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP).take(3);
            tokio_retry::Retry::start(delays, move || succeeds::<Busy>(x))
        }),
        contender!("tokio-retry2", Peer, |x| {
            let delays = tokio_retry2::strategy::ExponentialFactorBackoff::from_millis(100, 2.0).max_delay(CAP).take(3);
            tokio_retry2::Retry::spawn(delays, move || succeeds::<tokio_retry2::RetryError<Busy>>(x))
        }),
        contender!("backoff: no-op sleep", Peer, |x| {
            let op = move || -> Operation<backoff::Error<Busy>> { succeeds(x) };
            backoff::future::Retry::new(NoSleeper, backoff_policy(), |_, _| {}, op)
        }),
        contender!("backoff: tokio sleep", Peer, |x| {
            backoff::future::retry(backoff_policy(), move || succeeds::<backoff::Error<Busy>>(x))
        }),
        contender!("tryhard", Peer, |x| {
            tryhard::retry_fn(move || succeeds::<Busy>(x)).retries(3).exponential_backoff(BASE).max_delay(CAP)
        }),
        Contender {
            make: || tower_call(no_sleep),
            ..contender!("tower: no-op sleep", Peer, |x| tower(no_sleep).call(x))
        },
        Contender {
            make: || tower_call(tokio::time::sleep),
            ..contender!("tower: tokio sleep", Peer, |x| tower(tokio::time::sleep).call(x))
        },
    ];
    Group { name: "first", title: "The first attempt succeeds", per_call: 1, contenders }
}

/// A service is built once and called often.
fn tower_call<S, F>(sleep: S) -> Calls
where
    S: Fn(Duration) -> F + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    let mut service = tower(sleep);
    repeat(move |x| {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(service.poll_ready(&mut cx).is_ready());
        let _ = std::hint::black_box(poll(service.call(x)));
    })
}
