//! What a call through a circuit breaker can end with besides a value.

use core::{error::Error, fmt};

use super::{AsError, Boxed, CircuitOpen, Dynamic, Plain};

/// Why a call through a breaker returned no value.
///
/// Transparent: it shows and passes on what it holds, so a marker in the operation's error is found by a run around the
/// call, and so is the hint of a refusal.
///
/// ```
/// use relent::breaker::{CallError, CircuitBreaker};
///
/// let breaker = CircuitBreaker::new().failure_threshold(1);
/// let call = || breaker.call_blocking(|| Err::<(), _>("no route"));
/// assert_eq!(call(), Err(CallError::Inner("no route")));
/// assert!(matches!(call(), Err(CallError::Open(_))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// The breaker refused the call: the operation did not run.
    Open(CircuitOpen),
    /// The operation ran and failed.
    Inner(E),
}

impl<E> CallError<E> {
    /// The error of the operation, or the refusal turned into one: for error types that can hold both.
    ///
    /// ```
    /// use std::error::Error;
    /// use relent::breaker::{CallError, CircuitBreaker};
    ///
    /// fn load(breaker: &CircuitBreaker) -> Result<u32, Box<dyn Error>> {
    ///     breaker.call_blocking_with(|| Err("no route".into()), |_| true).map_err(CallError::flatten)
    /// }
    ///
    /// let breaker = CircuitBreaker::new().named("db").failure_threshold(1);
    /// assert_eq!(load(&breaker).unwrap_err().to_string(), "no route");
    /// assert!(load(&breaker).unwrap_err().to_string().starts_with(r#"circuit breaker "db" is open"#));
    /// ```
    pub fn flatten(self) -> E
    where
        E: From<CircuitOpen>,
    {
        match self {
            Self::Open(open) => open.into(),
            Self::Inner(error) => error,
        }
    }
}

impl<E> From<CircuitOpen> for CallError<E> {
    fn from(open: CircuitOpen) -> Self {
        Self::Open(open)
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(open) => open.fmt(f),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

// Transparent, as `Display` is: a marker is found behind a wrapper that forwards `source()`.
impl<E: Error> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(open) => open.source(),
            Self::Inner(error) => error.source(),
        }
    }
}

// For the kinds that are no `Error` themselves, where the refusal would go unseen.
macro_rules! as_error {
    ($($kind:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<E: AsError<$kind>> AsError<$kind> for CallError<E> {
            fn as_error(&self) -> Option<&(dyn Error + 'static)> {
                match self {
                    Self::Open(open) => Some(open),
                    Self::Inner(error) => error.as_error(),
                }
            }
        }
    )*};
}

as_error!(Dynamic, Boxed, Plain);
