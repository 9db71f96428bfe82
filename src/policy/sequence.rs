#[cfg(feature = "alloc")]
use alloc::vec::Vec;
#[cfg(feature = "alloc")]
use core::borrow::Borrow;
use core::iter::FusedIterator;
use core::time::Duration;

use super::Policy;
#[cfg(feature = "alloc")]
use crate::rng::FixedRng;
use crate::rng::Rng;
use crate::schedule::{Progress, Schedule};

impl Policy {
    /// The delays one after the other, drawn from `rng`, without end and without allocation.
    ///
    /// The policy's limits do not end it: it is for code that takes an iterator of waits and has its own limit.
    ///
    /// ```
    /// use relent::{Jitter, Policy, rng::rng_fn};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::fixed(Duration::from_secs(1)).jitter(Jitter::Decorrelated);
    /// let longest = policy.delays(rng_fn(|| 1.0)); // clamped below 1
    /// let seconds: Vec<u64> = longest.map(|delay| delay.as_secs()).take(3).collect();
    /// assert_eq!(seconds, [3, 9, 27]);
    /// ```
    pub const fn delays<R: Rng>(self, rng: R) -> Delays<R> {
        Delays { policy: self, progress: Progress::new(), rng }
    }
}

/// The endless iterator of [`Policy::delays`].
#[derive(Clone, Debug)]
#[must_use = "iterators are lazy"]
pub struct Delays<R> {
    policy: Policy,
    progress: Progress,
    rng: R,
}

impl<R: Rng> Iterator for Delays<R> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        self.progress.count_failure();
        self.policy.next(&mut self.progress, &mut self.rng)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

impl<R: Rng> FusedIterator for Delays<R> {}

/// The first `n` waits of a policy with every draw at one half, whatever its limits: for tests and for printing.
///
/// ```
/// use relent::{Jitter, Policy, backoff_sequence};
/// use std::time::Duration;
///
/// const POLICY: Policy = Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None);
/// let ms = Duration::from_millis;
/// assert_eq!(backoff_sequence(POLICY, 4), [ms(100), ms(200), ms(400), ms(800)]);
/// assert_eq!(backoff_sequence(Policy::DEFAULT, 2), [ms(75), ms(150)]);
/// ```
#[cfg(feature = "alloc")]
#[must_use]
pub fn backoff_sequence(policy: impl Borrow<Policy>, n: usize) -> Vec<Duration> {
    backoff_sequence_with(policy, n, &mut FixedRng::new(0.5))
}

/// As [`backoff_sequence`], with draws from `rng`.
///
/// ```
/// use relent::Policy;
/// use relent::policy::backoff_sequence_with;
/// use relent::rng::FixedRng;
/// use std::time::Duration;
///
/// let shortest = backoff_sequence_with(Policy::DEFAULT, 3, &mut FixedRng::new(0.0));
/// // equal jitter: half of 100, 200 and 400 ms
/// assert_eq!(shortest, [50, 100, 200].map(Duration::from_millis));
/// ```
#[cfg(feature = "alloc")]
#[must_use]
pub fn backoff_sequence_with<R: Rng + ?Sized>(policy: impl Borrow<Policy>, n: usize, rng: &mut R) -> Vec<Duration> {
    policy.borrow().delays(rng).take(n).collect()
}
