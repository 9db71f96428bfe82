//! Errors that say what a run may do after them.
//!
//! Most failures are worth another attempt and some never are, and the code that knows which is often far from the
//! loop that retries. A *marker* carries that knowledge along inside the error: [`NonRetryableError`] ends a run,
//! [`RetryAfterError`] says how long to wait, [`NotExecuted`] and [`CircuitOpen`] say that the operation did not run.
//! A run finds a marker wherever it stands in the `source()` chain, so it survives every layer that keeps its cause:
//! an enum with a source, a transparent wrapper, a box, an `Arc`, an `io::Error`, `anyhow` and `eyre`.
//!
//! # What a marker looks like
//!
//! A marker shows the text of the error it wraps. Its `source()` is a private *mark*, which owns that error, says what
//! the marker says (`not retryable`), and goes on to the causes of the wrapped error. Two things follow. A wrapper that
//! forwards `source()` (`#[error(transparent)]`, `Arc`, `io::Error`) hides the marker, not the mark, so the marker is
//! still found. And a printed chain shows each text once: `no such user: not retryable: row not found`.
//!
//! The wrapped error itself is no link of the `source()` chain; [`NonRetryableError::find`] gives it.
//!
//! # Where a marker is not found
//!
//! A marker given *as* the context of an `anyhow` or `eyre` error is in no `source()` chain, so nobody can see it.
//! Mark the error instead, with `.map_err(NonRetryableError::new)`, and put contexts around it.
//!
//! The first 64 links of a chain are read and no more, because a chain may loop. [Plain data](PlainError) has no causes
//! to look at.
//!
//! # The other items
//!
//! Nobody needs to name [`AsError`], [`Marking`] or their kinds: by them the compiler finds out how a type of error shows
//! its causes. [`Signs`] is for loops of your own.
//!
#![cfg_attr(
    not(feature = "alloc"),
    doc = "[`NonRetryableError`]: self
[`NonRetryableError::find`]: self
[`RetryAfterError`]: self
[`NotExecuted`]: self"
)]

mod as_error;
#[cfg(target_has_atomic = "64")]
pub(crate) mod call;
mod circuit_open;
#[cfg(feature = "alloc")]
mod marker;
mod signs;

pub use as_error::{AsError, Boxed, Dynamic, Erased, Plain, PlainError, Typed};
pub use circuit_open::CircuitOpen;
#[cfg(feature = "alloc")]
pub use marker::{NonRetryableError, NotExecuted, RetryAfterError};
pub use signs::{Auto, Marking, Signs, Undecided, Unmarked};

use core::{error::Error, iter};

/// How many steps along a chain are taken: enough for the mark of the 64th link.
const MAX_STEPS: usize = 64;

/// An error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut link = error;
    let causes = (0..MAX_STEPS).map_while(move |_| {
        link = cause(link)?;
        Some(link)
    });
    iter::once(error).chain(causes)
}

/// The next link: of a mark the error that it owns, which its `source()` leaves out, of all else the `source()`.
#[inline]
pub(crate) fn cause<'a>(link: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    #[cfg(feature = "alloc")]
    if let Some(mark) = link.downcast_ref::<marker::Mark>() {
        return Some(mark.error());
    }
    link.source()
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn a_chain_shows_the_error_that_a_mark_owns() {
        let error = NotExecuted::new(core::fmt::Error);
        assert!(chain(&error).any(<dyn Error>::is::<core::fmt::Error>));
    }
}
