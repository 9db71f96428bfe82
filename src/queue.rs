//! Queues: the broker holds the wait, this crate says how long it is and which attempt was the last.
//!
//! A worker that sleeps between attempts holds its lease, its thread and its connection, and what it waits for is lost
//! if it dies. Let the broker hold a wait that is longer than a second or two: a visibility timeout, a delayed job, a
//! row that is due later. What then remains to be decided after a failure is one call, [`disposition`]:
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use std::{io, time::Duration};
//! use relent::queue::{Disposition, Verdict, disposition};
//! use relent::rng::FixedRng;
//! use relent::{NonRetryableError, Policy};
//!
//! const POLICY: Policy = Policy::exponential(Duration::from_secs(10)).max_attempts(5);
//!
//! fn failed(error: &io::Error, deliveries: u32) -> String {
//!     let mut rng = FixedRng::new(0.5); // in a service, `DefaultRng`
//!     match disposition(POLICY, deliveries, Verdict::of(error), &mut rng) {
//!         Ok(Disposition::Retry(delay)) => format!("deliver again in {delay:?}"),
//!         Ok(Disposition::DeadLetter(reason)) => format!("dead letter, {reason}: {error}"),
//!         Err(stateful) => panic!("the policy is not one for queues: {stateful}"),
//!     }
//! }
//!
//! let reset = io::Error::other("reset");
//! let malformed = io::Error::other(NonRetryableError::new("malformed"));
//! assert_eq!(failed(&reset, 1), "deliver again in 7.5s");
//! assert_eq!(failed(&reset, 5), "dead letter, attempts used up: reset");
//! assert_eq!(failed(&malformed, 1), "dead letter, permanent failure: malformed");
//! # }
//! ```
//!
//! # Attempts started, attempts finished
//!
//! Every counter of a queue counts one or the other, and to take one for the other is one attempt too many or one
//! doubling too early. `max_attempts` is all attempts, the first included.
//!
//! | | its count |
//! |---|---|
//! | [`is_final_attempt`] | attempts **started**: the number of the one in hand |
//! | [`is_final_attempt_from_attempts_made`][made] | attempts **finished** before the one in hand |
//! | [`disposition`], [`next_attempt_at`] | attempts **finished**, the one that just failed included |
//! | [`bullmq_backoff_strategy`]'s callback | attempts **finished**, the one that just failed included |
//! | [`sqs_visibility_timeout`] | attempts **started**, the one in hand included (`ApproximateReceiveCount`) |
//!
//! When an attempt has just failed, it has both started and finished: a count that includes it is the same either way,
//! unless a worker died. **An attempt that a dead worker left behind was started and never finished.** So where the
//! broker counts deliveries, give it those: a crash then counts as an attempt. And look before the attempt as well,
//! for a message that kills its workers reaches no `disposition`:
//! `is_final_attempt(deliveries.saturating_sub(1), max_attempts)`, of deliveries counted from 1, says that the attempts
//! were used up before this one. The same check on starts ends a message that is forever postponed and never fails.
//!
//! # BullMQ
//!
//! Its `attemptsMade` means different things in different places. Measured with 3 attempts that all fail:
//!
//! | version | in the processor | in the backoff callback | in the `failed` event |
//! |---|---|---|---|
//! | 6.7 and 5.81 | 0, 1, 2 | 1, 2 | 1, 2, 3 |
//! | 4.18 and 3.16 | 1, 2, 3 | 1, 2 | 1, 2, 3 |
//!
//! So inside a processor of version 5 or 6 use [`is_final_attempt_from_attempts_made`][made], and after a failure give
//! [`disposition`] `attempts_made + 1`. In a `failed` handler, and in a processor of version 3 or 4, use
//! [`is_final_attempt`], and give [`disposition`] the number as it is. A job without `attempts` is tried once there,
//! whatever its backoff; a [`Policy`] makes 3 attempts unless told otherwise.
//!
//! # What a count cannot tell
//!
//! These functions keep nothing from one failure to the next. [`Jitter::Decorrelated`] needs the delay before, so all
//! of them refuse it with [`StatefulJitter`], whatever the count. And no count tells how old a message is, so a
//! policy's `max_elapsed` is not looked at: leave the age limit to the broker.
//!
//! [made]: crate::is_final_attempt_from_attempts_made
#![allow(clippy::doc_markdown, reason = "BullMQ is a name")]

use core::borrow::Borrow;
use core::fmt;
use core::time::Duration;

use crate::attempt::is_final_attempt;
use crate::decision::{ends, raised};
use crate::error::{AsError, Signs};
use crate::policy::{Jitter, Policy, StatefulJitter};
use crate::rng::Rng;

/// What a consumer thinks of a failure.
///
/// ```
/// use core::time::Duration;
/// use relent::queue::Verdict;
///
/// let of_status = |status| match status {
///     503 => Verdict::RetryAfter(Duration::from_secs(30)),
///     500.. => Verdict::Transient,
///     _ => Verdict::Permanent,
/// };
/// assert_eq!(of_status(400), Verdict::Permanent);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass by itself.
    Transient,
    /// It may pass by itself, but not before this time is over: a server's `Retry-After`.
    ///
    /// There is no ceiling on it, as there is in a run, because nobody sits through it. Cut one that you do not trust:
    /// `RetryAfter(hint.min(HOUR))`. [`Policy::MAX_DELAY`] or more means never, and counts as permanent.
    RetryAfter(Duration),
    /// No further attempt can cure it.
    Permanent,
}

impl Verdict {
    /// What the markers in the chain of `error` say: a [`NonRetryableError`](crate::error) makes it permanent, else
    /// a hint makes it [`RetryAfter`](Self::RetryAfter), else it is transient; so is the refusal of a breaker that is
    /// forced open, which says nothing about the message.
    ///
    /// For a `&dyn Error`, say `Verdict::from(Signs::of(error))`.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use core::time::Duration;
    /// use relent::NonRetryableError;
    /// use relent::error::RetryAfterError;
    /// use relent::queue::Verdict;
    ///
    /// assert_eq!(Verdict::of(&"connection lost"), Verdict::Transient);
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(Verdict::of(&RetryAfterError::new("busy", minute)), Verdict::RetryAfter(minute));
    /// assert_eq!(Verdict::of(&NonRetryableError::new("malformed")), Verdict::Permanent);
    /// # }
    /// ```
    #[must_use]
    pub fn of<E: AsError<K> + ?Sized, K>(error: &E) -> Self {
        error.as_error().map_or(Self::Transient, |error| Signs::of(error).into())
    }
}

impl From<Signs> for Verdict {
    fn from(signs: Signs) -> Self {
        match signs.retry_after() {
            _ if signs.not_retryable() => Self::Permanent,
            Some(Duration::MAX) if signs.refused() => Self::Transient,
            hint => hint.map_or(Self::Transient, Self::RetryAfter),
        }
    }
}

/// What to do with a message whose attempt has failed.
///
/// ```
/// use core::time::Duration;
/// use relent::Policy;
/// use relent::queue::{DeadLetterReason, Disposition, Verdict, disposition};
/// use relent::rng::FixedRng;
///
/// let policy = Policy::fixed(Duration::from_secs(60)).max_attempts(2);
/// let mut rng = FixedRng::new(0.5);
/// let mut after = |finished| disposition(policy, finished, Verdict::Transient, &mut rng);
/// assert_eq!(after(1)?, Disposition::Retry(Duration::from_secs(60)));
/// assert_eq!(after(2)?, Disposition::DeadLetter(DeadLetterReason::Exhausted));
/// # Ok::<(), relent::policy::StatefulJitter>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the broker has to be told what becomes of the message"]
pub enum Disposition {
    /// Deliver it again after this delay.
    Retry(Duration),
    /// Put it where the dead letters are, and try it no more.
    DeadLetter(DeadLetterReason),
}

/// Why a message is a dead letter. `Display` gives a text to keep beside it.
///
/// ```
/// use relent::queue::DeadLetterReason;
///
/// assert_eq!(DeadLetterReason::Exhausted.to_string(), "attempts used up");
/// assert_eq!(DeadLetterReason::Permanent.to_string(), "permanent failure");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// Its attempts are used up.
    Exhausted,
    /// The failure was permanent, on whichever attempt.
    Permanent,
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exhausted => "attempts used up",
            Self::Permanent => "permanent failure",
        })
    }
}

/// What becomes of a message after a failed attempt: the one call that a consumer needs.
///
/// `finished` counts the attempts that have **finished**, the one that just failed included: 1 after the first. Where
/// the broker counts deliveries, give it the deliveries. After 0 the delay is zero.
///
/// A permanent failure is a dead letter on its first attempt. With a hint, the delay is what a run would wait: never
/// shorter than the hint, and as spread out as the policy's own delays. A delay of [`Policy::MAX_DELAY`] or more never
/// ends: of a hint that counts as permanent, of the policy as used up. Takes one draw, and none without jitter.
///
/// # Errors
///
/// [`StatefulJitter`] if the jitter is decorrelated.
///
/// ```
/// use core::time::Duration;
/// use relent::queue::{DeadLetterReason, Disposition, Verdict, disposition};
/// use relent::rng::FixedRng;
/// use relent::{Jitter, Policy};
///
/// const POLICY: Policy =
///     Policy::exponential(Duration::from_secs(10)).jitter(Jitter::None).max_attempts(3);
/// let after = |finished, verdict| disposition(POLICY, finished, verdict, &mut FixedRng::new(0.5));
/// let seconds = Duration::from_secs;
///
/// assert_eq!(after(1, Verdict::Transient)?, Disposition::Retry(seconds(10)));
/// assert_eq!(after(2, Verdict::RetryAfter(seconds(60)))?, Disposition::Retry(seconds(60)));
/// assert_eq!(after(3, Verdict::Transient)?, Disposition::DeadLetter(DeadLetterReason::Exhausted));
/// assert_eq!(after(1, Verdict::Permanent)?, Disposition::DeadLetter(DeadLetterReason::Permanent));
/// # Ok::<(), relent::policy::StatefulJitter>(())
/// ```
pub fn disposition(
    policy: impl Borrow<Policy>,
    finished: u32,
    verdict: Verdict,
    rng: &mut dyn Rng,
) -> Result<Disposition, StatefulJitter> {
    let policy = policy.borrow();
    let computed = drawn(policy, finished, rng)?;
    let delay = match verdict {
        Verdict::Permanent => return Ok(Disposition::DeadLetter(DeadLetterReason::Permanent)),
        Verdict::Transient => computed,
        Verdict::RetryAfter(hint) => raised(computed, policy.bounds_after(finished).0, hint),
    };
    Ok(if !ends(delay) && ends(computed) {
        Disposition::DeadLetter(DeadLetterReason::Permanent)
    } else if !ends(computed) || is_final_attempt(finished, policy.attempts()) {
        Disposition::DeadLetter(DeadLetterReason::Exhausted)
    } else {
        Disposition::Retry(delay)
    })
}

/// When the next attempt is due, for a scheduler that keeps points in time: a column `next_attempt_at`, the score of a
/// sorted set.
///
/// `finished` counts the attempts that have **finished**, the one that just failed included. `now` and the result are
/// counted from the same origin, usually 1970 (`transient::unix_now`); the sum saturates. Whether there is a next
/// attempt is for [`disposition`] to say, and `now.saturating_add(delay)` is when its delay ends. Give the policy a
/// cap: without one, growth can exceed what a column holds.
///
/// `Policy::linear(60 s)` is the cooldown of an outbox table, 60, 120, 180 s:
///
/// ```
/// use core::time::Duration;
/// use relent::Policy;
/// use relent::queue::next_attempt_at;
/// use relent::rng::FixedRng;
///
/// const COOLDOWN: Policy = Policy::linear(Duration::from_secs(60)).max_attempts(8);
/// // as `relent::transient::unix_now()` gives it
/// let now = Duration::from_millis(1_700_000_000_250);
/// let due = |finished| next_attempt_at(now, COOLDOWN, finished, &mut FixedRng::new(0.5)).unwrap();
/// let millis = [1, 2, 3].map(|finished| due(finished).as_millis());
/// assert_eq!(millis, [1_700_000_060_250, 1_700_000_120_250, 1_700_000_180_250]);
///
/// # #[cfg(feature = "std")]
/// let timestamp = std::time::UNIX_EPOCH + due(1); // a `SystemTime`
/// ```
///
/// # Errors
///
/// [`StatefulJitter`] if the jitter is decorrelated.
pub fn next_attempt_at(
    now: Duration,
    policy: impl Borrow<Policy>,
    finished: u32,
    rng: &mut dyn Rng,
) -> Result<Duration, StatefulJitter> {
    Ok(now.saturating_add(drawn(policy.borrow(), finished, rng)?))
}

/// A custom backoff strategy for BullMQ: from the callback's `attemptsMade` to the delay.
///
/// The strategy has no limit of its own: BullMQ counts the attempts, and takes -1 instead of a delay as the word to
/// fail the job.
///
/// The built-in strategies of BullMQ are exponential or fixed, uncapped, and their `jitter` is [`Jitter::Downward`].
/// They round down where a policy rounds half up, and their draw `r` is `1 - r` here: with that, the delays agree
/// within 1 ms.
///
/// ```
/// use core::time::Duration;
/// use relent::queue::bullmq_backoff_strategy;
/// use relent::rng::FixedRng;
/// use relent::{Jitter, Policy};
///
/// let policy = Policy::exponential(Duration::from_secs(1)).uncapped();
/// let policy = policy.jitter(Jitter::Downward(0.2));
/// let strategy = bullmq_backoff_strategy(policy)?;
/// assert_eq!(strategy.delay(1, &mut FixedRng::new(0.5)).as_millis(), 900);
/// assert_eq!(strategy.delay(2, &mut FixedRng::new(0.5)).as_millis(), 1800);
///
/// assert!(bullmq_backoff_strategy(policy.jitter(Jitter::Decorrelated)).is_err());
/// # Ok::<(), relent::policy::StatefulJitter>(())
/// ```
///
/// # Errors
///
/// [`StatefulJitter`] if the jitter is decorrelated.
pub const fn bullmq_backoff_strategy(policy: Policy) -> Result<BullMqBackoffStrategy, StatefulJitter> {
    match policy.delay_after(0, 0.0) {
        Ok(_) => Ok(BullMqBackoffStrategy { policy }),
        Err(stateful) => Err(stateful),
    }
}

/// What [`bullmq_backoff_strategy`] returns.
///
/// ```
/// use core::time::Duration;
/// use relent::Policy;
/// use relent::queue::bullmq_backoff_strategy;
/// use relent::rng::SeededRng;
///
/// let strategy = bullmq_backoff_strategy(Policy::DEFAULT)?; // equal jitter: 50 to 100 ms
/// let delay = strategy.delay(1, &mut SeededRng::new(7));
/// assert!(Duration::from_millis(50) <= delay && delay <= Duration::from_millis(100));
/// # Ok::<(), relent::policy::StatefulJitter>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a strategy does nothing until it is asked for a delay"]
pub struct BullMqBackoffStrategy {
    policy: Policy,
}

impl BullMqBackoffStrategy {
    /// The delay before the next attempt, in whole milliseconds.
    ///
    /// `attempts_made` is what the callback is told, in every version: how many attempts have **finished**, the one
    /// that just failed included. So 1 gives the policy's first delay, and 0, which the callback never sees, none. Takes
    /// one draw, and none without jitter.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent::Policy;
    /// use relent::queue::bullmq_backoff_strategy;
    /// use relent::rng::FixedRng;
    ///
    /// let strategy = bullmq_backoff_strategy(Policy::linear(Duration::from_secs(60)))?;
    /// let mut rng = FixedRng::new(0.5);
    /// let delays = [0, 1, 2, 3].map(|attempts_made| strategy.delay(attempts_made, &mut rng));
    /// assert_eq!(delays, [0, 60, 120, 180].map(Duration::from_secs));
    /// # Ok::<(), relent::policy::StatefulJitter>(())
    /// ```
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "a strategy is made of nothing that can fail here")]
    pub fn delay(&self, attempts_made: u32, rng: &mut dyn Rng) -> Duration {
        drawn(&self.policy, attempts_made, rng).expect("decorrelated jitter was refused")
    }
}

/// SQS hides a message for at most 12 hours in all, counted from its receive.
const SQS_LONGEST: Duration = Duration::from_secs(43_200);

/// The `VisibilityTimeout` that makes SQS deliver a message again after the policy's delay, in whole seconds.
///
/// `receive_count` is the message's `ApproximateReceiveCount`: how many deliveries have **started**, the one in hand
/// included; 1 on the first. `since_receive` is the time since this delivery. The result is that of
/// [`sqs_visibility_timeout_for`]. Whether the message may come back at all is for [`disposition`] to say, or for the
/// queue's redrive policy. Takes one draw, and none without jitter.
///
/// ```
/// use core::time::Duration;
/// use relent::queue::sqs_visibility_timeout;
/// use relent::rng::FixedRng;
/// use relent::{Jitter, Policy};
///
/// const POLICY: Policy = Policy::exponential(Duration::from_millis(2500)).jitter(Jitter::None);
/// let mut rng = FixedRng::new(0.5);
/// let mut at_once = |count| sqs_visibility_timeout(POLICY, count, Duration::ZERO, &mut rng);
/// assert_eq!([at_once(1)?, at_once(2)?, at_once(3)?], [Some(3), Some(5), Some(10)]);
/// # Ok::<(), relent::policy::StatefulJitter>(())
/// ```
///
/// # Errors
///
/// [`StatefulJitter`] if the jitter is decorrelated.
pub fn sqs_visibility_timeout(
    policy: impl Borrow<Policy>,
    receive_count: u32,
    since_receive: Duration,
    rng: &mut dyn Rng,
) -> Result<Option<u32>, StatefulJitter> {
    let delay = drawn(policy.borrow(), receive_count, rng)?;
    Ok(sqs_visibility_timeout_for(delay, since_receive))
}

/// The `VisibilityTimeout` that makes SQS deliver a message again after `delay`, such as that of a
/// [`Disposition::Retry`].
///
/// SQS counts the timeout from the call that sets it, so it is the delay from now, rounded up to whole seconds, and not
/// added to the time that has passed. But 12 hours after the receive, `since_receive` ago, is the end: a longer timeout
/// is refused there and the delay lost, so this one ends at least a second before. `None` if nothing is left: the
/// message comes back when its present timeout ends.
///
/// The same call, made at intervals with the same delay, extends the lease of a message that is being worked on.
///
/// ```
/// use core::time::Duration;
/// use relent::queue::sqs_visibility_timeout_for;
///
/// let seconds = Duration::from_secs;
/// assert_eq!(sqs_visibility_timeout_for(Duration::from_millis(400), seconds(0)), Some(1));
/// assert_eq!(sqs_visibility_timeout_for(seconds(50_000), seconds(0)), Some(43_199));
/// assert_eq!(sqs_visibility_timeout_for(seconds(43_200), seconds(60)), Some(43_139));
/// assert_eq!(sqs_visibility_timeout_for(seconds(1), seconds(43_199)), None);
/// ```
#[must_use]
pub fn sqs_visibility_timeout_for(delay: Duration, since_receive: Duration) -> Option<u32> {
    let longest = SQS_LONGEST.saturating_sub(since_receive).as_secs().saturating_sub(1);
    let wanted = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
    if longest == 0 { None } else { u32::try_from(wanted.min(longest)).ok() }
}

/// The delay after `failures`, of a policy that needs no more than their number.
fn drawn(policy: &Policy, failures: u32, rng: &mut dyn Rng) -> Result<Duration, StatefulJitter> {
    match policy.jitter_kind() {
        Jitter::None => Ok(policy.nominal_after(failures)),
        _ => policy.delay_after(failures, rng.next_f64()),
    }
}
