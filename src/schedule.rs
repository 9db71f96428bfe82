//! What a run accepts as its schedule of waits.

use core::time::Duration;

use crate::rng::Rng;

/// Where a run stands in its schedule.
///
/// One per run: a schedule itself is immutable, so nothing leaks between the runs that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    failures: u32,
    level: u32,
    level_failures: u32,
    previous_ms: f64,
}

impl Progress {
    /// A run in which nothing has failed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: 0, level: 0, level_failures: 0, previous_ms: 0.0 }
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
        self.level_failures
    }

    /// Counts one failure: of the run, and of its present level.
    pub const fn count_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.level_failures = self.level_failures.saturating_add(1);
    }

    /// Moves to `level`, where `failures` failures count as made already.
    pub const fn enter_level(&mut self, level: u32, failures: u32) {
        self.level = level;
        self.level_failures = failures;
    }
}

/// The waits of a run.
///
/// Implemented for [`Policy`](crate::Policy), for references, and by you.
pub trait Schedule {
    /// The wait after the failure that `progress` has just counted, or `None` when no attempt should follow.
    ///
    /// Takes at most one draw from `rng`. The run has called [`Progress::count_failure`] already, so
    /// [`Progress::failures`] is 1 after the first failed attempt. [`Duration::MAX`] means never: the run stops.
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

impl<S: Schedule + ?Sized> Schedule for &S {
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

/// A schedule with another limit on attempts.
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

/// A schedule with another limit on elapsed time.
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
