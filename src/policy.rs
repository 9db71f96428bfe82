//! How long to wait: a plain value that turns a number of failures into a delay.
//!
//! A delay is computed in one fixed order: **grow → cap → jitter → clamp → floor → round**. Growth is capped *before*
//! jitter, so the spread of the jitter survives at the cap; the result is clamped *after* it, so [`max_delay`] is the
//! longest delay that can ever come out; and it is rounded last, half up, to whole milliseconds.
//!
//! Everything is `f64` milliseconds and plain IEEE arithmetic: the same draws give the same delays on every target.
//! Sums and powers that leave the range stop at the cap, or without one at [`Policy::MAX_DELAY`]; no delay ever wraps,
//! turns into zero or panics, up to `u32::MAX` failures.
//!
//! A policy is built in a `const`, and a value that makes no sense does not compile:
//!
//! ```compile_fail,E0080
//! use relent::{Jitter, Policy};
//! use std::time::Duration;
//!
//! const BASE: Duration = Duration::from_secs(1);
//! const POLICY: Policy = Policy::exponential(BASE).jitter(Jitter::Proportional(25.0));
//! ```
//!
//! The compiler prints the rule and points at the setter:
//!
//! ```text
//! error[E0080]: evaluation panicked: jitter fraction must lie in 0..=1 (25 % is 0.25)
//! ```
//!
//! Values from outside the program go through [`PolicyConfig`] or the [text form](Policy#impl-FromStr-for-Policy), which
//! return a [`PolicyError`].
//!
//! [`max_delay`]: Policy::max_delay

use core::fmt;
use core::time::Duration;

mod build;
mod config;
mod delay;
mod growth;
mod jitter;
mod sequence;
mod table;
mod text;

pub use config::{PolicyConfig, PolicyError};
pub use delay::StatefulJitter;
pub use growth::Growth;
pub use jitter::Jitter;
pub use sequence::Delays;
#[cfg(feature = "alloc")]
pub use sequence::{backoff_sequence, backoff_sequence_with};
pub use table::{Row, Rows, Table};

use growth::Shape;
use jitter::Spread;

use crate::ms;

/// How long to wait after each failure, and when to stop: a `Copy` value of 48 bytes that a `const` can hold.
///
/// Start from [`exponential`](Self::exponential), [`linear`](Self::linear), [`fixed`](Self::fixed) or
/// [`immediate`](Self::immediate); each allows 3 attempts and sets no limit of time. Setters change one field each and
/// may come in any order. A setter given a value that makes no sense panics, naming the field and the rule; in a
/// `const` that is a compile error.
///
/// ```
/// use relent::{Jitter, Policy};
/// use std::time::Duration;
///
/// const POLICY: Policy = Policy::exponential(Duration::from_millis(100))
///     .max_delay(Duration::from_secs(1))
///     .jitter(Jitter::None)
///     .max_attempts(6);
///
/// assert_eq!(POLICY.nominal_after(1), Duration::from_millis(100));
/// assert_eq!(POLICY.nominal_after(4), Duration::from_millis(800));
/// assert_eq!(POLICY.nominal_after(5), Duration::from_secs(1));
/// assert_eq!(POLICY.worst_case_total(), Some(Duration::from_millis(2500)));
/// assert_eq!(size_of::<Policy>(), 48);
/// ```
#[derive(Clone, Copy, PartialEq)]
#[must_use = "a policy does nothing until it is given to a run or asked for its delays"]
pub struct Policy {
    base_ms: f64,
    multiplier: f64,
    /// Whole milliseconds; [`ms::MAX`] without a cap, so that the arithmetic needs no special case and stays finite.
    cap_ms: f64,
    /// Of the kinds of jitter that have a fraction; 0 for the others.
    fraction: f64,
    /// `u64::MAX` without a limit.
    max_elapsed_ns: u64,
    /// 0 when unbounded.
    max_attempts: u32,
    shape: Shape,
    spread: Spread,
    jitter_above_cap: bool,
}

/// What was set. These names differ from the setters'; [`PolicyConfig::from`] gives all fields at once.
///
/// ```
/// use relent::{Jitter, Policy, policy::Growth};
/// use std::time::Duration;
///
/// const POLICY: Policy = Policy::DEFAULT;
/// assert_eq!(POLICY.base(), Duration::from_millis(100));
/// assert_eq!(POLICY.growth(), Growth::Exponential(2.0));
/// assert_eq!(POLICY.cap(), Some(Duration::from_secs(30)));
/// assert_eq!(POLICY.jitter_kind(), Jitter::Equal);
/// assert!(!POLICY.jitter_above_cap());
/// assert_eq!((POLICY.attempts(), POLICY.elapsed_limit()), (3, None));
/// ```
impl Policy {
    /// The base delay, to the nanosecond (bases above 52 days to the nearest `f64` of milliseconds).
    #[must_use]
    pub const fn base(&self) -> Duration {
        ms::exact_duration(self.base_ms)
    }

    /// How delays grow.
    #[must_use]
    pub const fn growth(&self) -> Growth {
        match self.shape {
            Shape::Fixed => Growth::Fixed,
            Shape::Linear => Growth::Linear,
            Shape::Exponential => Growth::Exponential(self.multiplier),
        }
    }

    /// The cap in whole milliseconds; `None` without one.
    #[must_use]
    pub const fn cap(&self) -> Option<Duration> {
        if self.cap_ms < ms::MAX { Some(ms::rounded(self.cap_ms)) } else { None }
    }

    /// The kind of jitter.
    #[must_use]
    pub const fn jitter_kind(&self) -> Jitter {
        Jitter::joined(self.spread, self.fraction)
    }

    /// All attempts, the first included; 0 when unbounded.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.max_attempts
    }

    /// The limit of elapsed time; `None` without one.
    #[inline]
    #[must_use]
    pub const fn elapsed_limit(&self) -> Option<Duration> {
        if self.max_elapsed_ns == u64::MAX { None } else { Some(Duration::from_nanos(self.max_elapsed_ns)) }
    }

    /// Whether jitter may exceed the cap.
    #[must_use]
    pub const fn jitter_above_cap(&self) -> bool {
        self.jitter_above_cap
    }
}

impl Default for Policy {
    /// [`Policy::DEFAULT`].
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Debug for Policy {
    /// The [text form](Policy#impl-Display-for-Policy), as `Policy(exponential 100ms)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({self})")
    }
}
