//! The right to make one call.

use core::fmt;
use core::mem::ManuallyDrop;

use super::word::Outcome;
use super::{CircuitBreaker, Transition};
use crate::clock::Clock;

/// The right to make one call, and the duty to say how it ended.
///
/// Dropping it is [`neutral`](Self::neutral): a call that was cancelled or panicked says nothing about the service, and
/// a probe that was dropped frees its slot at once.
///
/// A permit belongs to a generation of its breaker: its result counts only until the breaker leaves the state in which
/// it admitted the call. What a call reports later is ignored, success and failure alike.
///
/// ```
/// use relent::breaker::{CircuitBreaker, State};
///
/// let breaker = CircuitBreaker::new().failure_threshold(1);
/// let slow = breaker.acquire()?;
/// assert!(breaker.acquire()?.failure().is_some());
///
/// assert_eq!(slow.success(), None); // admitted before the trip
/// assert_eq!(breaker.state(), State::Open);
///
/// breaker.reset();
/// breaker.acquire()?.neutral(); // as if it had not been made
/// assert_eq!(breaker.state(), State::Closed);
/// # Ok::<(), relent::error::CircuitOpen>(())
/// ```
#[must_use = "a permit that is dropped reports a neutral outcome"]
pub struct Permit<'a, C: Clock> {
    breaker: &'a CircuitBreaker<C>,
    generation: u64,
}

#[allow(clippy::must_use_candidate, reason = "an outcome is reported for its effect")]
impl<'a, C: Clock> Permit<'a, C> {
    pub(super) const fn new(breaker: &'a CircuitBreaker<C>, generation: u64) -> Self {
        Self { breaker, generation }
    }

    /// The call succeeded: it ends a series of failures, and closes a half-open breaker when enough have succeeded.
    ///
    /// Returns the transition that this caused, if any.
    #[inline]
    pub fn success(self) -> Option<Transition> {
        self.report(Outcome::Success)
    }

    /// The call failed: it lengthens a series of failures, and opens the breaker when it is long enough, or half-open.
    ///
    /// Returns the transition that this caused, if any.
    pub fn failure(self) -> Option<Transition> {
        self.report(Outcome::Failure)
    }

    /// The call says nothing about the service: a permanent error of its input, say. A probe frees its slot.
    #[inline]
    pub fn neutral(self) {
        drop(self);
    }

    #[inline]
    fn report(self, outcome: Outcome) -> Option<Transition> {
        let permit = ManuallyDrop::new(self);
        permit.breaker.report(permit.generation, outcome)
    }
}

impl<C: Clock> Drop for Permit<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.breaker.report(self.generation, Outcome::Neutral);
    }
}

impl<C: Clock> fmt::Debug for Permit<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("breaker", &self.breaker.name).finish_non_exhaustive()
    }
}
