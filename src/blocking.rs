//! The driver for threads: [`retry`] makes the attempts of a closure that blocks, and waits by parking the thread.
//!
//! A run here is built like an async one, by the same [`Retry`], and decides the same; it ends in
//! [`.call()`](Retry::call) instead of `.await`, or in [`.report()`](Retry::report) and [`.call()`](Reported::call).
//!
//! # Stopping
//!
//! [`.cancel_on(&flag)`](Retry::cancel_on) with a [`StopFlag`] ends a wait at once when another thread stops it; any
//! future will do as well, such as a runtime's cancellation token. There is no `.attempt_timeout`: a call that blocks
//! cannot be taken back from its thread. Give the operation a limit of its own, such as the read timeout of a socket;
//! [`Attempt::remaining`] tells it what is left until the deadline.
//!
//! # Waiting
//!
//! No other thread takes part in a wait: its own parks until it is over, so an `unpark` that was meant for a `park` of
//! yours may be used up by it. `.clock(&clock)` waits for the sleeps of that clock instead, in tests an
//! [`InstantClock`](crate::clock::InstantClock), and `.sleep(async |wait| my_sleep(wait))` by a function that blocks.

mod stop_flag;

use core::future::{Future, ready};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

use crate::attempt::Attempt;
use crate::clock::{Clock, SystemClock};
use crate::env::{DEFAULT_RNG, DefaultRng, Env, NoSignal, Reads, Signal, Sleeps, Time};
use crate::error::{Auto, Marking};
use crate::hooks::{Hooks, NoHooks};
use crate::retry::operation::{InFlight, Operation};
use crate::retry::{Report, Reported, Retry};
use crate::rng::Rng;
use crate::run::Run;
use crate::schedule::Schedule;

pub use stop_flag::{StopFlag, Stopped};

/// Calls `op`, which blocks, until it succeeds, waiting between the attempts as `schedule` says.
///
/// All is as for the async [`retry`](crate::retry()), but that the run is made by [`.call()`](Retry::call), on the thread
/// that calls it, and has no [`.attempt_timeout`](Retry::attempt_timeout).
///
/// ```
/// use std::time::Duration;
/// use relent::{Policy, blocking, clock::InstantClock};
///
/// const POLICY: Policy = Policy::fixed(Duration::from_secs(1));
///
/// let clock = InstantClock::new();
/// let op = |attempt: relent::Attempt| if attempt.number() < 3 { Err("busy") } else { Ok(42) };
/// let run = blocking::retry(op, POLICY).when(|e| *e == "busy").clock(&clock);
/// assert_eq!(run.call(), Ok(42));
/// assert_eq!(clock.waits(), [Duration::from_secs(1), Duration::from_secs(1)]);
/// ```
///
/// It is no future, so that no executor's thread is blocked by mistake:
///
/// ```compile_fail,E0277
/// # use relent::{Policy, blocking};
/// # async {
/// blocking::retry(|_| Ok::<_, &str>(42), Policy::DEFAULT).await
/// # };
/// ```
pub const fn retry<F, T, E, S, KnownOnceCalled>(
    op: F,
    schedule: S,
) -> Retry<Blocking<F>, S, NoHooks, Env<Parked, DefaultRng, Auto<KnownOnceCalled>, NoSignal>>
where
    F: FnMut(Attempt) -> Result<T, E>,
    S: Schedule,
{
    Retry::new(Blocking(op), Run::new(schedule, NoHooks, Parked, DEFAULT_RNG), NoSignal)
}

/// The operation of a run of [`blocking::retry`](retry).
#[derive(Clone, Copy, Debug)]
pub struct Blocking<F>(F);

impl<F: FnMut(Attempt) -> Result<T, E>, T, E> Operation for Blocking<F> {
    type Output = T;
    type Error = E;
}

/// An attempt is over when its call returns, so none is ever kept in flight.
impl<F: FnMut(Attempt) -> Result<T, E>, T, E, C: Sleeps> InFlight<C> for Blocking<F> {
    type Running = core::convert::Infallible;
}

impl<F> Blocking<F> {
    /// The same operation for the async driver, blocking in the call that begins an attempt.
    fn into_async<T, E>(self) -> impl FnMut(Attempt) -> core::future::Ready<Result<T, E>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
    {
        let Self(mut op) = self;
        move |attempt| ready(op(attempt))
    }
}

impl<F, T, E, S, H, C, R, M, G> Retry<Blocking<F>, S, H, Env<C, R, M, G>>
where
    F: FnMut(Attempt) -> Result<T, E>,
    S: Schedule,
    H: Hooks<E>,
    C: Time,
    R: Rng,
    M: Marking<E>,
    G: Signal,
{
    /// Makes the run of a [`blocking::retry`](retry) on this thread, and returns the operation's own result.
    ///
    /// # Errors
    ///
    /// What the last attempt failed with.
    ///
    /// ```
    /// # use relent::{Policy, blocking};
    /// assert_eq!(blocking::retry(|_| Err::<(), _>("busy"), Policy::immediate()).call(), Err("busy"));
    /// ```
    pub fn call(self) -> Result<T, E> {
        block_on(self.map_op(Blocking::into_async))
    }
}

impl<F, T, E, S, H, C, R, M, G> Reported<Blocking<F>, S, H, Env<C, R, M, G>>
where
    F: FnMut(Attempt) -> Result<T, E>,
    S: Schedule,
    H: Hooks<E>,
    C: Time,
    R: Rng,
    M: Marking<E>,
    G: Signal,
{
    /// Makes the run of a [`blocking::retry`](retry) on this thread, and returns its report.
    ///
    /// ```
    /// # use relent::{Policy, blocking, retry::StopReason};
    /// let report = blocking::retry(|_| Err::<(), _>("busy"), Policy::immediate()).report().call();
    /// assert_eq!((report.attempts, report.stop), (3, Some(StopReason::Exhausted)));
    /// ```
    pub fn call(self) -> Report<T, E> {
        block_on(self.into_retry().map_op(Blocking::into_async).report())
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// The time of a blocking run to which no clock was given: the system's, and waits that park the thread.
///
/// Not a [`Clock`], whose sleeps must not block.
#[derive(Clone, Copy, Debug)]
pub struct Parked;

impl Sleeps for Parked {
    type Sleep = ParkedSleep;
}

impl Time for Parked {
    fn now(&self) -> Duration {
        SystemClock.now()
    }

    fn timer(&mut self, duration: Duration) -> ParkedSleep {
        ParkedSleep { deadline: SystemClock.now().saturating_add(duration) }
    }
}

impl Reads for Parked {
    fn read(&self) -> Duration {
        SystemClock.now()
    }
}

/// A wait of a run of [`blocking::retry`](retry): it parks the thread that polls it.
#[derive(Debug)]
#[must_use = "a sleep does nothing unless polled"]
pub struct ParkedSleep {
    deadline: Duration,
}

impl Future for ParkedSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let remaining = || self.deadline.saturating_sub(SystemClock.now());
        thread::park_timeout(remaining());
        if remaining().is_zero() {
            return Poll::Ready(());
        }
        // Whatever ended the park early, a stop signal perhaps, took this thread's token with it.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
