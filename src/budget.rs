//! A limit on retries as a share of all runs, which many tasks share.
//!
//! # Why attempts per run are not enough
//!
//! A limit on attempts bounds one run. It does not bound the load on a service that fails, because every caller reaches
//! the limit at the same time, and because the layers of a call chain multiply:
//!
//! ```
//! // Three layers, each of which makes one call and three retries:
//! // what the lowest service gets for one request.
//! assert_eq!(4_u32.pow(3), 64);
//! // And with the three attempts that this crate's policies make by default:
//! assert_eq!(3_u32.pow(3), 27);
//! ```
//!
//! A budget bounds the sum instead. At a ratio of 0.1, and without the reserve below, a service that answers nothing gets
//! 1.1 times its usual load, where three attempts alone would make that 3 times; through three layers it is 1.331 times,
//! not 27. While few calls fail the budget is never felt:
//!
//! ```
//! use relent::budget::RetryBudget;
//!
//! /// What a service gets for 1000 runs of three attempts each.
//! fn calls(budget: &RetryBudget, fails: impl Fn(u32) -> bool) -> u32 {
//!     let mut calls = 0;
//!     for _ in 0..1000 {
//!         budget.record_run();
//!         calls += 1;
//!         for _ in 1..3 {
//!             if !fails(calls) || !budget.try_retry() {
//!                 break;
//!             }
//!             calls += 1;
//!         }
//!     }
//!     calls
//! }
//!
//! let tenth = || RetryBudget::new(0.1).min_per_second(0);
//! assert_eq!(calls(&tenth(), |_| true), 1100);
//! // One call in twenty fails: 52 failed, and all 52 were tried again.
//! assert_eq!(calls(&tenth(), |call| call % 20 == 0), 1052);
//!
//! let unlimited = RetryBudget::new(1.0).min_per_second(1000);
//! assert_eq!(calls(&unlimited, |_| true), 3000);
//!
//! assert!((1.1_f64.powi(3) - 1.331).abs() < 1e-9);
//! ```
//!
//! Both rules, three attempts for a run and a tenth for all of them, are those of *Site Reliability Engineering* (Google,
//! 2016), chapter 21; the 64 calls are an example of its chapter 22. Three, because each further attempt helps fewer:
//!
//! ```
//! // Of a million runs whose attempts fail independently, one in ten:
//! // how many fail after 1, 2, 3 and 4 attempts.
//! let failed = [1, 2, 3, 4].map(|attempts| 1_000_000 / 10_u32.pow(attempts));
//! assert_eq!(failed, [100_000, 10_000, 1_000, 100]);
//! ```
//!
//! # What is counted
//!
//! A run counts when it starts, whatever becomes of it. A budget that counted successes would shrink in an outage, just
//! as the failures that ask for retries grow, and would depend on the order in which calls end. Counted by runs, the
//! promise is one about load: `ratio` more than without retries.
//!
//! Over a rolling window the budget allows
//!
//! > `min_per_second` · `window` + `ratio` · runs
//!
//! retries, each of the two terms rounded down. The first, the reserve, lets a client with little traffic retry at all;
//! each process has its own, so a fleet of many quiet ones sets it low. At the instant of each grant, the one that is
//! granted included, no more retries lie in the window than that.
//!
//! The window moves in slices, each a twentieth of it. Runs and retries leave it together, by whole slices: none before
//! it is as old as `window`, all of them at most one slice later. So the promise holds exactly for a window of that
//! length, and for one of exactly `window` the runs may be those of one more slice. (If runs left earlier than retries,
//! a steady stream of runs at ratio 1, each retried once, would be refused some.)
//!
//! ```
//! use std::time::Duration;
//! use relent::budget::RetryBudget;
//! use relent::clock::VirtualClock;
//!
//! let clock = VirtualClock::new();
//! let budget = RetryBudget::new(0.0).min_per_second(1).with_clock(clock.clone());
//! // 10 retries in 10 s
//! clock.advance(Duration::from_millis(400));
//! assert_eq!((0..100).filter(|_| budget.try_retry()).count(), 10);
//! clock.advance(Duration::from_millis(10_099));
//! // the first slice ended at 500 ms, and 10 s have not passed since
//! assert_eq!(budget.balance(), 0);
//! clock.advance(Duration::from_millis(1));
//! assert_eq!(budget.balance(), 10);
//! ```
//!
//! # Sharing
//!
//! A budget belongs to what it protects: one for each service that can fail on its own, or one that fails takes away the
//! retries of the others. It is shared by reference or in an `Arc`, never by cloning, and counts for all policies and
//! layers that use it. Where runs are nested, each retry of any layer is one more call of the lowest, so one budget for
//! all of them bounds the product:
//!
//! ```
//! use std::cell::Cell;
//! use std::time::Duration;
//! use relent::budget::RetryBudget;
//! use relent::clock::InstantClock;
//! use relent::{Policy, retry};
//!
//! /// How often the lowest of three layers, three attempts each, is called for one request.
//! async fn calls(budget: RetryBudget) -> u32 {
//!     let (calls, clock) = (Cell::new(0), InstantClock::new());
//!     let call = async |_| {
//!         calls.set(calls.get() + 1);
//!         Err::<(), _>("down")
//!     };
//!     let low = |_| retry(call, Policy::immediate()).budget(&budget).clock(&clock);
//!     let middle = |_| retry(low, Policy::immediate()).budget(&budget).clock(&clock);
//!     let _ = retry(middle, Policy::immediate()).budget(&budget).clock(&clock).await;
//!     calls.get()
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let second = Duration::from_secs(1);
//! let of_retries = |retries| RetryBudget::new(0.0).min_per_second(retries).window(second);
//! assert_eq!(calls(of_retries(100)).await, 27);
//! assert_eq!(calls(of_retries(5)).await, 6); // the first call, and five retries
//! # });
//! ```
//!
//! (With a ratio, the runs of the inner layers are runs too, and pay for retries.) A
//! [breaker](crate::breaker#a-run-as-one-call-or-each-attempt-as-a-call) goes with a budget in either order: the budget
//! limits how much is tried again while a service fails some calls, the breaker how much is tried at all while it fails
//! every one.
//!
//! It takes no lock: a run is one atomic addition, a retry one compare-exchange, both on 64 bits. This module is absent
//! on targets without 64-bit atomics.
//!
//! Models under [loom](https://docs.rs/loom) try the interleavings of two and of three threads, with up to three
//! preemptions and a window of two slices: never are more granted than allowed, no run is lost, and neither when the
//! window moves meanwhile, by one slice or by many. That a run which has left the window never counts together with one
//! that came after is shown on real threads: loom does not find that interleaving.

mod config;
mod rolling;

use core::fmt;
use core::time::Duration;

use crate::clock::{Clock, DEFAULT_CLOCK, DefaultClock};
use config::{RATIO_RULE, WINDOW_RULE, millionths};
use rolling::Rolling;

pub use config::{BudgetConfig, BudgetError};

const MILLION: u32 = 1_000_000;

const DEFAULT_RATIO: f64 = 0.2;
const DEFAULT_MIN_PER_SECOND: u32 = 10;
const DEFAULT_WINDOW: Duration = Duration::from_secs(10);

/// Limits retries to a share of runs and a few more, over a rolling window.
///
/// See the [module](self) for why, and for what exactly is counted. A retry loop that is not this crate's calls
/// [`record_run`](Self::record_run) before the first attempt and [`try_retry`](Self::try_retry) before each further one.
///
/// ```
/// use relent::budget::RetryBudget;
///
/// static BUDGET: RetryBudget = RetryBudget::new(0.1).min_per_second(0);
///
/// for _ in 0..19 {
///     BUDGET.record_run();
/// }
/// assert!(BUDGET.try_retry());
/// assert!(!BUDGET.try_retry()); // 0.1 · 19 is 1.9, rounded down
/// BUDGET.record_run();
/// assert!(BUDGET.try_retry());
/// ```
///
/// A bad value in a constant does not compile:
///
/// ```compile_fail
/// use relent::budget::RetryBudget;
///
/// static BUDGET: RetryBudget = RetryBudget::new(10.0); // for 10 %
/// ```
///
/// Values from outside go through a [`BudgetConfig`].
///
/// # Limits
///
/// The ratio is held in millionths, to the nearest. Counts have 32 bits: more than `u32::MAX` runs in one window count
/// from 0 again, so that the budget grants less, never more; and it never allows more than `u32::MAX` retries. A clock
/// that steps back is taken to stand still until it has caught up, and so is one that has gone on for 292 years: its
/// origin must be nearer. A budget in a `const` would be a new one at each use: let it be a `static`.
pub struct RetryBudget<C = DefaultClock> {
    ratio_millionths: u32,
    min_per_second: u32,
    window: Duration,
    /// `min_per_second · window`, whole retries.
    reserve: u32,
    rolling: Rolling,
    clock: C,
}

impl RetryBudget {
    /// Allows `ratio` retries for each run, and 10 more a second, over a window of 10 s.
    ///
    /// `ratio` is a fraction from 0 to 1: 0.1 means one retry for every ten runs. With 1 each run may be tried once more.
    ///
    /// ```
    /// use relent::budget::RetryBudget;
    ///
    /// let budget = RetryBudget::new(0.5);
    /// assert_eq!(budget.balance(), 100); // 10 a second
    /// budget.record_run();
    /// budget.record_run();
    /// assert_eq!(budget.balance(), 101);
    /// ```
    ///
    /// # Panics
    ///
    /// When `ratio` is NaN, negative or above 1 (20 is no way to write 20 %). In a constant it then does not
    /// compile.
    #[cfg(not(relent_loom))]
    #[must_use]
    #[track_caller]
    pub const fn new(ratio: f64) -> Self {
        Self::from_parts(ratio, Rolling::new(DEFAULT_WINDOW))
    }

    #[cfg(relent_loom)]
    pub fn new(ratio: f64) -> Self {
        Self::from_parts(ratio, Rolling::new(DEFAULT_WINDOW))
    }

    #[track_caller]
    const fn from_parts(ratio: f64, rolling: Rolling) -> Self {
        let Some(ratio_millionths) = millionths(ratio) else { panic!("{}", RATIO_RULE) };
        Self {
            ratio_millionths,
            min_per_second: DEFAULT_MIN_PER_SECOND,
            window: DEFAULT_WINDOW,
            reserve: reserve(DEFAULT_MIN_PER_SECOND, DEFAULT_WINDOW),
            rolling,
            clock: DEFAULT_CLOCK,
        }
    }

    /// Takes the time from `clock`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::budget::RetryBudget;
    /// use relent::clock::VirtualClock;
    ///
    /// let clock = VirtualClock::new();
    /// let budget = RetryBudget::new(1.0).min_per_second(0).with_clock(clock.clone());
    /// budget.record_run();
    /// assert_eq!(budget.balance(), 1);
    /// clock.advance(Duration::from_secs(11));
    /// assert_eq!(budget.balance(), 0);
    /// ```
    #[must_use]
    pub const fn with_clock<C>(self, clock: C) -> RetryBudget<C> {
        let Self { ratio_millionths, min_per_second, window, reserve, rolling, clock: _ } = self;
        RetryBudget { ratio_millionths, min_per_second, window, reserve, rolling, clock }
    }
}

impl<C> RetryBudget<C> {
    /// Allows `retries` a second whatever the number of runs: at most `retries` · window in any window, rounded down, at
    /// whatever pace. With 0 there are none but for runs.
    ///
    /// ```
    /// # use relent::budget::RetryBudget;
    /// assert_eq!(RetryBudget::new(0.1).min_per_second(3).balance(), 30); // in 10 s
    /// assert_eq!(RetryBudget::new(0.1).min_per_second(0).balance(), 0);
    /// ```
    #[must_use]
    pub const fn min_per_second(mut self, retries: u32) -> Self {
        self.min_per_second = retries;
        self.reserve = reserve(retries, self.window);
        self
    }

    /// Counts runs and retries over the last `window`, from now on: what was counted is forgotten.
    ///
    /// ```
    /// # use relent::budget::RetryBudget;
    /// # use std::time::Duration;
    /// let budget = RetryBudget::new(0.1).min_per_second(3);
    /// assert_eq!(budget.window(Duration::from_millis(2500)).balance(), 7); // 7.5, rounded down
    /// ```
    ///
    /// # Panics
    ///
    /// When `window` is zero. In a constant it then does not compile.
    #[cfg(not(relent_loom))]
    #[must_use]
    #[track_caller]
    pub const fn window(self, window: Duration) -> Self {
        self.with_rolling(window, Rolling::new(window))
    }

    #[cfg(relent_loom)]
    pub fn window(self, window: Duration) -> Self {
        self.with_rolling(window, Rolling::new(window))
    }

    #[track_caller]
    const fn with_rolling(mut self, window: Duration, rolling: Rolling) -> Self {
        assert!(!window.is_zero(), "{}", WINDOW_RULE);
        self.window = window;
        self.reserve = reserve(self.min_per_second, window);
        self.rolling = rolling;
        self
    }

    /// How many retries a window with so many runs may hold.
    #[inline]
    fn allowance(&self, runs: u32) -> u32 {
        let for_runs = u64::from(runs) * u64::from(self.ratio_millionths) / u64::from(MILLION);
        u32::try_from(for_runs + u64::from(self.reserve)).unwrap_or(u32::MAX)
    }
}

impl<C: Clock> RetryBudget<C> {
    /// Counts a run, which adds `ratio` to what is allowed until it leaves the window.
    ///
    /// Once for each run, before its first attempt, whatever becomes of it.
    #[inline]
    pub fn record_run(&self) {
        self.rolling.record_run(self.clock.now());
    }

    /// Takes one retry out of the budget, if it has one.
    ///
    /// A retry that was granted stays spent until it leaves the window, even if it is never made.
    #[must_use = "a retry that was refused must not be made"]
    #[inline]
    pub fn try_retry(&self) -> bool {
        self.rolling.try_retry(self.clock.now(), |runs| self.allowance(runs))
    }

    /// How many retries would be granted now, if nothing else happened.
    ///
    /// ```
    /// use relent::budget::RetryBudget;
    ///
    /// let budget = RetryBudget::default();
    /// assert_eq!(budget.balance(), 100); // 10 a second in 10 s
    /// for _ in 0..10 {
    ///     budget.record_run();
    /// }
    /// assert_eq!(budget.balance(), 102);
    /// assert!(budget.try_retry());
    /// assert_eq!(budget.balance(), 101);
    /// ```
    #[must_use]
    pub fn balance(&self) -> u32 {
        let window = self.rolling.read(self.clock.now()).1;
        self.allowance(window.runs).saturating_sub(window.retries)
    }
}

/// A ratio of 0.2, 10 retries more a second, over a window of 10 s.
impl Default for RetryBudget {
    fn default() -> Self {
        Self::new(DEFAULT_RATIO)
    }
}

/// What is configured; the counts need the clock, and are read by [`balance`](RetryBudget::balance).
impl<C> fmt::Debug for RetryBudget<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBudget")
            .field("ratio", &(f64::from(self.ratio_millionths) / f64::from(MILLION)))
            .field("min_per_second", &self.min_per_second)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "u32::MAX fits")]
const fn reserve(min_per_second: u32, window: Duration) -> u32 {
    // The longest window has fewer than 2^94 nanoseconds, so the product fits.
    let retries = window.as_nanos() * min_per_second as u128 / 1_000_000_000;
    if retries < u32::MAX as u128 { retries as u32 } else { u32::MAX }
}

/// What a run asks before it tries again: a [`RetryBudget`], a reference or an `Arc` of one, or a limit of your own.
///
/// ```
/// use std::sync::Arc;
/// use relent::budget::{Budget, RetryBudget};
///
/// fn retry_once(budget: impl Budget) -> bool {
///     budget.record_run();
///     budget.try_retry()
/// }
///
/// static SHARED: RetryBudget = RetryBudget::new(0.5).min_per_second(0);
/// assert!(!retry_once(&SHARED));
/// assert!(retry_once(&SHARED));
/// assert!(retry_once(Arc::new(RetryBudget::default())));
/// ```
pub trait Budget {
    /// A run starts.
    fn record_run(&self);

    /// Whether the run may try once more; if so, that retry is spent.
    #[must_use = "a retry that was refused must not be made"]
    fn try_retry(&self) -> bool;
}

impl<C: Clock> Budget for RetryBudget<C> {
    fn record_run(&self) {
        self.record_run();
    }

    fn try_retry(&self) -> bool {
        self.try_retry()
    }
}

impl<B: Budget + ?Sized> Budget for &B {
    fn record_run(&self) {
        (**self).record_run();
    }

    fn try_retry(&self) -> bool {
        (**self).try_retry()
    }
}

#[cfg(feature = "alloc")]
impl<B: Budget + ?Sized> Budget for alloc::sync::Arc<B> {
    fn record_run(&self) {
        (**self).record_run();
    }

    fn try_retry(&self) -> bool {
        (**self).try_retry()
    }
}
