//! A worker: claims a row, publishes it, settles the claim, for ever.

use std::net::SocketAddr;
use std::time::Duration;

use drill_kit::{BoxError, publish};
use relent::queue::{DeadLetterReason, Disposition, Verdict, disposition};
use relent::rng::DefaultRng;
use relent::{Jitter, Policy, is_final_attempt, retry};
use tokio::time::{sleep, timeout};

use crate::outbox::{Claim, Outbox, Outcome, is_lost};

/// A minute of this demonstration. In earnest it has 60 s.
pub const MINUTE: Duration = Duration::from_millis(60);

/// When a row is tried again: after 1, 2, 3, … minutes. The table holds the wait, so no worker sleeps through it.
pub const COOLDOWN: Policy = Policy::linear(MINUTE).max_attempts(8);

/// How long a claim lasts. It outlives an attempt and the time until a lost database is back.
const LEASE: Duration = Duration::from_secs(12);
const LONGEST_ATTEMPT: Duration = Duration::from_secs(8);

/// How a worker waits for a database that is gone. This wait is its own: no row is involved, no attempt is spent.
pub const RECONNECT: Policy = Policy::exponential(Duration::from_millis(50))
    .max_delay(Duration::from_millis(500))
    .jitter(Jitter::Full)
    .unbounded();

const NOTHING_DUE: Duration = Duration::from_millis(20);

pub async fn work(name: &str, database: SocketAddr, sink: SocketAddr) -> Result<(), BoxError> {
    let outbox = Outbox::at(database);
    loop {
        let claim = retry(|_| outbox.claim(LEASE), RECONNECT).when(is_lost).await?;
        let Some(claim) = claim else {
            sleep(NOTHING_DUE).await;
            continue;
        };
        let outcome = attempt(name, &claim, sink).await?;
        retry(|_| outbox.settle(&claim, &outcome), RECONNECT).when(is_lost).await?;
    }
}

async fn attempt(name: &str, claim: &Claim, sink: SocketAddr) -> Result<Outcome, BoxError> {
    // A worker that dies settles nothing. So the attempts may be used up without anybody having said so.
    if is_final_attempt(claim.attempts - 1, COOLDOWN.attempts()) {
        return Ok(Outcome::Dead { error: format!("{}: the last worker did not report", DeadLetterReason::Exhausted) });
    }
    let published = match timeout(LONGEST_ATTEMPT, publish(sink, name, &claim.payload)).await {
        Ok(published) => published,
        Err(elapsed) => Err(elapsed.into()),
    };
    match published {
        Ok(()) => Ok(Outcome::Published),
        Err(error) => after_failure(claim.attempts, &error),
    }
}

fn after_failure(attempts: u32, error: &BoxError) -> Result<Outcome, BoxError> {
    Ok(match disposition(COOLDOWN, attempts, Verdict::of(error), &mut DefaultRng)? {
        Disposition::Retry(delay) => Outcome::Retry { delay, error: error.to_string() },
        Disposition::DeadLetter(reason) => Outcome::Dead { error: format!("{reason}: {error}") },
    })
}

#[cfg(test)]
mod tests {
    use relent::NonRetryableError;

    use super::*;

    /// The first wait is the base: a counter that was read one step too late would make it two minutes.
    #[test]
    fn a_row_cools_down_for_one_minute_then_two_then_three() {
        let waits = [1, 2, 3].map(|attempts| after_failure(attempts, &"down".into()).unwrap());
        let retry = |minutes| Outcome::Retry { delay: minutes * MINUTE, error: "down".into() };
        assert_eq!(waits, [retry(1), retry(2), retry(3)]);
    }

    #[test]
    fn the_last_attempt_leaves_the_row_dead_with_its_error() {
        assert!(matches!(after_failure(7, &"down".into()).unwrap(), Outcome::Retry { .. }));
        assert_eq!(after_failure(8, &"down".into()).unwrap(), Outcome::Dead { error: "attempts used up: down".into() });
    }

    #[test]
    fn a_permanent_failure_is_dead_on_its_first_attempt() {
        let error = NonRetryableError::new("malformed").into();
        let Outcome::Dead { error } = after_failure(1, &error).unwrap() else { panic!("it is tried again") };
        assert!(error.starts_with("permanent failure: ") && error.ends_with("malformed"), "{error}");
    }
}
