//! What a run does for one attempt: call the operation, and give it up after its time limit.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::attempt::Attempt;
use crate::env::{Sleeps, Time};

/// What an operation yields.
pub trait Operation {
    /// The value of a successful attempt.
    type Output;
    /// The error of a failed attempt.
    type Error;
}

impl<F, Fut, T, E> Operation for F
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = T;
    type Error = E;
}

/// What a run keeps of an attempt in flight, with clock `C` at hand.
pub trait InFlight<C: Sleeps>: Operation {
    /// An attempt in flight.
    type Running;
}

/// How the attempts of an operation are made by a run that is polled; what blocks has none.
pub trait Attempts<C: Sleeps>: InFlight<C> {
    /// Begins an attempt.
    fn begin(&mut self, attempt: Attempt, clock: &mut C) -> Self::Running
    where
        C: Time;

    /// Polls it.
    fn poll(
        &mut self,
        running: Pin<&mut Self::Running>,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome<Self::Output, Self::Error>>;
}

/// How an attempt ended.
#[derive(Debug)]
pub enum Outcome<T, E> {
    /// The operation's own result.
    Done(Result<T, E>),
    /// It was given up after this long, which the error stands for.
    TimedOut(Duration, E),
}

impl<F, Fut, T, E, C> InFlight<C> for F
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    C: Sleeps,
{
    type Running = Fut;
}

impl<F, Fut, T, E, C> Attempts<C> for F
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    C: Sleeps,
{
    #[inline]
    fn begin(&mut self, attempt: Attempt, _: &mut C) -> Fut {
        self(attempt)
    }

    #[inline]
    fn poll(&mut self, running: Pin<&mut Fut>, cx: &mut Context<'_>) -> Poll<Outcome<T, E>> {
        running.poll(cx).map(Outcome::Done)
    }
}

/// An attempt was given up after its time limit.
///
/// The error that `.attempt_timeout` hands to its closure.
///
/// ```
/// use core::time::Duration;
/// use relent::retry::AttemptTimeout;
///
/// let timeout = AttemptTimeout::new(Duration::from_millis(1500));
/// assert_eq!(timeout.limit(), Duration::from_millis(1500));
/// assert_eq!(timeout.to_string(), "the attempt took longer than 1.5s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimeout {
    limit: Duration,
}

impl AttemptTimeout {
    /// An attempt that took longer than `limit`: for a time limit of your own.
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use relent::retry::AttemptTimeout;
    /// const TIMEOUT: AttemptTimeout = AttemptTimeout::new(Duration::from_secs(2));
    /// assert_eq!(TIMEOUT.to_string(), "the attempt took longer than 2s");
    /// ```
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit }
    }

    /// How long the attempt was given: the limit of `.attempt_timeout`, or what was left until the deadline.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }
}

impl fmt::Display for AttemptTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the attempt took longer than {:?}", self.limit)
    }
}

impl core::error::Error for AttemptTimeout {}

/// An operation whose attempts have a time limit.
#[derive(Clone, Copy, Debug)]
pub struct Timed<F, P> {
    pub(super) op: F,
    pub(super) limit: Duration,
    pub(super) to_error: P,
}

/// An attempt in flight, and its timer.
#[derive(Debug)]
pub struct TimedAttempt<A, W> {
    attempt: A,
    timer: W,
    limit: Duration,
}

impl<F: Operation, P> Operation for Timed<F, P> {
    type Output = F::Output;
    type Error = F::Error;
}

impl<F: InFlight<C>, P, C: Sleeps> InFlight<C> for Timed<F, P> {
    type Running = TimedAttempt<F::Running, C::Sleep>;
}

impl<F, P, C> Attempts<C> for Timed<F, P>
where
    F: Attempts<C>,
    P: FnMut(AttemptTimeout) -> F::Error,
    C: Sleeps,
{
    fn begin(&mut self, attempt: Attempt, clock: &mut C) -> Self::Running
    where
        C: Time,
    {
        let limit = attempt.remaining().map_or(self.limit, |remaining| remaining.min(self.limit));
        // The timer first: what the operation does before it returns its future counts as well.
        let timer = clock.timer(limit);
        TimedAttempt { attempt: self.op.begin(attempt, clock), timer, limit }
    }

    #[allow(unsafe_code, reason = "pin projection")]
    fn poll(
        &mut self,
        running: Pin<&mut Self::Running>,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome<Self::Output, Self::Error>> {
        // SAFETY: `attempt` and `timer` are only ever handed out pinned, and `TimedAttempt` has no `Drop` of its own.
        let (attempt, timer, limit) = unsafe {
            let running = running.get_unchecked_mut();
            (Pin::new_unchecked(&mut running.attempt), Pin::new_unchecked(&mut running.timer), running.limit)
        };
        // The operation first: a result that is there counts, however late it was looked for.
        if let Poll::Ready(outcome) = self.op.poll(attempt, cx) {
            return Poll::Ready(outcome);
        }
        timer.poll(cx).map(|()| Outcome::TimedOut(limit, (self.to_error)(AttemptTimeout::new(limit))))
    }
}
