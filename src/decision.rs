//! The one retry decision, pure: what every driver asks after a failure.
//!
//! Nothing here waits, reads a clock or knows an error type. A driver answers the questions of [`Failure`], each asked
//! at most once and only when it is reached, so that a predicate is not run for a failure that a marker has settled,
//! and a budget is not spent on a retry that will not happen.

use core::fmt;
use core::time::Duration;

use crate::attempt::is_final_attempt;
use crate::policy::Policy;
use crate::rng::Rng;
use crate::schedule::{Progress, Schedule};

/// Why a run ended without a success.
///
/// The checks are made in the order of the variants; the first that applies is the reason.
///
/// ```
/// use core::time::Duration;
/// use relent::retry::StopReason;
///
/// assert_eq!(StopReason::Exhausted.to_string(), "attempts used up");
/// let asked = StopReason::RetryAfterTooLong(Duration::from_secs(3600));
/// let text = "the server asked for a wait of 3600s, which is over the ceiling";
/// assert_eq!(asked.to_string(), text);
/// ```
///
/// `Display` is for people; [`name`](Self::name) is for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The error carries a [`NonRetryableError`](crate::error) in its chain.
    NotRetryable,
    /// A `.when` predicate said no.
    Declined,
    /// The run is not idempotent, and the error does not say that the operation was not executed.
    NotIdempotent,
    /// All attempts are used up.
    Exhausted,
    /// The schedule has no further wait, or its next one is [`Policy::MAX_DELAY`] or longer, which means never.
    ScheduleEnded,
    /// The server asked for this wait, which is longer than the ceiling on hints.
    RetryAfterTooLong(Duration),
    /// The wait would end after the deadline, so no attempt could follow it.
    Deadline,
    /// The stop signal came.
    Cancelled,
    /// The retry budget had nothing left.
    Budget,
}

impl StopReason {
    /// A short name without figures, for the label of a metric. It will not change.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent::retry::StopReason;
    ///
    /// let asked = StopReason::RetryAfterTooLong(Duration::from_secs(3600));
    /// assert_eq!(asked.name(), "retry_after_too_long");
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotRetryable => "not_retryable",
            Self::Declined => "declined",
            Self::NotIdempotent => "not_idempotent",
            Self::Exhausted => "exhausted",
            Self::ScheduleEnded => "schedule_ended",
            Self::RetryAfterTooLong(_) => "retry_after_too_long",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Budget => "budget",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRetryable => "marked as not retryable",
            Self::Declined => "declined by a predicate",
            Self::NotIdempotent => "not idempotent, and the operation may have been executed",
            Self::Exhausted => "attempts used up",
            Self::ScheduleEnded => "the schedule has no further wait",
            Self::RetryAfterTooLong(Duration::MAX) => "the server asked not to be called again",
            Self::RetryAfterTooLong(asked) => {
                return write!(f, "the server asked for a wait of {asked:?}, which is over the ceiling");
            }
            Self::Deadline => "the next attempt would begin after the deadline",
            Self::Cancelled => "stopped by the signal",
            Self::Budget => "the retry budget is used up",
        })
    }
}

/// A wait of this length never ends: the longest delay that a policy computes, 584 million years.
const NEVER: Duration = Policy::MAX_DELAY;

/// Looks at the whole seconds first: they settle it but for one, in a third of the instructions.
pub(crate) const fn ends(wait: Duration) -> bool {
    wait.as_secs() < NEVER.as_secs()
        || (wait.as_secs() == NEVER.as_secs() && wait.subsec_nanos() < NEVER.subsec_nanos())
}

/// What to do with a server's hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintLimit {
    /// A hint above this stops the run.
    Refuse(Duration),
    /// A hint above this counts as this.
    Clamp(Duration),
    /// No hint is heard.
    Ignore,
}

impl HintLimit {
    /// Five minutes: longer than any wait a caller is likely to sit through.
    pub(crate) const DEFAULT: Self = Self::Refuse(Duration::from_secs(300));
}

/// The questions of [`decide`], about one failure and the world at that instant.
pub(crate) trait Failure {
    /// Whether the driver itself ended the attempt, so that the error is not the operation's own.
    fn is_timeout(&self) -> bool;
    /// Whether the error carries the mark of a permanent failure.
    fn is_marked(&self) -> bool;
    /// Whether the caller's predicates want a retry.
    fn is_wanted(&mut self) -> bool;
    /// Whether repeating the operation is safe.
    fn may_repeat(&self) -> bool;
    /// The server's hint and what to do with it.
    fn hint(&mut self) -> Option<(Duration, HintLimit)>;
    /// The time on the run's clock.
    fn now(&self) -> Duration;
    /// Whether the stop signal has come.
    fn is_cancelled(&mut self) -> bool;
    /// Takes one retry from the budget, or says that there is none.
    fn spend(&mut self) -> bool;
}

/// All attempts that a run on `schedule` may make, the first included; 0 means unbounded.
///
/// A list ends after its last wait, whatever limit is set over it.
pub(crate) fn attempts_allowed<S: Schedule + ?Sized>(schedule: &S) -> u32 {
    let limit = schedule.max_attempts();
    match schedule.waits() {
        None => limit,
        Some(waits) => {
            let listed = waits.saturating_add(1);
            if limit == 0 { listed } else { limit.min(listed) }
        }
    }
}

/// Counts one failure and says how long to wait before the next attempt, or why there is none.
///
/// `deadline` is the instant on the run's clock after which no attempt may begin; it comes nearer if the clock has
/// stepped back.
#[inline]
pub(crate) fn decide<S: Schedule + ?Sized>(
    schedule: &S,
    progress: &mut Progress,
    deadline: &mut Option<Duration>,
    rng: &mut dyn Rng,
    failure: &mut impl Failure,
) -> Result<Duration, StopReason> {
    progress.count_failure();
    if !failure.is_timeout() {
        if failure.is_marked() {
            return Err(StopReason::NotRetryable);
        }
        if !failure.is_wanted() {
            return Err(StopReason::Declined);
        }
    }
    if !failure.may_repeat() {
        return Err(StopReason::NotIdempotent);
    }
    if is_final_attempt(progress.failures(), attempts_allowed(schedule)) {
        return Err(StopReason::Exhausted);
    }
    let computed = match schedule.next(progress, rng) {
        Some(computed) if ends(computed) => computed,
        _ => return Err(StopReason::ScheduleEnded),
    };
    let wait = match failure.hint() {
        None => computed,
        Some((hint, limit)) => raise(schedule, progress, computed, hint, limit)?,
    };
    if let Some(deadline) = deadline {
        let now = failure.now();
        *deadline = nearer(*deadline, now, schedule);
        // An attempt that the deadline itself cut short is the last: the next would have no time at all.
        if now.saturating_add(wait) > *deadline || (failure.is_timeout() && now >= *deadline) {
            return Err(StopReason::Deadline);
        }
    }
    if failure.is_cancelled() {
        return Err(StopReason::Cancelled);
    }
    if !failure.spend() {
        return Err(StopReason::Budget);
    }
    Ok(wait)
}

/// The deadline as it is now: a clock that has stepped back gives no more time than there was at first.
pub(crate) fn nearer<S: Schedule + ?Sized>(deadline: Duration, now: Duration, schedule: &S) -> Duration {
    schedule.max_elapsed().map_or(deadline, |limit| deadline.min(now.saturating_add(limit)))
}

/// The computed wait, raised to the hint as far as the limit allows.
fn raise<S: Schedule + ?Sized>(
    schedule: &S,
    progress: &Progress,
    computed: Duration,
    hint: Duration,
    limit: HintLimit,
) -> Result<Duration, StopReason> {
    let floor = match limit {
        HintLimit::Ignore => return Ok(computed),
        _ if hint == Duration::MAX => return Err(StopReason::RetryAfterTooLong(hint)),
        HintLimit::Refuse(ceiling) if hint > ceiling => return Err(StopReason::RetryAfterTooLong(hint)),
        HintLimit::Refuse(_) => hint,
        HintLimit::Clamp(ceiling) => hint.min(ceiling),
    };
    match raised(computed, schedule.lower_bound(progress, computed), floor) {
        wait if ends(wait) => Ok(wait),
        _ => Err(StopReason::RetryAfterTooLong(hint)),
    }
}

/// The computed wait with its lower bound raised to the hint: never earlier than the server asked, and as spread out as
/// the schedule's own waits, lest every client come back in the same instant.
pub(crate) fn raised(computed: Duration, lower_bound: Duration, hint: Duration) -> Duration {
    computed.max(hint.saturating_add(computed.saturating_sub(lower_bound)))
}
