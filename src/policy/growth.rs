/// How the delay grows with the number of failures `n`, before cap and jitter.
///
/// ```
/// use relent::Policy;
/// use relent::policy::Growth;
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// assert_eq!(Policy::fixed(second).growth(), Growth::Fixed);
/// assert_eq!(Policy::linear(second).growth(), Growth::Linear);
/// assert_eq!(Policy::exponential(second).growth(), Growth::Exponential(2.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Growth {
    /// The base each time.
    Fixed,
    /// `base · n`.
    Linear,
    /// `base · m^(n−1)`, with the multiplier `m`.
    Exponential(f64),
}

/// [`Growth`] without its multiplier, which a policy keeps apart to stay small.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Fixed,
    Linear,
    Exponential,
}

/// `factor^exponent` for a factor of at least 1, the same bits on every target (`f64::powi` may differ between them, and
/// is not in `core`).
///
/// Stops at the largest finite number, so that a base of zero stays zero.
#[inline]
#[allow(clippy::float_cmp, reason = "only an exact 2 is a shift of the exponent")]
pub(super) const fn power(factor: f64, exponent: u32) -> f64 {
    if factor == 2.0 {
        // The usual case, and exact either way: a power of two is its exponent, 1023 the largest.
        let exponent = if exponent < 1023 { exponent } else { 1023 };
        f64::from_bits((1023 + exponent as u64) << 52)
    } else {
        power_by_squaring(factor, exponent)
    }
}

/// At most 32 rounds of IEEE multiplications. Out of line, to keep the usual case small.
#[inline(never)]
const fn power_by_squaring(mut factor: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= factor;
        }
        factor *= factor;
        exponent >>= 1;
    }
    if power < f64::MAX { power } else { f64::MAX }
}
