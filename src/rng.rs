//! Where the randomness of jitter comes from.
//!
//! Jitter keeps clients that failed together from coming back together, so a source of draws has one duty: to differ
//! between the threads and processes that share an outage. [`DefaultRng`] does, also after a `fork`. In tests take
//! [`FixedRng`] for exact waits, and [`SeededRng`] for a spread that is the same in every run.
//!
#![cfg_attr(not(feature = "std"), doc = "[`DefaultRng`]: self")]

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
mod default;

use core::fmt;

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub use default::DefaultRng;

/// A source of draws for jitter.
///
/// One draw is one number in `[0, 1)`. A draw outside that range, or NaN, is taken into it by whoever uses it: a faulty
/// source can flatten the jitter, never break a wait. Jitter is no secret, so a source need not be cryptographic; it
/// only has to differ between processes that fail together.
///
/// ```
/// use relent::rng::Rng;
///
/// /// The fractional parts of the multiples of the golden ratio: spread evenly.
/// struct Golden(f64);
///
/// impl Rng for Golden {
///     fn next_f64(&mut self) -> f64 {
///         self.0 = (self.0 + 0.618_033_988_749_895) % 1.0;
///         self.0
///     }
/// }
///
/// let mut rng = Golden(0.0);
/// let percent = [(); 3].map(|()| (rng.next_f64() * 100.0).round());
/// assert_eq!(percent, [62.0, 24.0, 85.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no random source",
    label = "this run has no random source to draw its jitter from",
    note = "give the run one: `.rng(SeededRng::new(seed))` with a seed that differs between processes, or `.rng(rng_fn(|| ..))`"
)]
pub trait Rng {
    /// The next draw, in `[0, 1)`.
    fn next_f64(&mut self) -> f64;
}

impl<R: Rng + ?Sized> Rng for &mut R {
    #[inline]
    fn next_f64(&mut self) -> f64 {
        (**self).next_f64()
    }
}

/// Draws that are the same in every run, from a seed.
///
/// The algorithm is `SplitMix64` (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014;
/// constants and output function of <https://prng.di.unimi.it/splitmix64.c>), of which each draw keeps the upper 53
/// bits. It is part of this type's contract: a seed gives the same draws on every target and in every later version.
///
/// Every seed is as good as any other, 0 included, and no state is a trap: the state is a counter that passes through
/// all 2^64 values. Different seeds give different draws.
///
/// ```
/// use relent::rng::{Rng, SeededRng};
///
/// let mut rng = SeededRng::new(0);
/// assert_eq!(rng.next_f64(), 0.883_310_808_213_642_6);
/// assert_eq!(rng.next_f64(), 0.431_527_997_048_509_97);
///
/// let mut again = SeededRng::new(0);
/// assert_ne!(rng, again); // `rng` has drawn twice
/// again.next_f64();
/// again.next_f64();
/// assert_eq!(rng, again);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// A generator that starts from `seed`.
    ///
    /// ```
    /// # use relent::rng::{Rng, SeededRng};
    /// assert_eq!(SeededRng::new(7).next_f64(), SeededRng::new(7).next_f64());
    /// assert_ne!(SeededRng::new(7).next_f64(), SeededRng::new(8).next_f64());
    /// ```
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Rng for SeededRng {
    #[inline]
    fn next_f64(&mut self) -> f64 {
        self.state = self.state.wrapping_add(SPLIT_MIX_STEP);
        unit(split_mix(self.state))
    }
}

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio, made odd.
const SPLIT_MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64`, a bijection in which every input bit reaches every output bit.
const fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The upper 53 bits as a multiple of 2^-53: evenly spread over `[0, 1)`, and never rounded up to 1.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit the mantissa of an f64")]
const fn unit(bits: u64) -> f64 {
    const TWO_TO_MINUS_53: f64 = f64::EPSILON / 2.0;
    (bits >> 11) as f64 * TWO_TO_MINUS_53
}

/// The same draw every time: for tests that name their waits exactly.
///
/// ```
/// use relent::rng::{FixedRng, Rng};
///
/// let mut rng = FixedRng::new(0.5);
/// assert_eq!([rng.next_f64(), rng.next_f64()], [0.5, 0.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedRng {
    draw: f64,
}

impl FixedRng {
    /// Always `draw`, given as it is: one outside `[0, 1)`, or NaN, plays a faulty source.
    ///
    /// ```
    /// # use relent::{Policy, rng::FixedRng};
    /// # use std::time::Duration;
    /// let faulty = FixedRng::new(17.0);
    /// let delay = Policy::DEFAULT.delays(faulty).next();
    /// assert_eq!(delay, Some(Duration::from_millis(100))); // the longest: it counts as just below 1
    /// ```
    #[must_use]
    pub const fn new(draw: f64) -> Self {
        Self { draw }
    }
}

impl Rng for FixedRng {
    fn next_f64(&mut self) -> f64 {
        self.draw
    }
}

/// Draws from a closure: the bridge from another crate's generator, or from a list.
///
/// ```
/// use relent::rng::{Rng, rng_fn};
///
/// let mut draws = [0.1, 0.9].into_iter().cycle();
/// let mut rng = rng_fn(|| draws.next().unwrap_or(0.5));
/// assert_eq!([rng.next_f64(), rng.next_f64(), rng.next_f64()], [0.1, 0.9, 0.1]);
/// ```
pub const fn rng_fn<F: FnMut() -> f64>(draw: F) -> RngFn<F> {
    RngFn { draw }
}

/// The [`Rng`] that [`rng_fn`] returns.
#[derive(Clone, Copy)]
pub struct RngFn<F> {
    draw: F,
}

impl<F: FnMut() -> f64> Rng for RngFn<F> {
    #[inline]
    fn next_f64(&mut self) -> f64 {
        (self.draw)()
    }
}

impl<F> fmt::Debug for RngFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RngFn").finish_non_exhaustive()
    }
}
