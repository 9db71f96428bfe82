//! A policy that workers in Node follow.

use std::time::Duration;

use relent::policy::StatefulJitter;
use relent::queue::bullmq_backoff_strategy;
use relent::rng::DefaultRng;
use relent::{Jitter, Policy};

/// The policy of the jobs in `record.mjs`.
pub const POLICY: Policy = Policy::exponential(Duration::from_millis(250)).jitter(Jitter::None);

/// What a backoff strategy in Node returns for `attemptsMade` of 1, 2, 3, …, in milliseconds.
///
/// A policy without jitter is a table, so this is all that a worker in another language needs of it.
///
/// # Errors
///
/// [`StatefulJitter`] if the jitter is decorrelated.
pub fn delays(policy: Policy) -> Result<Vec<u128>, StatefulJitter> {
    let strategy = bullmq_backoff_strategy(policy)?;
    Ok((1..policy.attempts()).map(|attempts_made| strategy.delay(attempts_made, &mut DefaultRng).as_millis()).collect())
}
