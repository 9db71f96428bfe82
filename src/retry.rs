//! The async driver: [`retry`] calls an operation until it succeeds, or until something says stop.
//!
//! A run is a future and its own builder. It needs no runtime, and allocates and spawns nothing itself (its clock may: the
//! default one is a thread with a table); it is `Send` when the operation is. Dropping it cancels everything at once: the
//! attempt in flight, or the wait.
//!
//! # What decides after a failure
//!
//! The checks are made in one fixed order, and the first that applies is the [`StopReason`]: a marker in the error's
//! chain, [`.when`](Retry::when), [`.idempotent`](Retry::idempotent), the attempts used up, the schedule's end, a
//! server's hint over the ceiling, the deadline, the stop signal, the retry budget. Only when all of them agree is a
//! token spent, an observer told, and a wait begun. The result is always the operation's own.
//!
//! A run inside the operation of another multiplies its attempts. Retry in one layer, or share a
//! [budget](crate::budget) between them.
//!
//! # Time
//!
//! A wait that cannot be followed by an attempt is never begun, and one that was begun is followed by its attempt, unless
//! the stop signal ends it. A zero wait touches no timer. A run whose attempts and waits are all ready at once yields to
//! its executor after every 32 attempts, so that other tasks, timers and cancellation live.
//!
//! # Size
//!
//! A run is as large as the operation's future or the clock's sleep, whichever is larger, for they share their place,
//! plus at most 112 bytes with a [`Policy`](crate::Policy) by value, or 72 with a reference to one, plus what was given to
//! it: what the operation and the hooks capture, a clock, a random source, a stop signal. With a stop signal the error
//! that a wait keeps counts to the sleep.

mod build;
mod future;
pub(crate) mod operation;
mod report;
mod surroundings;
mod with;

use core::fmt;
use core::future::Future;

use crate::attempt::Attempt;
pub use crate::decision::StopReason;
use crate::env::{DEFAULT_RNG, DEFAULT_TIME, DefaultRng, DefaultTime, Env, Environment, NoSignal};
use crate::error::Auto;
use crate::hooks::NoHooks;
pub use crate::hooks::{Event, Retrying};
use crate::run::Run;
use crate::schedule::Schedule;

use future::{State, StateOf};
pub use operation::AttemptTimeout;
use operation::InFlight;
pub use report::{Report, Reported};
pub use with::{OperationWith, With, retry_with};

/// Calls `op` until it succeeds, waiting between the attempts as `schedule` says.
///
/// `op` is called once for each attempt, after the wait before it, and may borrow. `schedule` is a
/// [`Policy`](crate::Policy), a list of waits, or any other [`Schedule`], by value or by reference; it sets the limits
/// on attempts and time unless the run has its own. The run starts when it is first polled.
///
/// The error type must be one that can carry markers: any `Error + 'static`, the usual boxes, `anyhow`, `eyre`, strings
/// and other plain data. For all others say [`.unmarked()`](Retry::unmarked).
///
/// An operation that needs `&mut` state ("async closure does not implement `FnMut` because it captures state") goes to
/// [`retry_with`], or into [the loop form](crate::backoff#the-loop-form).
///
/// ```
/// use core::time::Duration;
/// use relent::clock::InstantClock;
/// use relent::{Attempt, Policy, retry};
///
/// const POLICY: Policy = Policy::fixed(Duration::from_secs(1));
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let clock = InstantClock::new();
/// let op = async |attempt: Attempt| if attempt.number() < 3 { Err("busy") } else { Ok(42) };
/// assert_eq!(retry(op, POLICY).clock(&clock).await, Ok(42));
/// assert_eq!(clock.waits(), [Duration::from_secs(1), Duration::from_secs(1)]);
/// # });
/// ```
pub const fn retry<F, Fut, T, E, S, KnownOnceAwaited>(
    op: F,
    schedule: S,
) -> Retry<F, S, NoHooks, Env<DefaultTime, DefaultRng, Auto<KnownOnceAwaited>, NoSignal>>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    S: Schedule,
{
    Retry::new(op, Run::new(schedule, NoHooks, DEFAULT_TIME, DEFAULT_RNG), NoSignal)
}

/// A run of [`retry`]: its own builder, and the future that makes the attempts.
///
/// | what is set | by |
/// | --- | --- |
/// | which failures are retried | [`when`](Self::when), [`idempotent`](Self::idempotent), [`unmarked`](Self::unmarked) |
/// | limits | [`max_attempts`](Self::max_attempts), [`max_elapsed`](Self::max_elapsed), [`attempt_timeout`](Self::attempt_timeout), [`cancel_on`](Self::cancel_on), [`budget`](Self::budget) |
/// | a server's hint | [`retry_after`](Self::retry_after), [`max_retry_after`](Self::max_retry_after), [`clamp_retry_after`](Self::clamp_retry_after), [`respect_retry_after`](Self::respect_retry_after) |
/// | observing | [`on_retry`](Self::on_retry), [`on_event`](Self::on_event), [`report`](Self::report) |
/// | time and chance | [`clock`](Self::clock), [`sleep`](Self::sleep), [`rng`](Self::rng) |
#[cfg_attr(
    all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))),
    doc = "| without async | `call`, of a run of [`blocking`](crate::blocking) |"
)]
///
/// The parameters are the operation, the schedule, the hooks and the surroundings.
///
/// ```
/// use core::time::Duration;
/// use relent::{Attempt, Policy, clock::InstantClock, retry};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let clock = InstantClock::new();
/// let mut seen = Vec::new();
/// let get = async |a: Attempt| if a.number() < 3 { Err("busy") } else { Ok(42) };
/// let answer = retry(get, Policy::fixed(Duration::from_secs(1)))
///     .when(|e| *e == "busy")
///     .max_elapsed(Duration::from_secs(10))
///     .on_retry(|r| seen.push((r.attempt, *r.error)))
///     .clock(&clock)
///     .await;
/// assert_eq!(answer, Ok(42));
/// assert_eq!(seen, [(1, "busy"), (2, "busy")]);
/// # });
/// ```
#[must_use = "a retry makes no attempt until it is awaited, or called if it is blocking"]
// Laid out as written, for the reason that `Run` is.
#[repr(C)]
pub struct Retry<F: InFlight<X::Clock>, S, H, X: Environment> {
    op: F,
    run: Run<S, H, X::Clock, X::Rng>,
    signal: X::Signal,
    state: StateOf<F, X>,
}

impl<F: InFlight<X::Clock>, S, H, X: Environment> Retry<F, S, H, X> {
    pub(crate) const fn new(op: F, run: Run<S, H, X::Clock, X::Rng>, signal: X::Signal) -> Self {
        Self { op, run, signal, state: State::New }
    }

    pub(crate) fn map_op<O: InFlight<X::Clock>>(self, map: impl FnOnce(F) -> O) -> Retry<O, S, H, X> {
        Retry::new(map(self.op), self.run, self.signal)
    }
}

impl<F: InFlight<X::Clock>, S, H, X: Environment> fmt::Debug for Retry<F, S, H, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New => "new",
            State::Ready(_) => "ready",
            State::Running(_) => "running",
            State::Waiting { .. } => "waiting",
            State::Finished => "finished",
        };
        f.debug_struct("Retry")
            .field("failures", &self.run.progress.failures())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
