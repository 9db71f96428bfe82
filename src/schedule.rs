//! What a run accepts as its schedule of waits.
//!
//! Most runs use a [`Policy`](crate::Policy), which computes its waits. Waits that are known one by one are a list:
//! `[Duration::from_secs(1), Duration::from_secs(2)]` allows three attempts. Anything else is a closure
//! ([`schedule_fn`]) or an implementation of [`Schedule`].

#[cfg(feature = "alloc")]
use alloc::{boxed::Box, rc::Rc, vec::Vec};
use core::fmt;
use core::time::Duration;

use crate::rng::Rng;

/// Where a run stands in its schedule.
///
/// One per run: a schedule itself is immutable, so nothing leaks between the runs that share it.
///
/// ```
/// use relent::schedule::Progress;
///
/// let mut progress = Progress::new();
/// progress.count_failure(); // a run does this, then asks its schedule
/// assert_eq!((progress.failures(), progress.level_failures()), (1, 1));
///
/// // What a schedule keeps for its next answer:
/// progress.set_previous_ms(99.5);
/// progress.enter_level(1, 0);
/// assert_eq!(progress.previous_ms(), 99.5);
/// assert_eq!((progress.level(), progress.level_failures()), (1, 0));
///
/// progress.count_failure();
/// assert_eq!((progress.failures(), progress.level_failures()), (2, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    failures: u32,
    level: u32,
    /// The failures that do not count for the present level; wraps below zero where one carries more than there were.
    elsewhere: u32,
    previous_ms: f64,
}

impl Progress {
    /// A run in which nothing has failed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: 0, level: 0, elsewhere: 0, previous_ms: 0.0 }
    }

    /// How many attempts have failed so far, the one being decided included. Saturates.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The delay computed after the previous failure, in milliseconds, before rounding and before any server's hint;
    /// 0 before the first.
    #[must_use]
    pub const fn previous_ms(&self) -> f64 {
        self.previous_ms
    }

    /// Keeps the delay that was computed, in milliseconds and unrounded, for the failure after this one.
    ///
    /// ```
    /// # use relent::schedule::Progress;
    /// let mut progress = Progress::new();
    /// progress.set_previous_ms(99.5);
    /// progress.count_failure();
    /// assert_eq!(progress.previous_ms(), 99.5);
    /// ```
    pub const fn set_previous_ms(&mut self, previous_ms: f64) {
        self.previous_ms = previous_ms;
    }

    /// The level reached, from 0; always 0 for a schedule without levels.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// How many failures were counted on the present level.
    #[must_use]
    pub const fn level_failures(&self) -> u32 {
        self.failures.wrapping_sub(self.elsewhere)
    }

    /// Counts one failure: of the run, and of its present level.
    pub const fn count_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Moves to `level`, where `failures` failures count as made already.
    ///
    /// ```
    /// # use relent::schedule::Progress;
    /// let mut progress = Progress::new();
    /// progress.count_failure();
    /// progress.enter_level(1, 1); // that failure is the first of the new level
    /// assert_eq!((progress.level(), progress.level_failures()), (1, 1));
    /// assert_eq!(progress.failures(), 1);
    /// ```
    pub const fn enter_level(&mut self, level: u32, failures: u32) {
        self.level = level;
        self.elsewhere = self.failures.wrapping_sub(failures);
    }
}

#[cfg(test)]
impl Progress {
    /// A run with so many failures, which to count one by one would take too long.
    pub(crate) const fn after(failures: u32) -> Self {
        Self { failures, ..Self::new() }
    }
}

/// The waits of a run.
///
/// Implemented for
///
/// - [`Policy`](crate::Policy), which computes its waits, and [`Levels`](crate::levels::Levels), which does so in stages;
/// - lists of waits: `[Duration; N]`, `[Duration]` and `Vec<Duration>`. They are waited exactly as given, without jitter
///   and without rounding to milliseconds. `n` waits allow `n + 1` attempts, so an empty list allows one;
/// - closures, through [`schedule_fn`];
/// - what holds a schedule: `&S`, `Box<S>`, `Rc<S>` and `Arc<S>`, where `S` may be `dyn Schedule`.
///
/// A schedule is immutable: what changes during a run is its [`Progress`]. So one value serves any number of runs, and
/// nothing of one run reaches another.
///
/// ```
/// use core::time::Duration;
/// use relent::rng::{FixedRng, Rng};
/// use relent::schedule::{Progress, Schedule};
///
/// /// Waits 1, 1, 2, 3, 5, … seconds.
/// struct Fibonacci;
///
/// impl Schedule for Fibonacci {
///     fn next(&self, progress: &mut Progress, _rng: &mut dyn Rng) -> Option<Duration> {
///         let (mut wait, mut after) = (0_u64, 1_u64);
///         for _ in 0..progress.failures() {
///             (wait, after) = (after, wait.checked_add(after)?);
///         }
///         Some(Duration::from_secs(wait))
///     }
/// }
///
/// let mut progress = Progress::new();
/// let waits = [(); 6].map(|()| {
///     progress.count_failure();
///     Fibonacci.next(&mut progress, &mut FixedRng::new(0.5))
/// });
/// assert_eq!(waits, [1, 1, 2, 3, 5, 8].map(|s| Some(Duration::from_secs(s))));
///
/// // Unless it says otherwise, a schedule sets no limits, and has no spread.
/// assert_eq!((Fibonacci.max_attempts(), Fibonacci.max_elapsed()), (0, None));
/// assert_eq!(Fibonacci.waits(), None);
/// assert_eq!(Fibonacci.lower_bound(&progress, Duration::from_secs(8)), Duration::from_secs(8));
/// ```
pub trait Schedule {
    /// The wait after the failure that `progress` has just counted, or `None` when no attempt should follow.
    ///
    /// Takes at most one draw from `rng`. The run has called [`Progress::count_failure`] already, so
    /// [`Progress::failures`] is 1 after the first failed attempt. 584 million years
    /// ([`Policy::MAX_DELAY`](crate::Policy::MAX_DELAY)) or more mean never: the run stops.
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration>;

    /// All attempts of a run, the first included; 0, the default, means unbounded.
    fn max_attempts(&self) -> u32 {
        0
    }

    /// How long after its first poll a run may begin an attempt; `None`, the default, means no limit.
    fn max_elapsed(&self) -> Option<Duration> {
        None
    }

    /// How many waits there are, for a schedule that is a list: its end then counts as attempts used up.
    fn waits(&self) -> Option<u32> {
        None
    }

    /// The shortest wait that [`next`](Self::next) could have returned instead of `wait`, from the same progress after
    /// the call.
    ///
    /// A server's hint raises this lower bound and keeps the spread above it. The default is `wait` itself: no spread.
    fn lower_bound(&self, progress: &Progress, wait: Duration) -> Duration {
        let _ = progress;
        wait
    }
}

/// A list: the wait after failure `n` is its `n`th, exactly as given, and its end is the end of the attempts.
impl Schedule for [Duration] {
    fn next(&self, progress: &mut Progress, _rng: &mut dyn Rng) -> Option<Duration> {
        let index = usize::try_from(progress.failures().checked_sub(1)?).ok()?;
        self.get(index).copied()
    }

    fn waits(&self) -> Option<u32> {
        Some(u32::try_from(self.len()).unwrap_or(u32::MAX))
    }
}

/// As for a slice.
impl<const N: usize> Schedule for [Duration; N] {
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        self.as_slice().next(progress, rng)
    }

    fn waits(&self) -> Option<u32> {
        self.as_slice().waits()
    }
}

/// Implements [`Schedule`] for what dereferences to a schedule.
macro_rules! schedule_by_deref {
    ($($(#[$attribute:meta])? [$($generics:tt)*] $holder:ty;)*) => {$(
        $(#[$attribute])?
        impl<$($generics)*> Schedule for $holder {
            fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
                (**self).next(progress, rng)
            }

            fn max_attempts(&self) -> u32 {
                (**self).max_attempts()
            }

            fn max_elapsed(&self) -> Option<Duration> {
                (**self).max_elapsed()
            }

            fn waits(&self) -> Option<u32> {
                (**self).waits()
            }

            fn lower_bound(&self, progress: &Progress, wait: Duration) -> Duration {
                (**self).lower_bound(progress, wait)
            }
        }
    )*};
}

schedule_by_deref! {
    [S: Schedule + ?Sized] &S;
    #[cfg(feature = "alloc")]
    [S: Schedule + ?Sized] Box<S>;
    #[cfg(feature = "alloc")]
    [S: Schedule + ?Sized] Rc<S>;
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    [S: Schedule + ?Sized] alloc::sync::Arc<S>;
    #[cfg(feature = "alloc")]
    [] Vec<Duration>;
}

/// A closure as a schedule, made by [`schedule_fn`].
#[derive(Clone, Copy)]
#[must_use = "a schedule does nothing until a run uses it"]
pub struct ScheduleFn<F>(F);

/// A schedule from a closure that takes the number of failed attempts, 1 after the first, and returns the wait, or
/// `None` when no attempt should follow.
///
/// The closure's waits are exact: no jitter, no cap, no rounding to milliseconds. Its `None` ends the schedule; it is
/// not known beforehand, so no attempt of such a run calls itself final, and the run stops with
/// [`StopReason::ScheduleEnded`](crate::retry::StopReason::ScheduleEnded).
///
/// ```
/// use core::time::Duration;
/// use relent::rng::FixedRng;
/// use relent::schedule::{Progress, Schedule, schedule_fn};
///
/// const STEP: Duration = Duration::from_micros(250);
/// let schedule = schedule_fn(|failures| (failures < 3).then(|| STEP * failures));
///
/// let mut progress = Progress::new();
/// let waits = [(); 4].map(|()| {
///     progress.count_failure();
///     schedule.next(&mut progress, &mut FixedRng::new(0.5))
/// });
/// assert_eq!(waits, [Some(STEP), Some(2 * STEP), None, None]);
/// assert_eq!(schedule.waits(), None);
///
/// # use relent::{clock::VirtualClock, retry, retry::StopReason};
/// # let clock = VirtualClock::new();
/// let run = retry(async |_| Err::<(), _>("busy"), schedule).clock(&clock);
/// assert_eq!(clock.block_on(run.report()).stop, Some(StopReason::ScheduleEnded));
/// ```
pub const fn schedule_fn<F: Fn(u32) -> Option<Duration>>(f: F) -> ScheduleFn<F> {
    ScheduleFn(f)
}

impl<F: Fn(u32) -> Option<Duration>> Schedule for ScheduleFn<F> {
    fn next(&self, progress: &mut Progress, _rng: &mut dyn Rng) -> Option<Duration> {
        (self.0)(progress.failures())
    }
}

impl<F> fmt::Debug for ScheduleFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleFn").finish_non_exhaustive()
    }
}

/// A schedule with another limit on attempts, that of [`max_attempts`](crate::retry::Retry::max_attempts).
#[derive(Clone, Copy, Debug)]
pub struct MaxAttempts<S> {
    schedule: S,
    max_attempts: u32,
}

impl<S> MaxAttempts<S> {
    pub(crate) const fn new(schedule: S, max_attempts: u32) -> Self {
        Self { schedule, max_attempts }
    }
}

impl<S: Schedule> Schedule for MaxAttempts<S> {
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        self.schedule.next(progress, rng)
    }

    fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    fn max_elapsed(&self) -> Option<Duration> {
        self.schedule.max_elapsed()
    }

    fn waits(&self) -> Option<u32> {
        self.schedule.waits()
    }

    fn lower_bound(&self, progress: &Progress, wait: Duration) -> Duration {
        self.schedule.lower_bound(progress, wait)
    }
}

/// A schedule with another limit on elapsed time, that of [`max_elapsed`](crate::retry::Retry::max_elapsed).
#[derive(Clone, Copy, Debug)]
pub struct MaxElapsed<S> {
    schedule: S,
    max_elapsed: Duration,
}

impl<S> MaxElapsed<S> {
    pub(crate) const fn new(schedule: S, max_elapsed: Duration) -> Self {
        Self { schedule, max_elapsed }
    }
}

impl<S: Schedule> Schedule for MaxElapsed<S> {
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        self.schedule.next(progress, rng)
    }

    fn max_attempts(&self) -> u32 {
        self.schedule.max_attempts()
    }

    fn max_elapsed(&self) -> Option<Duration> {
        Some(self.max_elapsed)
    }

    fn waits(&self) -> Option<u32> {
        self.schedule.waits()
    }

    fn lower_bound(&self, progress: &Progress, wait: Duration) -> Duration {
        self.schedule.lower_bound(progress, wait)
    }
}
