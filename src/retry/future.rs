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
    /// An attempt comes next; the wait before it was this long.
    Ready(Duration),
    /// An attempt is in flight.
    Running(A),
    /// A wait is on; `held` is what the last attempt failed with, if a signal could end the wait.
    Waiting { sleep: W, delay: Duration, held: E },
    /// The run has ended, or something panicked.
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
    Ready(Duration),
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
                Self::Ready(delay) => Step::Ready(*delay),
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
    pub(super) fn drive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended<F::Output, F::Error>> {
        let Parts { op, run, mut signal, mut state } = self.project();
        let mut attempts = 0;
        loop {
            let previous_delay = match state.as_mut().project() {
                Step::New => {
                    run.begin();
                    // A signal that has come already does not keep the first attempt from being made.
                    signal.as_mut().has_come(cx);
                    Duration::ZERO
                }
                Step::Ready(delay) => delay,
                Step::Waiting { sleep, delay, held } => {
                    let stopped = signal.as_mut().has_come(cx).then(|| G::release(held)).flatten();
                    if let Some(error) = stopped {
                        state.set(State::Finished);
                        run.hooks.event(&Event::Cancelled);
                        return Poll::Ready((Err(error), Some(StopReason::Cancelled)));
                    }
                    ready!(sleep.poll(cx));
                    run.clock.slept(delay);
                    delay
                }
                Step::Running(attempt) => {
                    let outcome = ready!(op.poll(attempt, cx));
                    // The attempt is dropped before anything else happens, so that no two are ever alive.
                    state.set(State::Finished);
                    let (error, is_timeout) = match outcome {
                        Outcome::Done(Ok(value)) => {
                            run.succeeded();
                            return Poll::Ready((Ok(value), None));
                        }
                        Outcome::Done(Err(error)) => (error, false),
                        Outcome::TimedOut(error) => (error, true),
                    };
                    match run.failed::<F::Error, M>(&error, is_timeout, || signal.as_mut().has_come(cx)) {
                        Err(reason) => return Poll::Ready((Err(error), Some(reason))),
                        Ok(Duration::ZERO) => state.set(State::Ready(Duration::ZERO)),
                        Ok(delay) => {
                            let held = G::hold(error);
                            let sleep = run.clock.timer(delay);
                            state.set(State::Waiting { sleep, delay, held });
                        }
                    }
                    attempts += 1;
                    if attempts == ATTEMPTS_PER_POLL {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    continue;
                }
                Step::Finished => panic!("a retry was polled after it had ended"),
            };
            // Should beginning the attempt panic, nothing of the wait is polled again.
            state.set(State::Finished);
            let attempt = op.begin(run.attempt(previous_delay), &mut run.clock);
            state.set(State::Running(attempt));
        }
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
