//! What a run's builder stacks up: predicates, hints, observers, a budget.
//!
//! Each is a small type of its own, so that a run carries only what was asked of it and an unused hook costs nothing.

use core::fmt;
use core::time::Duration;

#[cfg(target_has_atomic = "64")]
use crate::budget::Budget;
use crate::decision::{HintLimit, StopReason};

/// A retry that is about to be waited for.
///
/// ```
/// use core::time::Duration;
/// use relent::{Policy, clock::InstantClock, retry};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut lines = Vec::new();
/// let run = retry(async |_| Err::<(), _>("busy"), Policy::fixed(Duration::from_secs(1)))
///     .on_retry(|r| {
///         let (attempt, of) = (r.attempt, r.max_attempts);
///         lines.push(format!("{attempt} of {of}: {}; again in {:?}", r.error, r.delay));
///     })
///     .clock(InstantClock::new());
/// assert_eq!(run.await, Err("busy"));
/// assert_eq!(lines, ["1 of 3: busy; again in 1s", "2 of 3: busy; again in 1s"]);
/// # });
/// ```
///
/// `Debug` prints no error text.
#[non_exhaustive]
pub struct Retrying<'a, E> {
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// All attempts the run may make; 0 means unbounded.
    pub max_attempts: u32,
    /// The wait to come: jitter drawn, hint included.
    pub delay: Duration,
    /// What the attempt failed with.
    pub error: &'a E,
}

impl<E> fmt::Debug for Retrying<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying")
            .field("attempt", &self.attempt)
            .field("max_attempts", &self.max_attempts)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// Something that happened in a run.
///
/// A run emits `Scheduled` before each wait, and one of the others at its end. A run that is dropped emits nothing more,
/// and a run that was allowed a single attempt has nothing to exhaust. `Debug` prints no error text.
///
/// ```
/// use core::time::Duration;
/// use relent::{Attempt, Policy, clock::InstantClock, retry, retry::Event};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// /// The events of a run that succeeds at attempt `success`, and fails with "no" at attempt 3.
/// async fn events(success: u32, policy: Policy) -> Vec<String> {
///     let op = async |a: Attempt| match a.number() {
///         n if n == success => Ok(()),
///         3 => Err("no"),
///         _ => Err("busy"),
///     };
///     let mut events = Vec::new();
///     let run = retry(op, policy).when(|e| *e != "no").clock(InstantClock::new());
///     let _ = run.on_event(|event| events.push(match event {
///         Event::Scheduled { attempt, .. } => format!("{attempt} scheduled"),
///         Event::Succeeded { attempts } => format!("{attempts} succeeded"),
///         Event::Exhausted { attempts, error } => format!("{attempts} exhausted: {error}"),
///         Event::Declined { attempt, reason, .. } => format!("{attempt} {reason}"),
///         Event::Cancelled => "cancelled".to_owned(),
///         _ => unreachable!(),
///     })).await;
///     events
/// }
///
/// let policy = Policy::fixed(Duration::from_secs(1));
/// assert_eq!(events(2, policy).await, ["1 scheduled", "2 succeeded"]);
/// assert_eq!(events(9, policy.max_attempts(2)).await, ["1 scheduled", "2 exhausted: busy"]);
/// assert_eq!(
///     events(9, policy.unbounded()).await,
///     ["1 scheduled", "2 scheduled", "3 declined by a predicate"],
/// );
/// # });
/// ```
#[non_exhaustive]
pub enum Event<'a, E> {
    /// A retry will follow after `delay`.
    Scheduled {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// The wait to come: jitter drawn, hint included.
        delay: Duration,
        /// What the attempt failed with.
        error: &'a E,
    },
    /// The run succeeded.
    Succeeded {
        /// How many attempts it took.
        attempts: u32,
    },
    /// The last allowed attempt failed.
    Exhausted {
        /// How many attempts were made.
        attempts: u32,
        /// What the last attempt failed with.
        error: &'a E,
    },
    /// The run ended before its attempts were used up.
    Declined {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// What it failed with.
        error: &'a E,
        /// Why no retry follows.
        reason: StopReason,
    },
    /// The stop signal ended the run.
    Cancelled,
}

impl<E> fmt::Debug for Event<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduled { attempt, delay, .. } => {
                f.debug_struct("Scheduled").field("attempt", attempt).field("delay", delay).finish_non_exhaustive()
            }
            Self::Succeeded { attempts } => f.debug_struct("Succeeded").field("attempts", attempts).finish(),
            Self::Exhausted { attempts, .. } => {
                f.debug_struct("Exhausted").field("attempts", attempts).finish_non_exhaustive()
            }
            Self::Declined { attempt, reason, .. } => {
                f.debug_struct("Declined").field("attempt", attempt).field("reason", reason).finish_non_exhaustive()
            }
            Self::Cancelled => f.write_str("Cancelled"),
        }
    }
}

/// What the stack of hooks answers, with the answer of an empty stack as the default.
pub trait Hooks<E> {
    /// The run makes its first attempt.
    fn started(&mut self) {}

    /// Whether every predicate wants a retry of `error`.
    fn is_wanted(&mut self, error: &E) -> bool {
        let _ = error;
        true
    }

    /// The longest hint that a closure reads from `error`.
    fn hint(&mut self, error: &E) -> Option<Duration> {
        let _ = error;
        None
    }

    /// The limit on hints that was set last.
    fn hint_limit(&self) -> Option<HintLimit> {
        None
    }

    /// Whether the operation may be repeated after it was executed, as set last.
    fn idempotent(&self) -> Option<bool> {
        None
    }

    /// Takes one retry from each budget, or says that one had none.
    fn spend(&mut self) -> bool {
        true
    }

    /// A retry will happen.
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        let _ = retrying;
    }

    /// Something happened.
    fn event(&mut self, event: &Event<'_, E>) {
        let _ = event;
    }
}

/// No hook at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl<E> Hooks<E> for NoHooks {}

/// The hooks set so far, and one more.
#[derive(Clone, Copy, Debug)]
pub struct And<H, T>(pub(crate) H, pub(crate) T);

impl<E, H: Hooks<E>, T: Hooks<E>> Hooks<E> for And<H, T> {
    #[inline]
    fn started(&mut self) {
        self.0.started();
        self.1.started();
    }

    #[inline]
    fn is_wanted(&mut self, error: &E) -> bool {
        self.0.is_wanted(error) && self.1.is_wanted(error)
    }

    #[inline]
    fn hint(&mut self, error: &E) -> Option<Duration> {
        self.0.hint(error).max(self.1.hint(error))
    }

    #[inline]
    fn hint_limit(&self) -> Option<HintLimit> {
        self.1.hint_limit().or_else(|| self.0.hint_limit())
    }

    #[inline]
    fn idempotent(&self) -> Option<bool> {
        self.1.idempotent().or_else(|| self.0.idempotent())
    }

    #[inline]
    fn spend(&mut self) -> bool {
        self.0.spend() && self.1.spend()
    }

    #[inline]
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        self.0.retrying(retrying);
        self.1.retrying(retrying);
    }

    #[inline]
    fn event(&mut self, event: &Event<'_, E>) {
        self.0.event(event);
        self.1.event(event);
    }
}

macro_rules! hook {
    ($(#[$doc:meta])* $name:ident: $debug:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<F>(pub(crate) F);

        impl<F> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($debug)
            }
        }
    };
}

hook!(
    /// A predicate on the error.
    When: "When"
);
hook!(
    /// A reader of hints.
    RetryAfter: "RetryAfter"
);
hook!(
    /// An observer of retries.
    OnRetry: "OnRetry"
);
hook!(
    /// An observer of events.
    OnEvent: "OnEvent"
);

impl<E, P: FnMut(&E) -> bool> Hooks<E> for When<P> {
    #[inline]
    fn is_wanted(&mut self, error: &E) -> bool {
        (self.0)(error)
    }
}

impl<E, F: FnMut(&E) -> Option<Duration>> Hooks<E> for RetryAfter<F> {
    #[inline]
    fn hint(&mut self, error: &E) -> Option<Duration> {
        (self.0)(error)
    }
}

impl<E, F: FnMut(&Retrying<'_, E>)> Hooks<E> for OnRetry<F> {
    #[inline]
    fn retrying(&mut self, retrying: &Retrying<'_, E>) {
        (self.0)(retrying);
    }
}

impl<E, F: FnMut(&Event<'_, E>)> Hooks<E> for OnEvent<F> {
    #[inline]
    fn event(&mut self, event: &Event<'_, E>) {
        (self.0)(event);
    }
}

impl<E> Hooks<E> for HintLimit {
    #[inline]
    fn hint_limit(&self) -> Option<HintLimit> {
        Some(*self)
    }
}

/// Whether the operation may be repeated after it was executed.
#[derive(Clone, Copy, Debug)]
pub struct Idempotent(pub(crate) bool);

impl<E> Hooks<E> for Idempotent {
    #[inline]
    fn idempotent(&self) -> Option<bool> {
        Some(self.0)
    }
}

/// A budget that counts the run and is asked for each retry.
#[cfg(target_has_atomic = "64")]
#[derive(Clone, Copy, Debug)]
pub struct Budgeted<B>(pub(crate) B);

#[cfg(target_has_atomic = "64")]
impl<E, B: Budget> Hooks<E> for Budgeted<B> {
    #[inline]
    fn started(&mut self) {
        self.0.record_run();
    }

    #[inline]
    fn spend(&mut self) -> bool {
        self.0.try_retry()
    }
}
