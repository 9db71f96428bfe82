//! What a call of the warehouse fails with.

use std::error::Error;
use std::time::Duration;

use hyper::StatusCode;
use hyper_util::client::legacy;
use relent::error::NotExecuted;
use relent::retry::AttemptTimeout;
use relent::transient;

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// There is no such request.
    #[error("the request cannot be built")]
    Request(#[from] hyper::http::Error),
    /// The name could not be looked up, or nobody accepted the connection: nothing was sent.
    #[error("no connection")]
    Unreached(#[source] NotExecuted),
    /// The request may have been executed; the answer did not come.
    #[error("no answer")]
    Unanswered(#[source] legacy::Error),
    /// The answer broke off.
    #[error("half an answer")]
    BrokenOff(#[from] hyper::Error),
    /// The answer was no success.
    #[error("answered with {status}")]
    Status { status: StatusCode, retry_after: Option<Duration> },
    /// There was no whole answer in time.
    #[error(transparent)]
    Timeout(AttemptTimeout),
}

impl From<legacy::Error> for UpstreamError {
    fn from(error: legacy::Error) -> Self {
        if error.is_connect() { Self::Unreached(NotExecuted::new(error)) } else { Self::Unanswered(error) }
    }
}

impl UpstreamError {
    /// Whether it may pass by itself, and says something about the warehouse rather than about the request.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request(_) => false,
            Self::Unreached(_) | Self::Timeout(_) => true,
            Self::Unanswered(error) => {
                let cause = error.source().and_then(|cause| cause.downcast_ref());
                transient::io_error(error) || cause.is_some_and(is_closed)
            }
            Self::BrokenOff(error) => transient::io_error(error) || is_closed(error),
            Self::Status { status, .. } => transient::http_status_strict(status.as_u16()),
        }
    }

    /// What the warehouse asked for with `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Whether the connection was closed in order, but too early: hyper has no I/O error for that.
fn is_closed(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || error.is_canceled()
}
