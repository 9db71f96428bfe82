//! The refusal of a circuit breaker.

use core::{error::Error, fmt, time::Duration};

use super::Signs;

/// A circuit breaker refused the call, so the operation did not run.
///
/// Inside a run it is a hint to wait for [`retry_after`](Self::retry_after), and it may be retried even where the
/// operation is not idempotent.
///
/// ```
/// use std::{error::Error, time::Duration};
/// use relent::error::CircuitOpen;
///
/// let open = CircuitOpen::new("payments", Duration::from_millis(1500));
/// assert_eq!(open.to_string(), r#"circuit breaker "payments" is open, retry after 1.5s"#);
/// assert_eq!(open.source().unwrap().to_string(), "the operation did not run");
///
/// let unnamed = CircuitOpen::new("", Duration::ZERO);
/// assert_eq!(unnamed.to_string(), "circuit breaker is open, retry after 0ns");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CircuitOpen(Mark);

impl CircuitOpen {
    /// The refusal of the breaker called `name` (empty if it has none), which may admit a call after `retry_after`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::CircuitOpen;
    ///
    /// const OPEN: CircuitOpen = CircuitOpen::new("payments", Duration::from_secs(3));
    /// assert_eq!(OPEN, CircuitOpen::new("payments", Duration::from_secs(3)));
    /// ```
    #[must_use]
    pub const fn new(name: &'static str, retry_after: Duration) -> Self {
        Self(Mark { name, retry_after })
    }

    /// The name of the breaker; empty if it has none.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::error::CircuitOpen;
    /// assert_eq!(CircuitOpen::new("payments", Duration::ZERO).name(), "payments");
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// The time until the breaker may admit a call; [`Duration::MAX`] while it is forced open.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::error::CircuitOpen;
    /// let open = CircuitOpen::new("payments", Duration::from_secs(3));
    /// assert_eq!(open.retry_after(), Duration::from_secs(3));
    /// assert_eq!(open.to_string(), "circuit breaker \"payments\" is open, retry after 3s");
    ///
    /// let forced = CircuitOpen::new("", Duration::MAX);
    /// assert_eq!(forced.to_string(), "circuit breaker is open until it is reset");
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.0.retry_after
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("circuit breaker ")?;
        if !self.name().is_empty() {
            write!(f, "{:?} ", self.name())?;
        }
        match self.retry_after() {
            Duration::MAX => f.write_str("is open until it is reset"),
            wait => write!(f, "is open, retry after {wait:?}"),
        }
    }
}

// Not derived, which would show the mark.
impl fmt::Debug for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitOpen").field("name", &self.name()).field("retry_after", &self.retry_after()).finish()
    }
}

impl Error for CircuitOpen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// What remains of a [`CircuitOpen`] behind a wrapper that forwards `source()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    name: &'static str,
    retry_after: Duration,
}

impl Mark {
    pub(super) fn signs(&self) -> Signs {
        Signs { not_executed: true, refused: true, retry_after: Some(self.retry_after), ..Signs::NONE }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation did not run")
    }
}

impl Error for Mark {}
