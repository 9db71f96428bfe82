//! The run as a future: its state, pinned, and the loop that makes the attempts.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use super::operation::{Attempts, InFlight, Operation, Outcome};
use super::{Retry, StopReason};
use crate::env::{Env, Environment, Signal, Sleeps, Time};
use crate::error::Marking;
use crate::hooks::{Event, Hooks};
use crate::rng::Rng;
use crate::run::Run;
use crate::schedule::Schedule;

/// How many attempts one poll may make before it lets the executor's other tasks, timers and cancellation have a turn.
const ATTEMPTS_PER_POLL: u32 = 32;

/// How far a run has come.
pub(super) enum State<A, W, E> {
    /// No attempt was made yet.
    New,
    /// An attempt comes next, without a wait; holds what the last one failed with, if a signal could still end the run.
    Ready(E),
    /// An attempt is in flight.
    Running(A),
    /// A wait is on; `held` as above.
    Waiting { sleep: W, delay: Duration, held: E },
    /// The run has ended, or is between two attempts, where a panic ends it.
    Finished,
}

/// A pinned run, taken apart: the attempt, the wait and the signal stay where they are, the rest may move.
struct Parts<'a, F: InFlight<X::Clock>, S, H, X: Environment> {
    op: &'a mut F,
    run: &'a mut Run<S, H, X::Clock, X::Rng>,
    signal: Pin<&'a mut X::Signal>,
    state: Pin<&'a mut StateOf<F, X>>,
}

pub(super) type StateOf<F, X> = State<
    <F as InFlight<<X as Environment>::Clock>>::Running,
    <<X as Environment>::Clock as Sleeps>::Sleep,
    <<X as Environment>::Signal as Signal>::Held<<F as Operation>::Error>,
>;

/// A pinned [`State`], taken apart.
enum Step<'a, A, W, E> {
    New,
    Ready(&'a mut E),
    Running(Pin<&'a mut A>),
    Waiting { sleep: Pin<&'a mut W>, delay: Duration, held: &'a mut E },
    Finished,
}

impl<A, W, E> State<A, W, E> {
    #[inline]
    #[allow(unsafe_code, reason = "pin projection")]
    fn project(self: Pin<&mut Self>) -> Step<'_, A, W, E> {
        // SAFETY: the attempt and the sleep are only ever handed out pinned, and are dropped in place by `Pin::set`;
        // `State` has no `Drop` of its own.
        unsafe {
            match self.get_unchecked_mut() {
                Self::New => Step::New,
                Self::Ready(held) => Step::Ready(held),
                Self::Running(attempt) => Step::Running(Pin::new_unchecked(attempt)),
                Self::Waiting { sleep, delay, held } => {
                    Step::Waiting { sleep: Pin::new_unchecked(sleep), delay: *delay, held }
                }
                Self::Finished => Step::Finished,
            }
        }
    }
}

impl<F: InFlight<X::Clock>, S, H, X: Environment> Retry<F, S, H, X> {
    #[inline]
    #[allow(unsafe_code, reason = "pin projection")]
    fn project(self: Pin<&mut Self>) -> Parts<'_, F, S, H, X> {
        // SAFETY: `signal` and `state` are only ever handed out pinned, nothing moves them out, and `Retry` has no
        // `Drop` of its own; the other fields are never pinned.
        unsafe {
            let this = self.get_unchecked_mut();
            Parts {
                op: &mut this.op,
                run: &mut this.run,
                signal: Pin::new_unchecked(&mut this.signal),
                state: Pin::new_unchecked(&mut this.state),
            }
        }
    }
}

/// How a run ended: its result, and why it stopped if that is an error.
pub(super) type Ended<T, E> = (Result<T, E>, Option<StopReason>);

impl<F, S, H, C, R, M, G> Retry<F, S, H, Env<C, R, M, G>>
where
    F: Attempts<C>,
    S: Schedule,
    H: Hooks<F::Error>,
    C: Time,
    R: Rng,
    M: Marking<F::Error>,
    G: Signal,
{
    /// When the run begins, for a report of how long it took.
    pub(super) fn start(self: Pin<&mut Self>) -> Duration {
        self.project().run.clock.start()
    }

    #[inline]
    pub(super) fn drive(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended<F::Output, F::Error>> {
        let mut this = self.as_mut().project();
        let Step::New = this.state.as_mut().project() else {
            return self.resume(None, cx);
        };
        // Before anything is asked: should a budget, a signal or the operation panic, the run has ended.
        this.state.set(State::Finished);
        this.run.begin();
        // A signal that has come already does not keep the first attempt from being made.
        this.signal.as_mut().has_come(cx);
        this.begin_attempt(Duration::ZERO);
        // Apart from the loop: where an operation succeeds at its first poll, a run costs little more than its call.
        match ready!(this.poll_attempt(cx)) {
            Outcome::Done(Ok(value)) => Poll::Ready(this.succeeded(value)),
            failed => self.resume(Some(failed), cx),
        }
    }

    /// Goes on from the outcome of an attempt, or from where the last poll left off.
    #[inline(never)]
    fn resume(
        self: Pin<&mut Self>,
        mut outcome: Option<Outcome<F::Output, F::Error>>,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<F::Output, F::Error>> {
        let mut this = self.project();
        for _ in 0..ATTEMPTS_PER_POLL {
            let ended = if let Some(outcome) = outcome.take() {
                outcome
            } else {
                if let Some(error) = ready!(this.poll_wait(cx)) {
                    return Poll::Ready((Err(error), Some(StopReason::Cancelled)));
                }
                ready!(this.poll_attempt(cx))
            };
            let (error, is_timeout) = match ended {
                Outcome::Done(Ok(value)) => return Poll::Ready(this.succeeded(value)),
                Outcome::Done(Err(error)) => (error, false),
                Outcome::TimedOut(limit, error) => {
                    this.run.clock.slept(limit);
                    (error, true)
                }
            };
            match this.run.failed::<F::Error, M>(&error, is_timeout, || this.signal.as_mut().has_come(cx)) {
                Err(reason) => return Poll::Ready((Err(error), Some(reason))),
                Ok(Duration::ZERO) => this.state.set(State::Ready(G::hold(error))),
                Ok(delay) => {
                    let held = G::hold(error);
                    let sleep = this.run.clock.timer(delay);
                    this.state.set(State::Waiting { sleep, delay, held });
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<F, S, H, C, R, M, G> Parts<'_, F, S, H, Env<C, R, M, G>>
where
    F: Attempts<C>,
    S: Schedule,
    H: Hooks<F::Error>,
    C: Time,
    R: Rng,
    M: Marking<F::Error>,
    G: Signal,
{
    #[inline]
    fn begin_attempt(&mut self, previous_delay: Duration) {
        let attempt = self.op.begin(self.run.attempt(previous_delay), &mut self.run.clock);
        self.state.set(State::Running(attempt));
    }

    #[inline]
    fn poll_attempt(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<F::Output, F::Error>> {
        let Step::Running(attempt) = self.state.as_mut().project() else {
            panic!("a retry was polled after it had ended");
        };
        let outcome = ready!(self.op.poll(attempt, cx));
        // The attempt is dropped before anything else happens, so that no two are ever alive.
        self.state.set(State::Finished);
        Poll::Ready(outcome)
    }

    #[inline]
    fn succeeded(&mut self, value: F::Output) -> Ended<F::Output, F::Error> {
        self.run.succeeded();
        (Ok(value), None)
    }

    /// Begins the next attempt once the wait before it is over. Ready with the held error if the signal came instead.
    #[inline]
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Error>> {
        let (sleep, delay, held) = match self.state.as_mut().project() {
            Step::Ready(held) => (None, Duration::ZERO, held),
            Step::Waiting { sleep, delay, held } => (Some(sleep), delay, held),
            Step::New | Step::Running(_) | Step::Finished => return Poll::Ready(None),
        };
        let stopped = self.signal.as_mut().has_come(cx).then(|| G::release(held)).flatten();
        if stopped.is_some() {
            self.state.set(State::Finished);
            self.run.hooks.event(&Event::Cancelled);
            return Poll::Ready(stopped);
        }
        if let Some(sleep) = sleep {
            ready!(sleep.poll(cx));
            self.run.clock.slept(delay);
        }
        // Should beginning the attempt panic, nothing of the wait is polled again.
        self.state.set(State::Finished);
        self.begin_attempt(delay);
        Poll::Ready(None)
    }
}

impl<F, S, H, C, R, M, G> Future for Retry<F, S, H, Env<C, R, M, G>>
where
    F: Attempts<C>,
    S: Schedule,
    H: Hooks<F::Error>,
    C: Time,
    R: Rng,
    M: Marking<F::Error>,
    G: Signal,
{
    type Output = Result<F::Output, F::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.drive(cx).map(|(result, _)| result)
    }
}
