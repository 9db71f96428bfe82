//! The markers that own the error they mark.

use alloc::boxed::Box;
use core::{error::Error, fmt, time::Duration};

use super::{Signs, chain};

/// An error that no further attempt can cure: it ends a run, whatever the run's own conditions say.
///
/// It shows the text of the error it wraps; behind it the chain says `not retryable` and goes on to the causes of that
/// error. It is found wherever it stands in a chain: see [`error`](crate::error). A marked error stays marked when it
/// leaves a run, so an outer run ends too: permanent is permanent. [`into_inner`](Self::into_inner) takes the mark off.
///
/// ```
/// use std::error::Error;
/// use relent::NonRetryableError;
///
/// fn parse(id: &str) -> Result<u64, Box<dyn Error + Send + Sync>> {
///     Ok(id.parse().map_err(NonRetryableError::new)?)
/// }
///
/// let error = parse("seven").unwrap_err();
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// assert!(NonRetryableError::find(&*error).is_some());
/// ```
pub struct NonRetryableError(Mark);

impl NonRetryableError {
    /// Marks `error`: an error, a box of one, an `anyhow::Error` or `eyre::Report`, or a text.
    ///
    /// ```
    /// use relent::NonRetryableError;
    ///
    /// assert_eq!(NonRetryableError::new("no such user").to_string(), "no such user");
    /// ```
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Mark { error: error.into(), signs: Signs { not_retryable: true, ..Signs::NONE } })
    }

    /// The wrapped error.
    ///
    /// ```
    /// use relent::NonRetryableError;
    ///
    /// let error = NonRetryableError::new(std::fmt::Error);
    /// assert!(error.get_ref().is::<std::fmt::Error>());
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0.error
    }

    /// The wrapped error, without the mark: a run may retry it again.
    ///
    /// ```
    /// use relent::NonRetryableError;
    ///
    /// let inner = NonRetryableError::new("no such user").into_inner();
    /// assert!(NonRetryableError::find(&*inner).is_none());
    /// ```
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0.error
    }

    /// The error that the outermost `NonRetryableError` in the chain of `error` wraps, if there is one.
    ///
    /// ```
    /// use std::{fmt, io};
    /// use relent::NonRetryableError;
    ///
    /// let error = io::Error::other(NonRetryableError::new(fmt::Error));
    /// let wrapped = NonRetryableError::find(&error).unwrap();
    /// assert!(wrapped.is::<fmt::Error>());
    ///
    /// assert!(NonRetryableError::find(&io::Error::other(fmt::Error)).is_none());
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        find(error, |signs| signs.not_retryable)
    }
}

impl fmt::Debug for NonRetryableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NonRetryableError").field(&self.0.error).finish()
    }
}

/// An error that says how long to wait before the next attempt, such as a server's `Retry-After`.
///
/// It shows the text of the error it wraps; behind it the chain says `retry after 2s` and goes on to the causes of that
/// error.
///
/// ```
/// use std::{error::Error, time::Duration};
/// use relent::error::RetryAfterError;
///
/// let error = RetryAfterError::new("too many requests", Duration::from_secs(2));
/// assert_eq!(error.to_string(), "too many requests");
/// assert_eq!(error.source().unwrap().to_string(), "retry after 2s");
/// ```
pub struct RetryAfterError {
    retry_after: Duration,
    mark: Mark,
}

impl RetryAfterError {
    /// Gives `error` the hint to wait for `retry_after`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::RetryAfterError;
    ///
    /// let error = RetryAfterError::new("too many requests", Duration::ZERO);
    /// assert_eq!(error.to_string(), "too many requests");
    /// ```
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>, retry_after: Duration) -> Self {
        let signs = Signs { retry_after: Some(retry_after), ..Signs::NONE };
        Self { retry_after, mark: Mark { error: error.into(), signs } }
    }

    /// The wait that the hint asks for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::RetryAfterError;
    ///
    /// let error = RetryAfterError::new("too many requests", Duration::from_secs(2));
    /// assert_eq!(error.retry_after(), Duration::from_secs(2));
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// The wrapped error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::RetryAfterError;
    ///
    /// let error = RetryAfterError::new(std::fmt::Error, Duration::ZERO);
    /// assert!(error.get_ref().is::<std::fmt::Error>());
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.mark.error
    }

    /// The wrapped error, without the hint.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::error::RetryAfterError;
    ///
    /// let inner = RetryAfterError::new("busy", Duration::ZERO).into_inner();
    /// assert!(RetryAfterError::find(&*inner).is_none());
    /// ```
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.mark.error
    }

    /// The error that the outermost `RetryAfterError` in the chain of `error` wraps, if there is one.
    ///
    /// [`Signs::retry_after`] gives the hint itself.
    ///
    /// ```
    /// use std::{fmt, io, time::Duration};
    /// use relent::error::RetryAfterError;
    ///
    /// let error = io::Error::other(RetryAfterError::new(fmt::Error, Duration::from_secs(2)));
    /// assert!(RetryAfterError::find(&error).unwrap().is::<fmt::Error>());
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        find(error, |signs| signs.retry_after.is_some())
    }
}

impl fmt::Debug for RetryAfterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfterError")
            .field("error", &self.mark.error)
            .field("retry_after", &self.retry_after)
            .finish()
    }
}

/// An error that says that the operation did not run, so that a repetition can do no harm.
///
/// A refused connection, an empty pool, a full queue: even an operation that is not idempotent may be tried again.
/// It shows the text of the error it wraps; behind it the chain says `the operation did not run` and goes on to the
/// causes of that error.
///
/// ```
/// use std::error::Error;
/// use relent::error::NotExecuted;
///
/// let error = NotExecuted::new("no connection in the pool");
/// assert_eq!(error.to_string(), "no connection in the pool");
/// assert_eq!(error.source().unwrap().to_string(), "the operation did not run");
/// ```
pub struct NotExecuted(Mark);

impl NotExecuted {
    /// Says of `error` that the operation did not run.
    ///
    /// ```
    /// use relent::error::NotExecuted;
    ///
    /// assert_eq!(NotExecuted::new("pool is empty").to_string(), "pool is empty");
    /// ```
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Mark { error: error.into(), signs: Signs { not_executed: true, ..Signs::NONE } })
    }

    /// The wrapped error.
    ///
    /// ```
    /// use relent::error::NotExecuted;
    ///
    /// assert!(NotExecuted::new(std::fmt::Error).get_ref().is::<std::fmt::Error>());
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0.error
    }

    /// The wrapped error, without the mark.
    ///
    /// ```
    /// use relent::error::NotExecuted;
    ///
    /// let inner = NotExecuted::new("pool is empty").into_inner();
    /// assert!(NotExecuted::find(&*inner).is_none());
    /// ```
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0.error
    }

    /// The error that the outermost `NotExecuted` in the chain of `error` wraps, if there is one.
    ///
    /// A [`CircuitOpen`](super::CircuitOpen) wraps no error; [`Signs::not_executed`] knows of both.
    ///
    /// ```
    /// use std::{fmt, io};
    /// use relent::error::NotExecuted;
    ///
    /// let error = io::Error::other(NotExecuted::new(fmt::Error));
    /// assert!(NotExecuted::find(&error).unwrap().is::<fmt::Error>());
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        find(error, |signs| signs.not_executed)
    }
}

impl fmt::Debug for NotExecuted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NotExecuted").field(&self.0.error).finish()
    }
}

/// Shows the text of the wrapped error, and has the mark as its cause.
macro_rules! transparent {
    ($($marker:ident.$mark:tt),*) => {$(
        impl fmt::Display for $marker {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.$mark.error.fmt(f)
            }
        }

        impl Error for $marker {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.$mark)
            }
        }
    )*};
}

transparent!(NonRetryableError.0, RetryAfterError.mark, NotExecuted.0);

/// What remains of a marker behind a wrapper that forwards `source()`.
#[derive(Debug)]
pub(super) struct Mark {
    error: Box<dyn Error + Send + Sync>,
    signs: Signs,
}

impl Mark {
    pub(super) fn error(&self) -> &(dyn Error + 'static) {
        &*self.error
    }

    pub(super) fn signs(&self) -> Signs {
        self.signs
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signs {
            Signs { not_retryable: true, .. } => f.write_str("not retryable"),
            Signs { retry_after: Some(wait), .. } => write!(f, "retry after {wait:?}"),
            _ => f.write_str("the operation did not run"),
        }
    }
}

impl Error for Mark {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

fn find<'a>(error: &'a (dyn Error + 'static), wanted: fn(&Signs) -> bool) -> Option<&'a (dyn Error + 'static)> {
    chain(error).filter_map(|link| link.downcast_ref::<Mark>()).find(|mark| wanted(&mark.signs)).map(Mark::error)
}
