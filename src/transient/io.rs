//! I/O errors, by their kind.

use core::error::Error;
use core::iter::successors;
use std::io::{self, ErrorKind};
use std::sync::Arc;

#[cfg(target_has_atomic = "64")]
use crate::error::call::CallError;
use crate::error::{AsError, cause};

/// Chains of sources can loop.
const MAX_LINKS: usize = 64;

/// Whether the I/O error in this error's chain may pass by itself, decided by its [`ErrorKind`], never by its text.
///
/// Transient are `ConnectionRefused`, `ConnectionReset`, `ConnectionAborted`, `BrokenPipe`, `TimedOut`, `Interrupted`,
/// `WouldBlock`, `NetworkUnreachable`, `HostUnreachable`, `NetworkDown` and `UnexpectedEof`. Every other kind is
/// permanent, and so is an error without any [`io::Error`] in its chain.
///
/// The search goes through [`source`](Error::source), through what an [`io::Error`] wraps
/// ([`get_ref`](io::Error::get_ref)), the [`Arc`] of a cloneable error and the `CallError` that a
/// [breaker](crate::breaker) makes of either, at most 64 links. The outermost I/O error decides, as the layer that chose
/// its kind knew most; one of kind `Other` names no cause, so the search goes on below it.
///
/// ```
/// use std::error::Error;
/// use std::io::{self, ErrorKind};
/// use relent::transient::io_error;
///
/// let reset = io::Error::from(ErrorKind::ConnectionReset);
/// assert!(io_error(&reset));
/// assert!(io_error(&io::Error::other(reset)));
/// assert!(!io_error(&io::Error::other("connection reset by peer")));
///
/// let boxed: Box<dyn Error + Send + Sync> = io::Error::from(ErrorKind::TimedOut).into();
/// assert!(io_error(&boxed));
/// assert!(!io_error(&"timed out"));
/// ```
///
/// It takes every error that a run takes without `.unmarked()`, so it can be given to `.when` as it stands:
///
/// ```
/// # use std::{io, time::Duration};
/// # use relent::{Policy, clock::InstantClock, retry, transient};
/// # async fn connect() -> io::Result<()> {
/// let connect = async |_| tokio::net::TcpStream::connect("localhost:80").await;
/// retry(connect, Policy::DEFAULT).when(transient::io_error).await?;
/// # Ok(()) }
/// ```
///
/// # A transparent wrapper hides its error
///
/// A wrapper that forwards `source`, as `#[error(transparent)]` of `thiserror` does, shows what stands below its error
/// and never the error itself. Show it with `#[source]` or `#[from]` and a text of the wrapper's own, or look inside:
///
/// ```
/// use std::error::Error;
/// use std::{fmt, io};
/// use relent::transient::io_error;
///
/// #[derive(Debug)]
/// enum LoadError {
///     Io(io::Error),
/// }
/// # impl fmt::Display for LoadError {
/// #     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
/// #         let Self::Io(e) = self;
/// #         e.fmt(f)
/// #     }
/// # }
/// impl Error for LoadError {
///     fn source(&self) -> Option<&(dyn Error + 'static)> {
///         let Self::Io(e) = self; // transparent
///         e.source()
///     }
/// }
///
/// let error = LoadError::Io(io::ErrorKind::ConnectionReset.into());
/// assert!(!io_error(&error));
/// let when = |e: &LoadError| match e {
///     LoadError::Io(e) => io_error(e),
/// };
/// assert!(when(&error));
/// ```
///
/// # `UnexpectedEof` is ambiguous
///
/// A peer that hung up and a parser that met the end of a complete but malformed buffer report the same kind. Where
/// your error comes from a parser, say so: `|e| io_error(e) && !e.is_parse()`.
///
/// # HTTP clients have errors of their own
///
/// A client's timeout, or a connection that it found closed, is often no [`io::Error`] at all, and counts as permanent
/// here. Ask the client first: with reqwest, `|e| e.is_timeout() || e.is_connect() || io_error(e)`.
///
/// # Resolver failures have no kind
///
/// The standard library gives a failed name lookup no stable kind, so it counts as permanent here. Look the name up in
/// a step of its own, and let the error's type say which step failed:
///
/// ```
/// use std::io;
/// use relent::transient::io_error;
///
/// enum ConnectError {
///     Lookup(io::Error),
///     Connect(io::Error),
/// }
///
/// let when = |e: &ConnectError| match e {
///     ConnectError::Lookup(_) => true,
///     ConnectError::Connect(e) => io_error(e),
/// };
/// let lookup = || io::Error::other("failed to lookup address information");
/// assert!(when(&ConnectError::Lookup(lookup())));
/// assert!(!when(&ConnectError::Connect(lookup())));
/// ```
#[must_use]
pub fn io_error<E: AsError<K> + ?Sized, K>(error: &E) -> bool {
    successors(error.as_error(), |link| beneath(*link))
        .take(MAX_LINKS)
        .filter_map(|link| link.downcast_ref::<io::Error>())
        .map(io::Error::kind)
        .find(|kind| *kind != ErrorKind::Other)
        .is_some_and(is_transient)
}

/// The next link. Wrappers that forward `source` hide the error they hold, so those are opened first.
fn beneath<'a>(link: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(inner) = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner)
    } else if let Some(shared) = link.downcast_ref::<Arc<io::Error>>() {
        Some(&**shared)
    } else if let Some(shared) = link.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        Some(&**shared)
    } else {
        #[cfg(target_has_atomic = "64")]
        if let Some(CallError::Inner(inner)) = link.downcast_ref::<CallError<io::Error>>() {
            return Some(inner);
        } else if let Some(CallError::Inner(shared)) = link.downcast_ref::<CallError<Arc<io::Error>>>() {
            return Some(&**shared);
        }
        cause(link)
    }
}

const fn is_transient(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::UnexpectedEof
    )
}
