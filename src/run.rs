//! What every driver of a run carries, and what it does at the run's turning points.

use core::time::Duration;

use crate::attempt::Attempt;
use crate::decision::{self, Failure, HintLimit, StopReason};
use crate::env::Time;
use crate::error::{Marking, Signs};
use crate::hooks::{Event, Hooks, Retrying};
use crate::rng::Rng;
use crate::schedule::{Progress, Schedule};

/// One run: what it was given, and how far it has come.
///
/// In this order, as is [`Retry`](crate::retry::Retry): what a run has before it begins lies together, so that moving one
/// does not copy the empty room of its state. It saves a third of the instructions of a run that succeeds at once.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Run<S, H, C, R> {
    pub(crate) schedule: S,
    pub(crate) progress: Progress,
    pub(crate) hooks: H,
    pub(crate) clock: C,
    pub(crate) rng: R,
    /// The instant after which no attempt may begin.
    pub(crate) deadline: Option<Duration>,
}

impl<S, H, C, R> Run<S, H, C, R> {
    pub(crate) const fn new(schedule: S, hooks: H, clock: C, rng: R) -> Self {
        Self { schedule, hooks, clock, rng, progress: Progress::new(), deadline: None }
    }
}

impl<S: Schedule, H, C: Time, R: Rng> Run<S, H, C, R> {
    #[inline]
    pub(crate) fn begin<E>(&mut self)
    where
        H: Hooks<E>,
    {
        self.hooks.started();
        self.deadline = self.schedule.max_elapsed().map(|limit| self.deadline_after(limit));
    }

    // Out of line, as is `until`, to keep the clock out of the way of a run without a deadline.
    #[inline(never)]
    fn deadline_after(&mut self, limit: Duration) -> Duration {
        self.clock.start().saturating_add(limit)
    }

    #[inline(never)]
    fn until(&mut self, deadline: Duration) -> Duration {
        let now = self.clock.now();
        let deadline = decision::nearer(deadline, now, &self.schedule);
        self.deadline = Some(deadline);
        deadline.saturating_sub(now)
    }

    /// The attempt that now begins.
    #[inline]
    pub(crate) fn attempt(&mut self, previous_delay: Duration) -> Attempt {
        Attempt {
            number: self.progress.failures().saturating_add(1),
            max_attempts: decision::attempts_allowed(&self.schedule),
            previous_delay,
            remaining: self.remaining(),
        }
    }

    /// The time left until the deadline, which comes nearer if the clock has stepped back.
    #[inline]
    pub(crate) fn remaining(&mut self) -> Option<Duration> {
        self.deadline.map(|deadline| self.until(deadline))
    }

    #[inline]
    pub(crate) fn succeeded<E>(&mut self)
    where
        H: Hooks<E>,
    {
        self.hooks.event(&Event::Succeeded { attempts: self.progress.failures().saturating_add(1) });
    }

    /// Counts the failure, decides, and tells the observers.
    #[inline]
    pub(crate) fn failed<E, M>(
        &mut self,
        error: &E,
        is_timeout: bool,
        is_cancelled: impl FnMut() -> bool,
    ) -> Result<Duration, StopReason>
    where
        H: Hooks<E>,
        M: Marking<E>,
    {
        let mut failure = Judged {
            error,
            is_timeout,
            signs: M::signs(error),
            hooks: &mut self.hooks,
            clock: &self.clock,
            is_cancelled,
        };
        let decision =
            decision::decide(&self.schedule, &mut self.progress, &mut self.deadline, &mut self.rng, &mut failure);
        let attempt = self.progress.failures();
        match decision {
            Ok(delay) => {
                let max_attempts = decision::attempts_allowed(&self.schedule);
                self.hooks.retrying(&Retrying { attempt, max_attempts, delay, error });
                self.hooks.event(&Event::Scheduled { attempt, delay, error });
            }
            Err(StopReason::Exhausted) if attempt == 1 => {}
            Err(StopReason::Exhausted) => self.hooks.event(&Event::Exhausted { attempts: attempt, error }),
            Err(StopReason::Cancelled) => self.hooks.event(&Event::Cancelled),
            Err(reason) => self.hooks.event(&Event::Declined { attempt, error, reason }),
        }
        decision
    }
}

/// A failure and its surroundings, as the decision asks about them.
struct Judged<'a, E, H, C, G> {
    error: &'a E,
    is_timeout: bool,
    signs: Signs,
    hooks: &'a mut H,
    clock: &'a C,
    is_cancelled: G,
}

impl<E, H: Hooks<E>, C: Time, G: FnMut() -> bool> Failure for Judged<'_, E, H, C, G> {
    fn is_timeout(&self) -> bool {
        self.is_timeout
    }

    fn is_marked(&self) -> bool {
        self.signs.not_retryable
    }

    fn is_wanted(&mut self) -> bool {
        self.hooks.is_wanted(self.error)
    }

    fn may_repeat(&self) -> bool {
        self.signs.not_executed || self.hooks.idempotent().unwrap_or(true)
    }

    fn hint(&mut self) -> Option<(Duration, HintLimit)> {
        let hint = self.hooks.hint(self.error).max(self.signs.retry_after)?;
        Some((hint, self.hooks.hint_limit().unwrap_or(HintLimit::DEFAULT)))
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn is_cancelled(&mut self) -> bool {
        (self.is_cancelled)()
    }

    fn spend(&mut self) -> bool {
        self.hooks.spend()
    }
}
