//! Who is told what a backoff does, and who is asked.

use core::time::Duration;

use super::Exhausted;
#[cfg(target_has_atomic = "64")]
use crate::budget::Budget;
use crate::decision::HintLimit;
#[cfg(target_has_atomic = "64")]
use crate::hooks::Budgeted;
use crate::hooks::{And, Hooks, NoHooks};

/// A hook of a backoff, which knows nothing of the type of its errors.
pub trait Watch {
    /// A series of failures begins, or there was a success without one.
    fn started(&mut self) {}

    /// Takes one retry from each budget, or says that one had none.
    fn spend(&mut self) -> bool {
        true
    }

    /// The delay is another one now.
    fn delay_changed(&mut self, delay: Duration) {
        let _ = delay;
    }

    /// No attempt will follow.
    fn gave_up(&mut self, exhausted: &Exhausted) {
        let _ = exhausted;
    }
}

impl Watch for NoHooks {}

impl<A: Watch, B: Watch> Watch for And<A, B> {
    fn started(&mut self) {
        self.0.started();
        self.1.started();
    }

    fn spend(&mut self) -> bool {
        self.0.spend() && self.1.spend()
    }

    fn delay_changed(&mut self, delay: Duration) {
        self.0.delay_changed(delay);
        self.1.delay_changed(delay);
    }

    fn gave_up(&mut self, exhausted: &Exhausted) {
        self.0.gave_up(exhausted);
        self.1.gave_up(exhausted);
    }
}

#[cfg(target_has_atomic = "64")]
impl<B: Budget> Watch for Budgeted<B> {
    fn started(&mut self) {
        self.0.record_run();
    }

    fn spend(&mut self) -> bool {
        self.0.try_retry()
    }
}

/// The hooks of a backoff as those of its run, whatever the errors are.
pub(super) struct Watched<W> {
    pub(super) watchers: W,
    pub(super) hint_limit: HintLimit,
}

impl Watched<NoHooks> {
    pub(super) const NONE: Self = Self { watchers: NoHooks, hint_limit: HintLimit::DEFAULT };
}

impl<W> Watched<W> {
    pub(super) fn and<V>(self, watcher: V) -> Watched<And<W, V>> {
        Watched { watchers: And(self.watchers, watcher), hint_limit: self.hint_limit }
    }
}

impl<E, W: Watch> Hooks<E> for Watched<W> {
    fn started(&mut self) {
        self.watchers.started();
    }

    fn hint_limit(&self) -> Option<HintLimit> {
        Some(self.hint_limit)
    }

    fn spend(&mut self) -> bool {
        self.watchers.spend()
    }
}

/// An observer of the delay.
#[derive(Clone, Copy, Debug)]
pub struct OnDelayChange<F>(pub(super) F);

impl<F: FnMut(Duration)> Watch for OnDelayChange<F> {
    fn delay_changed(&mut self, delay: Duration) {
        (self.0)(delay);
    }
}

/// An observer of the end.
#[derive(Clone, Copy, Debug)]
pub struct OnGiveUp<F>(pub(super) F);

impl<F: FnMut(&Exhausted)> Watch for OnGiveUp<F> {
    fn gave_up(&mut self, exhausted: &Exhausted) {
        (self.0)(exhausted);
    }
}
