//! Who is told what a backoff does.

use core::fmt;
use core::time::Duration;

use super::Exhausted;
use crate::hooks::{And, NoHooks};

/// An observer of a backoff.
pub trait Watch {
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
    fn delay_changed(&mut self, delay: Duration) {
        self.0.delay_changed(delay);
        self.1.delay_changed(delay);
    }

    fn gave_up(&mut self, exhausted: &Exhausted) {
        self.0.gave_up(exhausted);
        self.1.gave_up(exhausted);
    }
}

/// An observer of the delay.
#[derive(Clone, Copy)]
pub struct OnDelayChange<F>(pub(super) F);

impl<F: FnMut(Duration)> Watch for OnDelayChange<F> {
    fn delay_changed(&mut self, delay: Duration) {
        (self.0)(delay);
    }
}

impl<F> fmt::Debug for OnDelayChange<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDelayChange")
    }
}

/// An observer of the end.
#[derive(Clone, Copy)]
pub struct OnGiveUp<F>(pub(super) F);

impl<F: FnMut(&Exhausted)> Watch for OnGiveUp<F> {
    fn gave_up(&mut self, exhausted: &Exhausted) {
        (self.0)(exhausted);
    }
}

impl<F> fmt::Debug for OnGiveUp<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnGiveUp")
    }
}
