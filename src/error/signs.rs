//! How a run reads its errors.

use core::{error::Error, fmt, marker::PhantomData, time::Duration};

use super::{AsError, MAX_STEPS, cause, chain, circuit_open};

/// What the markers in an error's chain say together.
///
/// ```
/// use std::time::Duration;
/// use relent::error::{CircuitOpen, Signs};
///
/// let signs = Signs::of(&CircuitOpen::new("payments", Duration::from_secs(3)));
/// assert!(signs.not_executed() && signs.refused());
/// assert_eq!(signs.retry_after(), Some(Duration::from_secs(3)));
/// assert!(!signs.not_retryable());
///
/// assert_eq!(Signs::of(&std::fmt::Error), Signs::NONE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    pub(crate) not_retryable: bool,
    pub(crate) not_executed: bool,
    pub(crate) refused: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Signs {
    /// What an error without markers says.
    ///
    /// ```
    /// use relent::error::Signs;
    ///
    /// assert!(!Signs::NONE.not_retryable());
    /// assert!(!Signs::NONE.not_executed() && !Signs::NONE.refused());
    /// assert_eq!(Signs::NONE.retry_after(), None);
    /// ```
    pub const NONE: Self = Self { not_retryable: false, not_executed: false, refused: false, retry_after: None };

    /// Reads the markers of `error` and of its causes, in one walk along the first 64 links of the chain.
    ///
    /// ```
    /// use std::io;
    /// use relent::error::{NonRetryableError, Signs};
    ///
    /// let error = io::Error::other(NonRetryableError::new("no such user"));
    /// assert!(Signs::of(&error).not_retryable());
    /// ```
    #[inline]
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        // The error itself apart from its causes: its type is known here, so nothing is asked of one without causes.
        let signs = Self::of_link(error);
        cause(error).map_or(signs, |cause| signs.or(Self::of_chain(cause)))
    }

    /// As [`of`](Self::of), from the second link on.
    fn of_chain(cause: &(dyn Error + 'static)) -> Self {
        chain(cause).take(MAX_STEPS).map(Self::of_link).fold(Self::NONE, Self::or)
    }

    #[inline]
    fn of_link(link: &(dyn Error + 'static)) -> Self {
        #[cfg(feature = "alloc")]
        if let Some(mark) = link.downcast_ref::<super::marker::Mark>() {
            return mark.signs();
        }
        link.downcast_ref::<circuit_open::Mark>().map_or(Self::NONE, circuit_open::Mark::signs)
    }

    fn or(self, deeper: Self) -> Self {
        Self {
            not_retryable: self.not_retryable || deeper.not_retryable,
            not_executed: self.not_executed || deeper.not_executed,
            refused: self.refused || deeper.refused,
            retry_after: self.retry_after.or(deeper.retry_after),
        }
    }

    /// Whether another attempt is pointless: a [`NonRetryableError`](super) is in the chain.
    ///
    /// ```
    /// use relent::error::{NonRetryableError, Signs};
    ///
    /// assert!(Signs::of(&NonRetryableError::new("no such user")).not_retryable());
    /// ```
    #[must_use]
    pub const fn not_retryable(&self) -> bool {
        self.not_retryable
    }

    /// Whether the operation did not run: a [`NotExecuted`](super) or a
    /// [`CircuitOpen`](super::CircuitOpen) is in the chain.
    ///
    /// ```
    /// use relent::error::{NotExecuted, Signs};
    ///
    /// assert!(Signs::of(&NotExecuted::new("no connection in the pool")).not_executed());
    /// ```
    #[must_use]
    pub const fn not_executed(&self) -> bool {
        self.not_executed
    }

    /// Whether a circuit breaker refused the operation: a [`CircuitOpen`](super::CircuitOpen) is in the chain.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::{CircuitOpen, NotExecuted, Signs};
    ///
    /// assert!(Signs::of(&CircuitOpen::new("payments", Duration::ZERO)).refused());
    /// assert!(!Signs::of(&NotExecuted::new("connection refused")).refused());
    /// ```
    #[must_use]
    pub const fn refused(&self) -> bool {
        self.refused
    }

    /// How long to wait before the next attempt; of several hints the outermost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::{RetryAfterError, Signs};
    ///
    /// let inner = RetryAfterError::new("busy", Duration::from_secs(2));
    /// let outer = RetryAfterError::new(inner, Duration::from_secs(7));
    /// assert_eq!(Signs::of(&outer).retry_after(), Some(Duration::from_secs(7)));
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

mod sealed {
    pub trait Sealed {}
    impl<K> Sealed for super::Auto<K> {}
    impl Sealed for super::Unmarked {}
}

/// How a run reads an error of type `E`: [`Auto`] looks for markers, [`Unmarked`] does not.
///
/// It stands in the type of a run. It is sealed: nobody else implements it.
///
/// ```
/// use relent::error::{Marking, NonRetryableError, Signs, Unmarked};
///
/// let error = NonRetryableError::new("no such user");
/// assert_eq!(Unmarked::signs(&error), Signs::NONE);
/// ```
pub trait Marking<E>: sealed::Sealed {
    /// What the markers of `error` say.
    fn signs(error: &E) -> Signs;
}

/// Looks for markers, in the way `K` in which the error type shows its causes; the compiler finds `K`.
///
/// ```
/// use relent::error::{AsError, Auto, Marking, NonRetryableError};
///
/// fn is_permanent<E: AsError<K>, K>(error: &E) -> bool {
///     Auto::<K>::signs(error).not_retryable()
/// }
///
/// assert!(is_permanent(&NonRetryableError::new("no such user")));
/// assert!(!is_permanent(&"no such user"));
/// ```
pub struct Auto<K>(PhantomData<fn() -> K>);

// Not derived, which would ask for `K: Debug`.
impl<K> fmt::Debug for Auto<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auto")
    }
}

impl<E: AsError<K>, K> Marking<E> for Auto<K> {
    #[inline]
    fn signs(error: &E) -> Signs {
        error.as_error().map_or(Signs::NONE, Signs::of)
    }
}

/// Looks for no marker, so that any type may be an error: what `.unmarked()` puts into the type of a run.
///
/// ```
/// use relent::error::{Marking, Signs, Unmarked};
///
/// struct Foreign;
/// assert_eq!(Unmarked::signs(&Foreign), Signs::NONE);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unmarked;

impl<E> Marking<E> for Unmarked {
    #[inline]
    fn signs(_: &E) -> Signs {
        Signs::NONE
    }
}

/// The way of an error type that the compiler has not been asked about: a run has it until `.unmarked()`.
///
/// No error type goes this way, so `Auto<Undecided>` reads none.
///
/// ```compile_fail,E0277
/// use relent::error::{Auto, Marking, Undecided};
///
/// Auto::<Undecided>::signs(&std::fmt::Error);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Undecided;
