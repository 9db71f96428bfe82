//! Where the randomness of jitter comes from.

/// A source of draws for jitter.
///
/// One draw is one number in `[0, 1)`. A draw outside that range, or NaN, is taken into it by whoever uses it: a faulty
/// source can flatten the jitter, never break a wait. Jitter is no secret, so a source need not be cryptographic; it
/// only has to differ between processes that fail together.
pub trait Rng {
    /// The next draw, in `[0, 1)`.
    fn next_f64(&mut self) -> f64;
}

impl<R: Rng + ?Sized> Rng for &mut R {
    fn next_f64(&mut self) -> f64 {
        (**self).next_f64()
    }
}
