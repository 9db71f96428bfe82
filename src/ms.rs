//! Between `Duration` and the `f64` milliseconds of the arithmetic, and between a draw and the unit interval.
//!
//! Casts from `f64` to an integer saturate and take NaN and negative numbers to zero; that is the *floor* of a delay.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "each conversion says how it rounds and where it saturates"
)]

use core::time::Duration;

/// 2^64, the `f64` nearest to `u64::MAX`, which casts back to it: the longest delay.
pub(crate) const MAX: f64 = u64::MAX as f64;

/// The largest `f64` below one half: adding it and truncating rounds half up.
///
/// One half itself would take 0.49999999999999994 up to 1, and odd numbers
/// above 2^52 to the even number above, past the cap.
const JUST_BELOW_HALF: f64 = 0.499_999_999_999_999_94;

/// The delay, half up to whole milliseconds.
#[inline]
pub(crate) const fn rounded(ms: f64) -> Duration {
    let ms = ms + JUST_BELOW_HALF;
    // Up to 49 days, both the cast and the division into seconds take a third of the instructions.
    if ms < 4_294_967_296.0 { Duration::from_millis(ms as u32 as u64) } else { Duration::from_millis(ms as u64) }
}

/// Fractions of a millisecond included, up to [`MAX`].
pub(crate) const fn exact(duration: Duration) -> f64 {
    let fraction = (duration.subsec_nanos() % 1_000_000) as f64 / 1e6;
    saturating_ms(duration) as f64 + fraction
}

/// The inverse of [`exact`], to the nanosecond: `exact(exact_duration(exact(d))) == exact(d)`.
pub(crate) const fn exact_duration(ms: f64) -> Duration {
    let whole = ms as u64;
    let nanos = (ms - whole as f64) * 1e6 + 0.5;
    Duration::from_millis(whole).saturating_add(Duration::from_nanos(nanos as u64))
}

/// Down to whole milliseconds that an `f64` can hold, up to [`MAX`].
pub(crate) const fn whole(duration: Duration) -> f64 {
    let whole = saturating_ms(duration);
    let ms = whole as f64;
    if ms as u64 > whole { f64::from_bits(ms.to_bits() - 1) } else { ms }
}

const fn saturating_ms(duration: Duration) -> u64 {
    let ms = duration.as_millis();
    if ms > u64::MAX as u128 { u64::MAX } else { ms as u64 }
}

pub(crate) const fn saturating_ns(duration: Duration) -> u64 {
    let ns = duration.as_nanos();
    if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 }
}

/// A draw as jitter takes it.
#[inline]
pub(crate) const fn in_unit(draw: f64) -> f64 {
    if draw >= 0.0 && draw < 1.0 { draw } else { brought_into_unit(draw) }
}

/// NaN becomes one half, so that a broken source cannot make a hot loop.
#[cold]
const fn brought_into_unit(draw: f64) -> f64 {
    const LARGEST: f64 = 1.0 - f64::EPSILON / 2.0;
    if draw.is_nan() { 0.5 } else { draw.clamp(0.0, LARGEST) }
}
