//! The arithmetic: grow → cap → jitter → clamp → floor → round.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::Policy;
use super::growth::{Shape, power};
use super::jitter::Spread;
use crate::ms::{self, in_unit};
use crate::rng::Rng;
use crate::schedule::{Progress, Schedule};

impl Policy {
    /// The delay after `failures`, grown and capped, without jitter; zero after none.
    ///
    /// With [`Jitter::Decorrelated`](super::Jitter::Decorrelated) it is `base · 3^(failures−1)`, capped: the longest
    /// previous delay. Costs one squaring per binary digit of `failures`.
    ///
    /// It never decreases as `failures` grow. (Only a multiplier within 10⁻¹³ of 1, and not 1, can lose the last bits
    /// of an `f64` from one failure to the next.)
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// const POLICY: Policy =
    ///     Policy::exponential(Duration::from_secs(2)).max_delay(Duration::from_secs(300));
    /// assert_eq!(POLICY.nominal_after(0), Duration::ZERO);
    /// assert_eq!(POLICY.nominal_after(1), Duration::from_secs(2));
    /// assert_eq!(POLICY.nominal_after(8), Duration::from_secs(256));
    /// assert_eq!(POLICY.nominal_after(u32::MAX), Duration::from_secs(300));
    /// assert_eq!(POLICY.uncapped().nominal_after(u32::MAX), Policy::MAX_DELAY);
    /// ```
    #[must_use]
    pub const fn nominal_after(&self, failures: u32) -> Duration {
        ms::rounded(self.nominal_ms(failures))
    }

    /// The shortest and the longest delay after `failures`, whatever is drawn, both rounded as delays are.
    ///
    /// With [`Jitter::Decorrelated`](super::Jitter::Decorrelated), from the base to `base · 3^failures`, both capped.
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// let (shortest, longest) = Policy::DEFAULT.bounds_after(2);
    /// assert_eq!(shortest, Duration::from_millis(100));
    /// assert_eq!(longest, Duration::from_millis(200));
    /// ```
    #[must_use]
    pub const fn bounds_after(&self, failures: u32) -> (Duration, Duration) {
        let nominal = self.nominal_ms(failures);
        let (low, high) = (self.spread_ms(nominal, 0.0), self.spread_ms(nominal, 1.0));
        if low <= high { (ms::rounded(low), ms::rounded(high)) } else { (ms::rounded(high), ms::rounded(low)) }
    }

    /// The delay after `failures` with this draw; zero after none.
    ///
    /// A draw is in `[0, 1)`. One outside is clamped into it, and NaN counts as one half.
    ///
    /// # Errors
    ///
    /// [`StatefulJitter`] with [`Jitter::Decorrelated`](super::Jitter::Decorrelated), where the delay depends on the one
    /// before; [`delays`](Self::delays) carries that along.
    ///
    /// ```
    /// use relent::{Jitter, Policy};
    /// use std::time::Duration;
    ///
    /// let policy = Policy::exponential(Duration::from_secs(1)).jitter(Jitter::Proportional(0.2));
    /// assert_eq!(policy.delay_after(1, 0.0), Ok(Duration::from_millis(800)));
    /// assert_eq!(policy.delay_after(2, 0.5), Ok(Duration::from_secs(2)));
    /// assert!(policy.jitter(Jitter::Decorrelated).delay_after(1, 0.5).is_err());
    /// ```
    pub const fn delay_after(&self, failures: u32, draw: f64) -> Result<Duration, StatefulJitter> {
        match self.spread {
            Spread::Decorrelated => Err(StatefulJitter),
            _ => Ok(ms::rounded(self.spread_ms(self.nominal_ms(failures), in_unit(draw)))),
        }
    }

    /// The sum of the longest waits, at most the limit of elapsed time: how long until this policy gives up, if the
    /// attempts themselves take no time and no server asks for a longer wait. `None` if nothing bounds it.
    ///
    /// Exact for up to 4096 waits, and for any number of waits at the cap. Growth that goes on longer is summed in steps
    /// of 1/4096 of the way, each at its longest wait: never too short, and at most some 1 % too long. Saturates.
    ///
    /// ```
    /// use relent::Policy;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Policy::DEFAULT.worst_case_total(), Some(Duration::from_millis(100 + 200)));
    /// assert_eq!(Policy::DEFAULT.unbounded().worst_case_total(), None);
    ///
    /// const HOUR: Duration = Duration::from_secs(3600);
    /// assert_eq!(Policy::DEFAULT.unbounded().max_elapsed(HOUR).worst_case_total(), Some(HOUR));
    /// ```
    #[must_use]
    pub fn worst_case_total(&self) -> Option<Duration> {
        let limit = self.elapsed_limit();
        match self.max_attempts {
            0 => limit,
            attempts => {
                let total = self.longest_waits(attempts - 1);
                Some(limit.map_or(total, |limit| total.min(limit)))
            }
        }
    }

    fn longest_waits(&self, waits: u32) -> Duration {
        let longest_after = |failures| self.bounds_after(failures).1;
        let last = longest_after(waits);
        let mut total = Duration::ZERO;
        let mut counted = 0;
        while counted < waits {
            let step = (counted / 4096 + 1).min(waits - counted);
            let longest = longest_after(counted + step);
            if longest == last {
                return total.saturating_add(last.saturating_mul(waits - counted));
            }
            total = total.saturating_add(longest.saturating_mul(step));
            counted += step;
        }
        total
    }

    /// Grown and capped.
    #[inline]
    const fn nominal_ms(&self, failures: u32) -> f64 {
        match self.spread {
            Spread::Decorrelated if failures > 0 => self.capped(self.base_ms * power(3.0, failures - 1)),
            _ => self.grown_ms(failures),
        }
    }

    /// Grown as the shape says, whatever the jitter, and capped.
    #[inline]
    #[allow(clippy::cast_lossless, reason = "From is not const")]
    const fn grown_ms(&self, failures: u32) -> f64 {
        if failures == 0 {
            return 0.0;
        }
        let growth = match self.shape {
            Shape::Exponential => power(self.multiplier, failures - 1),
            Shape::Linear => failures as f64,
            Shape::Fixed => 1.0,
        };
        self.capped(self.base_ms * growth)
    }

    #[inline]
    const fn capped(&self, ms: f64) -> f64 {
        if ms < self.cap_ms { ms } else { self.cap_ms }
    }

    #[inline]
    fn drawn_ms(&self, progress: &Progress, grown: f64, draw: f64) -> f64 {
        let around = match self.spread {
            Spread::Decorrelated => progress.previous_ms().max(self.base_ms).min(self.nominal_ms(progress.failures())),
            _ => grown,
        };
        self.spread_ms(around, draw)
    }

    /// Jitter and clamp around `d`: the nominal delay, or the previous one when decorrelated.
    ///
    /// Monotone in `d` and in `draw`, rounding errors included, so draws of 0 and 1 give the bounds of all others.
    #[inline]
    const fn spread_ms(&self, d: f64, draw: f64) -> f64 {
        let delay = match self.spread {
            Spread::None => return d,
            Spread::Full => return draw * d,
            Spread::Equal => return 0.5 * d + draw * (0.5 * d),
            Spread::Downward => return d * (1.0 - self.fraction * draw),
            Spread::Proportional => d * (1.0 + self.fraction * (2.0 * draw - 1.0)),
            Spread::Decorrelated if d == 0.0 => return 0.0,
            Spread::Decorrelated => {
                let base = self.capped(self.base_ms);
                base + draw * (3.0 * d - base)
            }
        };
        // Only these two can rise above what was capped.
        if self.jitter_above_cap { delay } else { self.capped(delay) }
    }
}

impl Schedule for Policy {
    /// Never `None`: a policy ends by its limits alone. [`Jitter::None`](super::Jitter::None) takes no draw.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call costs half as much again, and hides which generator draws")]
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        let grown = self.grown_ms(progress.failures());
        let delay = match self.spread {
            Spread::None => grown,
            _ => self.drawn_ms(progress, grown, in_unit(rng.next_f64())),
        };
        progress.set_previous_ms(delay);
        Some(ms::rounded(delay))
    }

    #[inline]
    fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    #[inline]
    fn max_elapsed(&self) -> Option<Duration> {
        self.elapsed_limit()
    }

    fn lower_bound(&self, progress: &Progress, _wait: Duration) -> Duration {
        self.bounds_after(progress.failures()).0
    }
}

/// [`Jitter::Decorrelated`](super::Jitter::Decorrelated) has no delay without the one before it.
///
/// ```
/// use relent::policy::StatefulJitter;
/// use relent::{Jitter, Policy};
///
/// let policy = Policy::DEFAULT.jitter(Jitter::Decorrelated);
/// assert_eq!(policy.delay_after(1, 0.5), Err(StatefulJitter));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatefulJitter;

impl fmt::Display for StatefulJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("decorrelated jitter has no delay without the one before it")
    }
}

impl Error for StatefulJitter {}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::policy::{Jitter, Policy};
    use crate::rng::FixedRng;
    use crate::schedule::{Progress, Schedule};

    const KINDS: [Jitter; 6] = [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::Proportional(0.5),
        Jitter::Downward(0.5),
    ];

    /// A run waits what the policy says of its failures, up to the last that can be counted.
    #[test]
    fn a_run_waits_what_its_failures_ask_for() {
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(3600));
        let shapes = [Policy::exponential(base).multiplier(1.000_001), Policy::linear(base), Policy::fixed(base)];
        let counts =
            (0..1200).chain((7..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits])).chain([u32::MAX - 1, u32::MAX]);
        for failures in counts {
            for policy in shapes.into_iter().chain(shapes.map(|policy| policy.max_delay(cap))) {
                for (jitter, draw) in KINDS.into_iter().flat_map(|kind| [0.0, 0.5, 0.999].map(|draw| (kind, draw))) {
                    let policy = policy.jitter(jitter);
                    let mut progress = Progress::after(failures);
                    let wait = policy.next(&mut progress, &mut FixedRng::new(draw)).unwrap();
                    let (shortest, longest) = policy.bounds_after(failures);
                    assert!((shortest..=longest).contains(&wait), "{policy} after {failures}: {wait:?}");
                    if let Ok(delay) = policy.delay_after(failures, draw) {
                        assert_eq!(wait, delay, "{policy} after {failures}");
                    }
                    assert_eq!(policy.lower_bound(&progress, wait), shortest);
                }
            }
        }
        let hour = Policy::linear(base).max_delay(cap);
        assert_eq!(
            hour.next(&mut Progress::after(35_999), &mut FixedRng::new(0.5)),
            Some(cap.checked_sub(base).unwrap())
        );
        assert_eq!(hour.next(&mut Progress::after(u32::MAX), &mut FixedRng::new(0.5)), Some(cap));
    }
}
