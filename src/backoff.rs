//! Outcomes reported from elsewhere: supervisors, reconnect loops, and retries around `&mut` state.
//!
//! [`retry`](crate::retry()) makes the attempts itself. Where it cannot, because a child process dies when it likes, a
//! connection is watched by another task, or the operation needs `&mut` state, a [`Backoff`] keeps the count: it is told
//! of failures and successes, and says how long to wait, or that it gives up. It decides as a run of `retry` does.
//!
//! # The loop form
//!
//! The operation stays where it is, with its `&mut` and its `?`:
//!
//! ```
//! use core::time::Duration;
//! use relent::{Policy, backoff::Backoff};
//!
//! # #[derive(Default)]
//! # struct Connection { queries: u32 }
//! # impl Connection {
//! #     async fn query(&mut self) -> std::io::Result<u32> {
//! #         self.queries += 1;
//! #         if self.queries < 3 { Err(std::io::ErrorKind::ConnectionReset.into()) } else { Ok(42) }
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! # let mut connection = Connection::default();
//! let mut backoff = Backoff::new(Policy::fixed(Duration::from_millis(1)));
//! let row = loop {
//!     match connection.query().await {
//!         Ok(row) => break row,
//!         Err(e) => backoff.retry_or(e).await?, // waits, or hands the error back
//!     }
//! };
//! assert_eq!((row, backoff.failure_count()), (42, 2));
//! # Ok(())
//! # }
//! ```
//!
//! A loop that goes on after a success says [`succeeded`](Backoff::succeeded) there, or all failures are one series.
//!
//! # A supervisor
//!
//! A child that dies at once, again and again, must be slowed down and given up; one that ran well for a day deserves a
//! quick restart. Time tells them apart: with [`healthy_after`](Backoff::healthy_after) a success counts once it has
//! lasted.
//!
//! ```
//! use core::time::Duration;
//! use relent::{Policy, backoff::Backoff, clock::VirtualClock};
//!
//! const SEC: Duration = Duration::from_secs(1);
//!
//! let clock = VirtualClock::new();
//! let policy = Policy::exponential(SEC).jitter(relent::Jitter::None).unbounded();
//! let mut backoff = Backoff::new(policy).healthy_after(60 * SEC).clock(&clock);
//!
//! for expected in [1, 2, 4] {
//!     backoff.succeeded(); // it is up, and dies a second later
//!     clock.advance(SEC);
//!     backoff.failed();
//!     assert_eq!(backoff.delay(), expected * SEC);
//! }
//!
//! backoff.succeeded();
//! clock.advance(86_400 * SEC);
//! backoff.failed();
//! assert_eq!(backoff.delay(), SEC);
//! ```
//!
//! # Shared between tasks
//!
//! What [`attempt`](Backoff::attempt) returns borrows nothing, so a lock is not held while waiting:
//!
//! ```
//! use std::sync::Mutex;
//! use relent::{Policy, backoff::{Backoff, Exhausted}};
//!
//! static BACKOFF: Mutex<Backoff<Policy>> = Mutex::new(Backoff::new(Policy::DEFAULT));
//!
//! async fn pause() -> Result<(), Exhausted> {
//!     let wait = BACKOFF.lock().unwrap().attempt()?;
//!     wait.await;
//!     Ok(())
//! }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(pause()).unwrap();
//! ```
//!
//! # To stop
//!
//! Dropping a wait or a run ends it at once and leaves no timer behind. So a stop signal is a `select!`:
//!
//! ```
//! # use core::time::Duration;
//! # use relent::{Policy, backoff::Backoff, clock::{Clock, VirtualClock}};
//! # const SEC: Duration = Duration::from_secs(1);
//! # let clock = VirtualClock::new();
//! # let stop = clock.sleep(10 * SEC);
//! # let mut backoff = Backoff::new(Policy::fixed(60 * SEC)).clock(&clock);
//! # let outcome = clock.block_on(async {
//! tokio::select! {
//!     result = backoff.run(async |_| Err::<(), _>("crashed")) => result,
//!     () = stop => Ok(()),
//! }
//! # });
//! # assert_eq!(outcome, Ok(()));
//! # assert_eq!(clock.now(), 10 * SEC);
//! # assert_eq!(clock.sleepers(), 0);
//! ```

mod exhausted;
mod reading;
mod setup;
mod wait;
mod watch;

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::time::Duration;

pub use exhausted::Exhausted;
pub use wait::{Wait, WaitTooLong};

use crate::attempt::Attempt;
use crate::clock::{Clock, DefaultClock};
use crate::env::{DefaultRng, On, Time};
use crate::error::{Auto, Marking, Undecided, Unmarked};
use crate::hooks::NoHooks;
use crate::rng::Rng;
use crate::run::Run;
use crate::schedule::{Progress, Schedule};

use reading::Reading;
use watch::{Watch, Watched};

/// Counts failures, and says how long to wait after each, or that it gives up.
///
/// What sets it up comes before the first outcome. A `Backoff` on a schedule `S` with nothing else set is a `Backoff<S>`;
/// the further parameters are the clock, the random source, the hooks, and how errors are read.
///
/// # Limits
///
/// All limits are those of the schedule, and hold for one series of failures: a reset begins a new one. `max_attempts` is
/// reached by that many failures. `max_elapsed` is measured from the first failure, not from the creation: it is a limit
/// on failing, and hours of good service do not count against it. The time that a child was up between failures does.
///
/// # Giving up
///
/// A backoff that has given up stays so until a success counts, or until [`reset`](Self::reset). Meanwhile a failure only
/// ends a success that has not lasted yet.
///
/// ```
/// use core::time::Duration;
/// use relent::{Policy, backoff::Backoff};
///
/// const SEC: Duration = Duration::from_secs(1);
///
/// let mut backoff = Backoff::new(Policy::linear(SEC)); // three attempts
/// backoff.failed();
/// backoff.failed();
/// assert_eq!((backoff.failure_count(), backoff.delay()), (2, 2 * SEC));
/// assert_eq!((backoff.level(), backoff.level_failure_count()), (0, 2)); // no `Levels`
/// backoff.failed();
/// assert!(backoff.exhausted());
/// backoff.succeeded();
/// assert_eq!((backoff.failure_count(), backoff.exhausted()), (0, false));
/// ```
#[must_use = "a backoff does nothing until it is told of an outcome"]
pub struct Backoff<S, C = DefaultClock, R = DefaultRng, W = NoHooks, M = Auto<Undecided>> {
    run: Run<S, Watched<W>, On<C>, R>,
    healthy_after: Duration,
    /// When a success was reported that no failure has followed.
    up_since: Option<Duration>,
    /// The wait that the last failure asked for, and the instant at which it ends.
    delay: Duration,
    ready_at: Duration,
    given_up: Option<Exhausted>,
    marking: PhantomData<fn() -> M>,
}

impl<S, C, R, W, M> Backoff<S, C, R, W, M> {
    const fn with(run: Run<S, Watched<W>, On<C>, R>, healthy_after: Duration) -> Self {
        Self {
            run,
            healthy_after,
            up_since: None,
            delay: Duration::ZERO,
            ready_at: Duration::ZERO,
            given_up: None,
            marking: PhantomData,
        }
    }
}

impl<S: Schedule, C: Clock, R: Rng, W: Watch, M> Backoff<S, C, R, W, M> {
    /// Reports a failure: counts it, and decides at once how long to wait, or to give up.
    ///
    /// Every end that is to be followed by a wait is a failure, that of a child which left with success as well.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let mut backoff = Backoff::new(Policy::linear(SEC)); // three attempts
    /// assert_eq!(backoff.delay(), Duration::ZERO);
    /// for (delay, exhausted) in [(SEC, false), (2 * SEC, false), (2 * SEC, true), (2 * SEC, true)] {
    ///     backoff.failed();
    ///     assert_eq!((backoff.delay(), backoff.exhausted()), (delay, exhausted));
    /// }
    /// assert_eq!(backoff.failure_count(), 3);
    /// ```
    pub fn failed(&mut self) {
        // Whoever reports a failure without its error asks `exhausted` or `attempt` for the verdict.
        let _ = self.decide::<_, Unmarked>(&());
    }

    /// Reports a success: ends the series of failures, at once or after [`healthy_after`](Self::healthy_after).
    ///
    /// Only what shows good health is a success. A stream that has opened can still break at its first item; where that
    /// happens, report the item, or set `healthy_after`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let mut backoff = Backoff::new(Policy::linear(SEC));
    /// backoff.failed();
    /// backoff.failed();
    /// backoff.succeeded();
    /// assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));
    /// ```
    pub fn succeeded(&mut self) {
        if self.failure_count() == 0 {
            self.run.hooks.watchers.started();
        }
        self.came_up(self.run.clock.now());
    }

    /// Forgets everything: no failures, no delay, not given up.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let mut backoff = Backoff::new([SEC]).healthy_after(60 * SEC);
    /// backoff.failed();
    /// backoff.failed();
    /// assert!(backoff.exhausted());
    /// backoff.reset(); // by hand: somebody has mended it
    /// assert!(!backoff.exhausted());
    /// assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));
    /// ```
    pub fn reset(&mut self) {
        self.run.progress = Progress::new();
        self.run.deadline = None;
        self.up_since = None;
        self.given_up = None;
        self.ready_at = Duration::ZERO;
        self.change_delay(Duration::ZERO);
    }

    /// The wait that the last failure asked for, from the failure on: jitter drawn, hint included.
    ///
    /// Zero without a failure. Giving up leaves it as it was.
    #[must_use]
    pub fn delay(&self) -> Duration {
        if self.is_healthy() { Duration::ZERO } else { self.delay }
    }

    /// Whether the backoff has given up.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.given_up.is_some() && !self.is_healthy()
    }

    /// The failures of this series. Saturates at `u32::MAX`.
    #[must_use]
    pub fn failure_count(&self) -> u32 {
        self.progress().failures()
    }

    /// The level reached on [`Levels`](crate::levels::Levels), from 0; always 0 on other schedules.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// use relent::levels::{Level, Levels};
    ///
    /// static LEVELS: Levels =
    ///     Levels::new(&[Level::new(2).delay(SEC), Level::unbounded().delay(Duration::from_secs(60))]);
    /// let mut backoff = Backoff::new(&LEVELS);
    /// let reached = [(); 4].map(|()| {
    ///     backoff.failed();
    ///     (backoff.level(), backoff.level_failure_count())
    /// });
    /// assert_eq!(reached, [(0, 1), (0, 2), (1, 1), (1, 2)]);
    /// ```
    #[must_use]
    pub fn level(&self) -> u32 {
        self.progress().level()
    }

    /// The failures counted on the present [`level`](Self::level).
    #[must_use]
    pub fn level_failure_count(&self) -> u32 {
        self.progress().level_failures()
    }

    /// Asks for an attempt: what is left of the wait before it, or the refusal.
    ///
    /// The wait is counted from the failure, so time that has passed since is not waited again; without a failure it is
    /// zero. Verdict and length are fixed by this call: see [`Wait`].
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the backoff has given up.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(5 * SEC)).clock(&clock);
    /// backoff.failed();
    /// clock.advance(2 * SEC); // cleaning up
    /// assert_eq!(backoff.attempt().unwrap().delay(), 3 * SEC);
    /// ```
    pub fn attempt(&mut self) -> Result<Wait<C::Sleep>, Exhausted> {
        self.settle();
        match self.given_up {
            Some(exhausted) => Err(exhausted),
            None => Ok(self.wait()),
        }
    }

    /// Reports the failure `error`, and waits before the next attempt, or hands the error back.
    ///
    /// The error's markers and hints are heard as in a run of [`retry`](crate::retry()). The error is held while waiting;
    /// dropping the future ends the wait, and leaves the failure counted, which the first poll does.
    ///
    /// # Errors
    ///
    /// `error` itself if no attempt follows it: the backoff has given up, for one of the reasons of a
    /// [`StopReason`](crate::retry::StopReason).
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::VirtualClock, NonRetryableError};
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(Duration::from_secs(1))).clock(&clock);
    /// clock.block_on(async {
    ///     assert_eq!(backoff.retry_or("connection reset").await, Ok(()));
    ///     let error = backoff.retry_or(NonRetryableError::new("no such table")).await.unwrap_err();
    ///     assert_eq!(error.to_string(), "no such table");
    /// });
    /// assert!(backoff.exhausted());
    /// ```
    pub async fn retry_or<E, K>(&mut self, error: E) -> Result<(), E>
    where
        M: Reading<K>,
        M::Marking: Marking<E>,
    {
        if self.decide::<E, M::Marking>(&error).is_err() {
            return Err(error);
        }
        self.wait().await;
        Ok(())
    }

    /// Supervises `op`: calls it again after each failure, until it ends well or the backoff gives up.
    ///
    /// `Ok` ends the run and is reported as a success, so a task that should never end returns `Err` when it does. `Err`
    /// is a failure. With [`healthy_after`](Self::healthy_after) an `op` that ran for at least that long was healthy,
    /// however it ended: its failure is the first of a new series.
    ///
    /// The run goes on with the series that it finds, and first waits what is left of its delay; given up, it calls `op`
    /// once, at once. [`Attempt::remaining`] is `None` until the first failure, and one that is final may yet be healthy.
    ///
    /// # Errors
    ///
    /// The last error of `op`, once the backoff gives up.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, backoff::Backoff, clock::{Clock, VirtualClock}};
    /// # const SEC: Duration = Duration::from_secs(1);
    /// let clock = VirtualClock::new();
    /// let mut backoff = Backoff::new(Policy::fixed(SEC)).clock(&clock); // three attempts
    /// let crash = async |_| {
    ///     clock.sleep(10 * SEC).await;
    ///     Err::<(), _>("crashed")
    /// };
    /// assert_eq!(clock.block_on(backoff.run(crash)), Err("crashed"));
    /// assert_eq!(clock.now(), 32 * SEC);
    /// ```
    pub async fn run<F, Fut, T, E, K>(&mut self, mut op: F) -> Result<T, E>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        M: Reading<K>,
        M::Marking: Marking<E>,
    {
        loop {
            if let Ok(wait) = self.attempt() {
                wait.await;
            }
            let began = self.run.clock.now();
            let result = op(self.run.attempt(self.delay)).await;
            if !self.healthy_after.is_zero() {
                self.came_up(began);
            }
            match result {
                Ok(value) => {
                    self.succeeded();
                    return Ok(value);
                }
                Err(error) if self.decide::<E, M::Marking>(&error).is_err() => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Measures how long a success lasts that began then, or before.
    fn came_up(&mut self, began: Duration) {
        self.up_since.get_or_insert(began);
        self.settle();
    }

    /// Counts a failure and keeps the verdict on it.
    fn decide<E, N: Marking<E>>(&mut self, error: &E) -> Result<(), Exhausted> {
        self.settle();
        self.up_since = None;
        if let Some(exhausted) = self.given_up {
            return Err(exhausted);
        }
        if self.run.progress.failures() == 0 {
            self.run.begin::<E>();
        }
        match self.run.failed::<E, N>(error, false, || false) {
            Ok(delay) => {
                self.ready_at = self.run.clock.now().saturating_add(delay);
                self.change_delay(delay);
                Ok(())
            }
            Err(reason) => {
                let exhausted = Exhausted::new(reason, self.run.progress.failures());
                self.given_up = Some(exhausted);
                self.run.hooks.watchers.gave_up(&exhausted);
                Err(exhausted)
            }
        }
    }

    fn wait(&mut self) -> Wait<C::Sleep> {
        let now = self.run.clock.now();
        // A failure behind which the clock has stepped back is taken to happen now: the wait is no longer than asked.
        self.ready_at = self.ready_at.min(now.saturating_add(self.delay));
        let delay = self.ready_at.saturating_sub(now);
        Wait::new((!delay.is_zero()).then(|| self.run.clock.timer(delay)), delay)
    }

    fn change_delay(&mut self, delay: Duration) {
        if self.delay != delay {
            self.delay = delay;
            self.run.hooks.watchers.delay_changed(delay);
        }
    }

    /// Ends the series once a success has lasted.
    fn settle(&mut self) {
        if let Some(since) = &mut self.up_since {
            // Of a success behind which the clock has stepped back, as of a failure.
            *since = self.run.clock.now().min(*since);
        }
        if self.is_healthy() {
            self.reset();
        }
    }

    fn is_healthy(&self) -> bool {
        self.up_since.is_some_and(|since| self.run.clock.now().saturating_sub(since) >= self.healthy_after)
    }

    /// Where the series stands by now, though its end may not have been told yet.
    fn progress(&self) -> Progress {
        if self.is_healthy() { Progress::new() } else { self.run.progress }
    }
}

impl<S, C, R, W, M> fmt::Debug for Backoff<S, C, R, W, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff")
            .field("failures", &self.run.progress.failures())
            .field("delay", &self.delay)
            .field("given_up", &self.given_up)
            .finish_non_exhaustive()
    }
}
