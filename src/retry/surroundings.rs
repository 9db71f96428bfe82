//! The part of the builder that gives a run its surroundings: clock, random source, reading of errors, stop signal.

use core::future::{Future, IntoFuture};
use core::time::Duration;

use super::Retry;
use super::operation::InFlight;
use crate::clock::Clock;
use crate::env::{Env, NoSignal, On, Reads, Signal, SleepBy, Sleeps};
use crate::error::{Auto, Undecided, Unmarked};
use crate::rng::Rng;
use crate::run::Run;

impl<F, S, H, C, R, M, G> Retry<F, S, H, Env<C, R, M, G>>
where
    F: InFlight<C>,
    C: Sleeps,
    G: Signal,
{
    fn timed_by<D>(self, clock: impl FnOnce(C) -> D) -> Retry<F, S, H, Env<D, R, M, G>>
    where
        F: InFlight<D>,
        D: Sleeps,
    {
        let run = self.run;
        Retry::new(self.op, Run::new(run.schedule, run.hooks, clock(run.clock), run.rng), self.signal)
    }

    /// Waits on this clock, and reads the time from it.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(1000 * MS)).clock(&clock);
    /// assert_eq!(clock.block_on(run), Err("busy"));
    /// assert_eq!(relent::clock::Clock::now(&clock), 2000 * MS);
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> Retry<F, S, H, Env<On<D>, R, M, G>>
    where
        F: InFlight<On<D>>,
    {
        self.timed_by(|_| On(clock))
    }

    /// Waits by this function, for instance `tokio::time::sleep`.
    ///
    /// The time elapsed is then the larger of what the run's clock says and the sum of the waits and attempt timeouts
    /// that have passed, so a paused or no-op sleep meets the run's limits as production would. What an operation itself
    /// spends on a paused clock is not seen; where that matters, give the run the whole clock:
    /// `.clock(clock_fn(move || start.elapsed(), tokio::time::sleep))`. Set after [`clock`](Self::clock), which replaces
    /// it. Where there is no default clock, and none was set before, no time is seen but that of waits and timeouts.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let policy = Policy::fixed(2000 * MS).unbounded().max_elapsed(5000 * MS);
    /// let run = retry(async |_| Err::<(), _>("busy"), policy);
    /// let report = run.sleep(tokio::time::sleep).report().await; // on a paused runtime: at once
    /// assert_eq!((report.attempts, report.elapsed), (3, 4000 * MS));
    /// # });
    /// ```
    pub fn sleep<P, W>(self, sleep: P) -> Retry<F, S, H, Env<SleepBy<P, C>, R, M, G>>
    where
        P: FnMut(Duration) -> W,
        W: Future<Output = ()>,
        C: Reads,
        F: InFlight<SleepBy<P, C>>,
    {
        self.timed_by(|base| SleepBy::new(sleep, base))
    }

    /// Takes the draws of the jitter from this source, one at most for each failure.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// # use relent::rng::FixedRng;
    /// let clock = VirtualClock::new();
    /// let policy = Policy::exponential(100 * MS).max_attempts(2); // equal jitter: 50 to 100 ms
    /// let run = retry(async |_| Err::<(), _>("busy"), policy).rng(FixedRng::new(0.0)).clock(&clock);
    /// assert_eq!(clock.block_on(run.report()).elapsed, 50 * MS);
    /// ```
    pub fn rng<Q: Rng>(self, rng: Q) -> Retry<F, S, H, Env<C, Q, M, G>> {
        let Run { schedule, hooks, clock, .. } = self.run;
        Retry::new(self.op, Run::new(schedule, hooks, clock, rng), self.signal)
    }
}

impl<F, S, H, C, R, G> Retry<F, S, H, Env<C, R, Auto<Undecided>, G>>
where
    F: InFlight<C>,
    C: Sleeps,
    G: Signal,
{
    /// Accepts any error type, and looks for no marker in it.
    ///
    /// For unbounded generics, errors that borrow, and foreign types without `Error`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// struct Opaque(u8);
    ///
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>(Opaque(7)), Policy::fixed(MS)).unmarked().clock(&clock);
    /// assert!(clock.block_on(run).is_err_and(|opaque| opaque.0 == 7));
    /// ```
    pub fn unmarked(self) -> Retry<F, S, H, Env<C, R, Unmarked, G>> {
        Retry::new(self.op, self.run, self.signal)
    }
}

impl<F, S, H, C, R, M> Retry<F, S, H, Env<C, R, M, NoSignal>>
where
    F: InFlight<C>,
    C: Sleeps,
{
    /// Stops the run when `signal` completes, with whatever value: a wait ends at once, and no attempt starts.
    ///
    /// The first attempt is always made, and a running attempt finishes; should it fail, the run ends with its error and
    /// [`StopReason::Cancelled`](super::StopReason::Cancelled). The signal is polled at the run's first poll, when a
    /// failed attempt could be retried, and during each wait, and never after it completed. If the signal and a wait are
    /// ready together, the signal wins. To end a running attempt too, drop the run. Any thread can give the signal of a
    /// `blocking::StopFlag`: `.cancel_on(&flag)`.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::{Policy, clock::VirtualClock, retry, retry::StopReason};
    /// # const MS: Duration = Duration::from_millis(1);
    /// # use relent::clock::Clock;
    /// let clock = VirtualClock::new();
    /// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(60_000 * MS)).clock(&clock);
    /// let report = clock.block_on(run.cancel_on(clock.sleep(1000 * MS)).report());
    /// assert_eq!((report.attempts, report.elapsed), (1, 1000 * MS));
    /// assert_eq!(report.stop, Some(StopReason::Cancelled));
    /// ```
    ///
    /// A run keeps its last error through a wait only because of this, so with an error that is not `Send` it is not
    /// `Send` either:
    ///
    /// ```
    /// # use relent::{Policy, retry};
    /// # use std::{future::{Pending, pending}, pin::Pin, rc::Rc, task::{Context, Poll}};
    /// /// Fails with an error that is not `Send`, and does not hold it.
    /// struct Failing;
    ///
    /// impl Future for Failing {
    ///     type Output = Result<(), Rc<str>>;
    ///     fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
    ///         Poll::Ready(Err("busy".into()))
    ///     }
    /// }
    ///
    /// fn spawn(run: impl Future + Send) {}
    ///
    /// spawn(retry(|_| Failing, Policy::DEFAULT).unmarked());
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # use relent::{Policy, retry};
    /// # use std::{future::{Pending, pending}, pin::Pin, rc::Rc, task::{Context, Poll}};
    /// # struct Failing;
    /// # impl Future for Failing {
    /// #     type Output = Result<(), Rc<str>>;
    /// #     fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
    /// #         Poll::Ready(Err("busy".into()))
    /// #     }
    /// # }
    /// # fn spawn(run: impl Future + Send) {}
    /// spawn(retry(|_| Failing, Policy::DEFAULT).unmarked().cancel_on(pending::<()>()));
    /// ```
    pub fn cancel_on<Q: IntoFuture>(self, signal: Q) -> Retry<F, S, H, Env<C, R, M, Option<Q::IntoFuture>>> {
        Retry::new(self.op, self.run, Some(signal.into_future()))
    }
}
