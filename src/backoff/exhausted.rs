//! The refusal of a further attempt.

use core::error::Error;
use core::fmt;

use crate::decision::StopReason;

/// A [`Backoff`](super::Backoff) has given up: no attempt follows until a success or a reset.
///
/// ```
/// use core::time::Duration;
/// use relent::backoff::Backoff;
/// use relent::retry::StopReason;
///
/// let mut backoff = Backoff::new([Duration::from_secs(1)]); // one wait, so two attempts
/// backoff.failed();
/// backoff.failed();
/// let exhausted = backoff.attempt().unwrap_err();
/// assert_eq!((exhausted.reason(), exhausted.failures()), (StopReason::Exhausted, 2));
/// assert_eq!(exhausted.to_string(), "gave up at failure 2: attempts used up");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    reason: StopReason,
    failures: u32,
}

impl Exhausted {
    pub(super) const fn new(reason: StopReason, failures: u32) -> Self {
        Self { reason, failures }
    }

    /// Why no attempt follows.
    #[must_use]
    pub const fn reason(&self) -> StopReason {
        self.reason
    }

    /// How many failures there were, the last one included.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gave up at failure {}: {}", self.failures, self.reason)
    }
}

impl Error for Exhausted {}
