//! Predicates for failures that may pass by themselves, and the reader of `Retry-After`.
//!
//! Whether a failure is worth another try depends on the service and on the call, so nothing here is a default: **no
//! driver of this crate consults these functions by itself**. Name the one that fits in the run's `.when` or
//! `.retry_after`, and combine it with what you know:
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use core::time::Duration;
//! use relent::transient;
//!
//! struct Refused {
//!     status: u16,
//!     retry_after: Option<&'static str>,
//! }
//!
//! // for `.when`: this service answers 500 to requests that it will never accept
//! let when = |e: &Refused| e.status != 500 && transient::http_status(e.status);
//! // for `.retry_after`
//! let hint = |e: &Refused| transient::parse_retry_after(e.retry_after?, transient::unix_now());
//!
//! let busy = Refused { status: 429, retry_after: Some("120") };
//! assert!(when(&busy));
//! assert_eq!(hint(&busy), Some(Duration::from_secs(120)));
//! assert!(!when(&Refused { status: 500, retry_after: None }));
//! # }
//! ```

#[cfg(feature = "std")]
mod io;
mod retry_after;

#[cfg(feature = "std")]
pub use io::io_error;
pub use retry_after::parse_retry_after;
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub use retry_after::unix_now;

/// Whether an HTTP status may pass by itself: 408, 425, 429 and every 5xx.
///
/// This is the generous table, for services that answer their passing troubles with any server error. It contains
/// statuses that are permanent by their meaning, such as 501 and 505; [`http_status_strict`] does not.
///
/// ```
/// use relent::transient::http_status;
///
/// assert!(http_status(408) && http_status(425) && http_status(429));
/// assert!(http_status(500) && http_status(501) && http_status(599));
/// assert!(!http_status(200) && !http_status(404) && !http_status(499) && !http_status(600));
/// ```
#[must_use]
pub const fn http_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Whether an HTTP status says of itself that it may pass: 408, 425, 429, 500, 502, 503 and 504.
///
/// All other 5xx are permanent, or not in RFC 9110 at all (proxies use 520 to 527); add those your proxy sends.
///
/// ```
/// use relent::transient::http_status_strict;
///
/// assert!(http_status_strict(425) && http_status_strict(500) && http_status_strict(504));
/// assert!(!http_status_strict(501) && !http_status_strict(505) && !http_status_strict(511));
///
/// let behind_a_proxy = |status| http_status_strict(status) || matches!(status, 522 | 524);
/// assert!(behind_a_proxy(524) && !behind_a_proxy(525));
/// ```
#[must_use]
pub const fn http_status_strict(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// The `.when` predicate of a service that keeps an idempotency store: retries the class `"transport"` and no other.
///
/// Such a store records each failure under a class, and `classify` names the class of an error. Only a failure of the
/// transport says nothing about the request itself, so only that one is worth sending again. A class that is not
/// exactly `"transport"` (another case, a blank around it, an empty or a new one) is not retried: a typing error must not
/// repeat a payment. It is a `&'static str` or a `String`: one that stands in the error is cloned.
///
/// The reverse, a class made from a predicate, is not offered: "worth another try" does not show that a failure came
/// from the transport, and a store that believed so would let a call that did run, run again.
///
/// ```
/// use relent::transient::should_retry_from_outcome_classifier;
///
/// enum PaymentError {
///     ConnectionLost,
///     CardDeclined,
/// }
///
/// let when = should_retry_from_outcome_classifier(|e: &PaymentError| match e {
///     PaymentError::ConnectionLost => "transport",
///     PaymentError::CardDeclined => "business",
/// });
/// assert!(when(&PaymentError::ConnectionLost));
/// assert!(!when(&PaymentError::CardDeclined));
/// ```
#[must_use = "the predicate does nothing until a run is given it with `.when`"]
pub fn should_retry_from_outcome_classifier<E, C>(classify: impl Fn(&E) -> C) -> impl Fn(&E) -> bool
where
    E: ?Sized,
    C: AsRef<str>,
{
    move |error| classify(error).as_ref() == "transport"
}
