//! One call of the operation, and the two predicates that name the last one.

use core::time::Duration;

/// One call of the operation, as the operation sees it.
///
/// Attempts are numbered from 1, the first call included.
///
/// ```
/// use core::time::Duration;
/// use relent::{Attempt, Policy, clock::VirtualClock, retry};
///
/// const SEC: Duration = Duration::from_secs(1);
///
/// let clock = VirtualClock::new();
/// let run = retry(async |attempt| Err::<(), Attempt>(attempt), Policy::fixed(2 * SEC)).unmarked();
/// let last = clock.block_on(run.max_elapsed(60 * SEC).clock(&clock)).unwrap_err();
/// assert_eq!((last.number(), last.max_attempts()), (3, 3));
/// assert_eq!((last.is_first(), last.is_final()), (false, true));
/// assert_eq!((last.previous_delay(), last.remaining()), (2 * SEC, Some(56 * SEC)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(crate) number: u32,
    pub(crate) max_attempts: u32,
    pub(crate) previous_delay: Duration,
    pub(crate) remaining: Option<Duration>,
}

impl Attempt {
    /// Which attempt this is: 1 for the first call. Saturates at `u32::MAX`.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// How many attempts the run may make, the first call included; 0 means unbounded.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Whether nothing has been tried before this attempt.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.number <= 1
    }

    /// Whether no attempt will follow this one, because the attempts are used up.
    ///
    /// A run can end earlier for other reasons (a deadline, a marker, a budget), which nobody can know beforehand.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        is_final_attempt(self.number, self.max_attempts)
    }

    /// The wait that came before this attempt, as it was scheduled; zero for the first.
    #[must_use]
    pub const fn previous_delay(&self) -> Duration {
        self.previous_delay
    }

    /// The time left until the run's deadline (`max_elapsed`) when this attempt began; `None` without one.
    ///
    /// Zero when a wait ended late: a wait that has ended is always followed by its attempt.
    #[must_use]
    pub const fn remaining(&self) -> Option<Duration> {
        self.remaining
    }
}

/// Whether the attempt in hand is the last: `attempt` is its number, counted from 1.
///
/// `max_attempts` is the number of all calls, the first included; 0 means unbounded, so no attempt is final. For a
/// counter of attempts that *finished before* this one, use [`is_final_attempt_from_attempts_made`].
///
/// ```
/// use relent::is_final_attempt;
///
/// assert!(!is_final_attempt(2, 3));
/// assert!(is_final_attempt(3, 3));
/// assert!(is_final_attempt(4, 3));
/// assert!(!is_final_attempt(u32::MAX, 0));
/// ```
#[must_use]
pub const fn is_final_attempt(attempt: u32, max_attempts: u32) -> bool {
    max_attempts != 0 && attempt >= max_attempts
}

/// Whether the attempt in hand is the last, given how many attempts were *finished before* it.
///
/// This is what a queue's `attempts_made` counter says inside a processor: 0 during the first attempt. Not every counter
/// of that name does; [`queue`](crate::queue) has a table. `max_attempts` counts all calls, the first included; 0 means
/// unbounded. No count overflows.
///
/// ```
/// use relent::is_final_attempt_from_attempts_made;
///
/// assert!(!is_final_attempt_from_attempts_made(1, 3));
/// assert!(is_final_attempt_from_attempts_made(2, 3));
/// assert!(is_final_attempt_from_attempts_made(0, 1));
/// assert!(is_final_attempt_from_attempts_made(u32::MAX, u32::MAX));
/// assert!(!is_final_attempt_from_attempts_made(u32::MAX, 0));
/// ```
#[must_use]
pub const fn is_final_attempt_from_attempts_made(attempts_made: u32, max_attempts: u32) -> bool {
    is_final_attempt(attempts_made.saturating_add(1), max_attempts)
}
