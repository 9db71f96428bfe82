//! A worker: takes a delivery, publishes it, settles it, for ever.

use std::net::SocketAddr;
use std::time::Duration;

use drill_kit::{BoxError, publish};
use relent::error::Signs;
use relent::queue::{DeadLetterReason, Disposition, Verdict, disposition};
use relent::rng::{DefaultRng, Rng};
use relent::{Jitter, Policy, is_final_attempt, retry};
use tokio::time::{sleep, timeout};

use crate::queue::{Delivery, LEASE, Outcome, Queue, is_lost};

/// When a message is delivered again. Redis holds the wait, so no worker sleeps through it.
pub const POLICY: Policy =
    Policy::exponential(Duration::from_millis(100)).max_delay(Duration::from_secs(1)).max_attempts(5);

const _: () = assert!(
    POLICY.cap().unwrap().as_millis() < LEASE.as_millis(),
    "a wait is a part of the lease, so it cannot be longer"
);

const LONGEST_ATTEMPT: Duration = Duration::from_secs(8);

/// How a worker waits for a Redis that is gone. This wait is its own: no message is involved, no attempt is spent.
pub const RECONNECT: Policy = Policy::exponential(Duration::from_millis(50))
    .max_delay(Duration::from_millis(500))
    .jitter(Jitter::Full)
    .unbounded();

const NOTHING_DUE: Duration = Duration::from_millis(20);

pub async fn work(name: &str, server: SocketAddr, sink: SocketAddr) -> Result<(), BoxError> {
    let queue = Queue::at(server, name)?;
    loop {
        let delivery = retry(|_| queue.next(), RECONNECT).when(is_lost).await?;
        let Some(delivery) = delivery else {
            sleep(NOTHING_DUE).await;
            continue;
        };
        let outcome = attempt(name, &delivery, sink).await?;
        retry(|_| queue.settle(&delivery, &outcome), RECONNECT).when(is_lost).await?;
    }
}

async fn attempt(name: &str, delivery: &Delivery, sink: SocketAddr) -> Result<Outcome, BoxError> {
    // A worker that dies settles nothing. So the attempts may be used up without anybody having said so.
    if is_final_attempt(delivery.deliveries - 1, POLICY.attempts()) {
        return Ok(Outcome::Dead { error: format!("{}: the last worker did not report", DeadLetterReason::Exhausted) });
    }
    let published = match timeout(LONGEST_ATTEMPT, publish(sink, name, &delivery.payload)).await {
        Ok(published) => published,
        Err(elapsed) => Err(elapsed.into()),
    };
    match published {
        Ok(()) => Ok(Outcome::Published),
        Err(error) => after_failure(delivery.deliveries, &error),
    }
}

fn after_failure(deliveries: u32, error: &BoxError) -> Result<Outcome, BoxError> {
    let signs = Signs::of(error.as_ref());
    if signs.not_executed() {
        // The message never left, so this was no attempt of it, and an outage kills no message however long it lasts.
        let delay = POLICY.delay_after(deliveries, DefaultRng.next_f64())?;
        return Ok(Outcome::Retry { delay, spent: deliveries - 1 });
    }
    Ok(match disposition(POLICY, deliveries, Verdict::from(signs), &mut DefaultRng)? {
        Disposition::Retry(delay) => Outcome::Retry { delay, spent: deliveries },
        Disposition::DeadLetter(reason) => Outcome::Dead { error: format!("{reason}: {error}") },
    })
}

#[cfg(test)]
mod tests {
    use relent::NonRetryableError;
    use relent::error::NotExecuted;

    use super::*;

    #[test]
    fn a_failure_spends_the_attempt_and_waits_as_the_policy_says() {
        for deliveries in 1..5 {
            let Outcome::Retry { delay, spent } = after_failure(deliveries, &"busy".into()).unwrap() else {
                panic!("dead after {deliveries} deliveries")
            };
            let (shortest, longest) = POLICY.bounds_after(deliveries);
            assert!((shortest..=longest).contains(&delay) && spent == deliveries, "{delay:?}, {spent} spent");
        }
        assert_eq!(after_failure(5, &"busy".into()).unwrap(), Outcome::Dead { error: "attempts used up: busy".into() });
    }

    #[test]
    fn an_unreachable_sink_spends_nothing_even_at_the_last_attempt() {
        for deliveries in [1, 5] {
            let error = NotExecuted::new("connection refused").into();
            let outcome = after_failure(deliveries, &error).unwrap();
            assert!(matches!(outcome, Outcome::Retry { spent, .. } if spent == deliveries - 1), "{outcome:?}");
        }
    }

    #[test]
    fn poison_is_dead_on_its_first_attempt() {
        let error = NonRetryableError::new("malformed").into();
        let Outcome::Dead { error } = after_failure(1, &error).unwrap() else { panic!("it is tried again") };
        assert!(error.starts_with("permanent failure: ") && error.ends_with("malformed"), "{error}");
    }
}
