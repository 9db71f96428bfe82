//! How a backoff is made, and what it is told before it is used.

use core::time::Duration;

use super::watch::{OnDelayChange, OnGiveUp, Watched};
use super::{Backoff, Exhausted};
#[cfg(target_has_atomic = "64")]
use crate::budget::Budget;
use crate::clock::{Clock, DEFAULT_CLOCK};
use crate::decision::HintLimit;
use crate::env::{DEFAULT_RNG, On};
use crate::error::Unmarked;
use crate::hooks::And;
#[cfg(target_has_atomic = "64")]
use crate::hooks::Budgeted;
use crate::rng::Rng;
use crate::run::Run;
use crate::schedule::{MaxAttempts, MaxElapsed};

impl<S> Backoff<S> {
    /// A backoff that has seen no failure.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use relent::{Policy, backoff::Backoff};
    ///
    /// static BACKOFF: Mutex<Backoff<Policy>> = Mutex::new(Backoff::new(Policy::DEFAULT));
    /// assert_eq!(BACKOFF.lock().unwrap().failure_count(), 0);
    /// ```
    pub const fn new(schedule: S) -> Self {
        Self::with(Run::new(schedule, Watched::NONE, On(DEFAULT_CLOCK), DEFAULT_RNG), Duration::ZERO)
    }
}

impl<S, C, R, W, M> Backoff<S, C, R, W, M> {
    fn scheduled_by<Z>(self, schedule: impl FnOnce(S) -> Z) -> Backoff<Z, C, R, W, M> {
        let run = self.run;
        Backoff::with(Run::new(schedule(run.schedule), run.hooks, run.clock, run.rng), self.healthy_after)
    }

    fn watched_by<V>(self, watcher: V) -> Backoff<S, C, R, And<W, V>, M> {
        let Run { schedule, hooks, clock, rng, .. } = self.run;
        Backoff::with(Run::new(schedule, hooks.and(watcher), clock, rng), self.healthy_after)
    }

    /// Lets a success count only once it has lasted for `uptime`, measured from the first success after a failure.
    ///
    /// A failure before that goes on with the series, so what flaps is slowed down and given up in the end. Without
    /// this, or with zero, a success counts at once.
    ///
    /// [`run`](Self::run) measures each attempt by itself. Everywhere else a success begins when it is
    /// [reported](Self::succeeded): a loop that never does so never starts over.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::linear(SEC)).healthy_after(60 * SEC).clock(&clock);
    /// backoff.failed();
    /// backoff.succeeded();
    /// clock.advance(59 * SEC);
    /// assert_eq!(backoff.failure_count(), 1);
    /// clock.advance(SEC);
    /// assert_eq!(backoff.failure_count(), 0);
    /// ```
    pub fn healthy_after(mut self, uptime: Duration) -> Self {
        self.healthy_after = uptime;
        self
    }

    /// Sets the longest hint that is waited for; with a longer one the backoff gives up. Five minutes unless set.
    ///
    /// As [`Retry::max_retry_after`](crate::retry::Retry::max_retry_after).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, retry::StopReason};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// use relent::{clock::InstantClock, error::RetryAfterError};
    ///
    /// let clock = InstantClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(SEC)).max_retry_after(60 * SEC).clock(&clock);
    /// # runtime.block_on(async {
    /// assert!(backoff.retry_or(RetryAfterError::new("busy", 60 * SEC)).await.is_ok());
    /// assert!(backoff.retry_or(RetryAfterError::new("busy", 61 * SEC)).await.is_err());
    /// # });
    /// assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::RetryAfterTooLong(61 * SEC));
    /// ```
    pub fn max_retry_after(mut self, ceiling: Duration) -> Self {
        self.run.hooks.hint_limit = HintLimit::Refuse(ceiling);
        self
    }

    /// Sets the longest hint that is waited for; a longer one counts as `ceiling`.
    ///
    /// As [`Retry::clamp_retry_after`](crate::retry::Retry::clamp_retry_after).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, retry::StopReason};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// use relent::{clock::InstantClock, error::RetryAfterError};
    ///
    /// let clock = InstantClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(SEC)).clamp_retry_after(60 * SEC).clock(&clock);
    /// # runtime.block_on(async {
    /// assert!(backoff.retry_or(RetryAfterError::new("busy", 3600 * SEC)).await.is_ok());
    /// # });
    /// assert_eq!(clock.waits(), [60 * SEC]);
    /// ```
    pub fn clamp_retry_after(mut self, ceiling: Duration) -> Self {
        self.run.hooks.hint_limit = HintLimit::Clamp(ceiling);
        self
    }

    /// With `false`, ignores every hint; with `true`, hears them up to the ceiling of five minutes.
    ///
    /// As [`Retry::respect_retry_after`](crate::retry::Retry::respect_retry_after).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, retry::StopReason};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// use relent::{clock::InstantClock, error::RetryAfterError};
    ///
    /// let clock = InstantClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(SEC)).respect_retry_after(false).clock(&clock);
    /// # runtime.block_on(async {
    /// assert!(backoff.retry_or(RetryAfterError::new("busy", 60 * SEC)).await.is_ok());
    /// # });
    /// assert_eq!(clock.waits(), [SEC]);
    /// ```
    pub fn respect_retry_after(mut self, respect: bool) -> Self {
        self.run.hooks.hint_limit = if respect { HintLimit::DEFAULT } else { HintLimit::Ignore };
        self
    }

    /// Sets how many attempts a series may have, over the schedule's own limit; 0 means unbounded.
    ///
    /// A list of waits still ends after its last one.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// let mut backoff = Backoff::new(Policy::fixed(Duration::from_secs(1))).max_attempts(1);
    /// backoff.failed();
    /// assert!(backoff.exhausted());
    /// ```
    pub fn max_attempts(self, max_attempts: u32) -> Backoff<MaxAttempts<S>, C, R, W, M> {
        self.scheduled_by(|schedule| MaxAttempts::new(schedule, max_attempts))
    }

    /// Sets how long after the first failure of a series an attempt may begin, over the schedule's own limit.
    ///
    /// A failure after which the wait would end later than that is the last: the backoff gives up at once.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let clock = VirtualClock::new();
    /// let policy = Policy::fixed(2 * SEC).unbounded();
    /// let mut backoff = Backoff::new(policy).max_elapsed(5 * SEC).clock(&clock);
    /// clock.advance(3600 * SEC); // good service
    /// for expected in [false, false, true] {
    ///     backoff.failed(); // 0, 2 and 4 s after the first
    ///     clock.advance(2 * SEC);
    ///     assert_eq!(backoff.exhausted(), expected);
    /// }
    /// ```
    pub fn max_elapsed(self, max_elapsed: Duration) -> Backoff<MaxElapsed<S>, C, R, W, M> {
        self.scheduled_by(|schedule| MaxElapsed::new(schedule, max_elapsed))
    }

    /// Asks `budget`, a shared [`RetryBudget`](crate::budget::RetryBudget), before each wait: last of all, so that a
    /// failure after which there is no attempt for another reason costs nothing. Of several budgets each is asked, and one
    /// that has granted before another refuses stays spent.
    ///
    /// What counts as a run is a series of failures, when its first failure is reported: the start of the child may be
    /// so long ago that it has left the budget's window. A success that is reported while no failure is counted was a
    /// run without a retry, and counts as one. So report them, in the loop form too, or the budget takes the calls that
    /// fail for all calls.
    ///
    /// Without a grant the backoff gives up, with [`StopReason::Budget`](crate::retry::StopReason::Budget), and stays so
    /// when the budget has recovered.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock, retry::StopReason};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// use relent::budget::RetryBudget;
    ///
    /// let clock = VirtualClock::new();
    /// // one retry for two runs
    /// let budget = RetryBudget::new(0.5).min_per_second(0).with_clock(&clock);
    /// let mut backoff = Backoff::new(Policy::fixed(SEC)).budget(&budget).clock(&clock);
    /// backoff.succeeded();
    /// backoff.failed();
    /// assert!(!backoff.exhausted());
    /// backoff.failed();
    /// assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::Budget);
    /// ```
    #[cfg(target_has_atomic = "64")]
    pub fn budget<B: Budget>(self, budget: B) -> Backoff<S, C, R, And<W, Budgeted<B>>, M> {
        self.watched_by(Budgeted(budget))
    }

    /// Waits on this clock, and reads the time from it.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// use relent::clock::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(60 * SEC)).clock(&clock);
    /// backoff.failed();
    /// clock.block_on(backoff.attempt().unwrap());
    /// assert_eq!(clock.now(), 60 * SEC);
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> Backoff<S, D, R, W, M> {
        let Run { schedule, hooks, rng, .. } = self.run;
        Backoff::with(Run::new(schedule, hooks, On(clock), rng), self.healthy_after)
    }

    /// Takes the draws of the jitter from this source, one at most for each failure.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// use relent::rng::FixedRng;
    ///
    /// let mut backoff = Backoff::new(Policy::DEFAULT).rng(FixedRng::new(0.0)); // 50 to 100 ms
    /// backoff.failed();
    /// assert_eq!(backoff.delay(), Duration::from_millis(50));
    /// ```
    pub fn rng<Q: Rng>(self, rng: Q) -> Backoff<S, C, Q, W, M> {
        let Run { schedule, hooks, clock, .. } = self.run;
        Backoff::with(Run::new(schedule, hooks, clock, rng), self.healthy_after)
    }

    /// Calls `observer` with the new [`delay`](Self::delay) whenever it changes: after a failure, and with zero when a
    /// series ends.
    ///
    /// The end of a series by [`healthy_after`](Self::healthy_after) is told with the next outcome or attempt.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let mut delays = Vec::new();
    /// let backoff = Backoff::new([SEC, 5 * SEC, 5 * SEC]);
    /// let mut backoff = backoff.on_delay_change(|delay| delays.push(delay));
    /// backoff.failed();
    /// backoff.failed();
    /// backoff.failed();
    /// backoff.succeeded();
    /// backoff.succeeded();
    /// drop(backoff);
    /// assert_eq!(delays, [SEC, 5 * SEC, Duration::ZERO]);
    /// ```
    pub fn on_delay_change<F>(self, observer: F) -> Backoff<S, C, R, And<W, OnDelayChange<F>>, M>
    where
        F: FnMut(Duration),
    {
        self.watched_by(OnDelayChange(observer))
    }

    /// Calls `observer` once when the backoff gives up: the moment to raise an alarm.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// let mut alarms = Vec::new();
    /// let policy = Policy::fixed(Duration::from_secs(1)); // three attempts
    /// let mut backoff = Backoff::new(policy).on_give_up(|why| alarms.push(why.to_string()));
    /// for _ in 0..100 {
    ///     backoff.failed();
    /// }
    /// drop(backoff);
    /// assert_eq!(alarms, ["gave up at failure 3: attempts used up"]);
    /// ```
    pub fn on_give_up<F>(self, observer: F) -> Backoff<S, C, R, And<W, OnGiveUp<F>>, M>
    where
        F: FnMut(&Exhausted),
    {
        self.watched_by(OnGiveUp(observer))
    }
}

impl<S, C, R, W> Backoff<S, C, R, W> {
    /// Accepts errors of any type, and looks for no marker in them.
    ///
    /// For unbounded generics, errors that borrow, and foreign types without `Error`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock};
    /// struct Opaque(u8);
    ///
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(Duration::from_secs(1))).unmarked().clock(&clock);
    /// let result = clock.block_on(backoff.run(async |_| Err::<(), _>(Opaque(7))));
    /// assert!(result.is_err_and(|opaque| opaque.0 == 7));
    /// ```
    pub fn unmarked(self) -> Backoff<S, C, R, W, Unmarked> {
        Backoff::with(self.run, self.healthy_after)
    }
}
