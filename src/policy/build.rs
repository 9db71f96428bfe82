//! How a policy is made: the constructors, the setters, and what they check.

use core::time::Duration;

use super::config::Rule;
use super::growth::Shape;
use super::jitter::Spread;
use super::{Jitter, Policy};
use crate::ms;

/// The constructors.
impl Policy {
    /// The longest delay that is ever computed: `u64::MAX` milliseconds, some 584 million years.
    ///
    /// Growth without a cap stops here. A cap of this or more is no cap.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// assert_eq!(Policy::DEFAULT.uncapped().nominal_after(u32::MAX), Policy::MAX_DELAY);
    /// assert_eq!(Policy::DEFAULT.max_delay(Policy::MAX_DELAY).cap(), None);
    /// ```
    pub const MAX_DELAY: Duration = Duration::from_millis(u64::MAX);

    /// [`exponential`](Self::exponential) from 100 ms: up to 3 attempts, waiting 50 to 100 and then 100 to 200 ms.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let ms = Duration::from_millis;
    /// assert_eq!([1, 2].map(|failures| Policy::DEFAULT.bounds_after(failures)), [
    ///     (ms(50), ms(100)),
    ///     (ms(100), ms(200)),
    /// ]);
    /// assert_eq!(Policy::DEFAULT.attempts(), 3);
    /// ```
    pub const DEFAULT: Self = Self::exponential(Duration::from_millis(100));

    /// `base · 2^(n−1)` after `n` failures, capped at 30 s (or at `base`, if longer), with [`Jitter::Equal`].
    ///
    /// So a base of 30 s or more does not grow until [`max_delay`](Self::max_delay) says how far.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let seconds = Duration::from_secs;
    /// let after = |policy: Policy| [1, 2, 3].map(|failures| policy.nominal_after(failures));
    ///
    /// assert_eq!(after(Policy::exponential(seconds(10))), [10, 20, 30].map(seconds));
    ///
    /// let minute = Policy::exponential(seconds(60));
    /// assert_eq!(after(minute), [60, 60, 60].map(seconds));
    /// assert_eq!(after(minute.max_delay(seconds(600))), [60, 120, 240].map(seconds));
    /// ```
    ///
    /// # Panics
    ///
    /// If `base` is above zero and below 1 ms: it would round to no wait at all. In a `const` it does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// const POLICY: Policy = Policy::exponential(Duration::from_micros(100));
    /// ```
    ///
    /// A base of zero is zero after any number of failures. Fractions of a millisecond count until a delay is rounded.
    #[track_caller]
    pub const fn exponential(base: Duration) -> Self {
        accepted(Self::new(Shape::Exponential, base))
    }

    /// `base · n` after `n` failures, without cap or jitter.
    ///
    /// ```
    /// # use relent::{Policy, backoff_sequence};
    /// # use std::time::Duration;
    /// let minutes = |n: u64| Duration::from_secs(60 * n);
    /// assert_eq!(backoff_sequence(Policy::linear(minutes(1)), 3), [1, 2, 3].map(minutes));
    /// ```
    ///
    /// # Panics
    ///
    /// As [`exponential`](Self::exponential).
    #[track_caller]
    pub const fn linear(base: Duration) -> Self {
        accepted(Self::new(Shape::Linear, base))
    }

    /// `delay` after every failure, without cap or jitter.
    ///
    /// ```
    /// # use relent::{Policy, backoff_sequence};
    /// # use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// assert_eq!(backoff_sequence(Policy::fixed(second), 3), [second, second, second]);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`exponential`](Self::exponential).
    #[track_caller]
    pub const fn fixed(delay: Duration) -> Self {
        accepted(Self::new(Shape::Fixed, delay))
    }

    /// No wait at all: [`fixed`](Self::fixed) at zero.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// assert_eq!(Policy::immediate().worst_case_total(), Some(Duration::ZERO));
    /// ```
    pub const fn immediate() -> Self {
        Self::fixed(Duration::ZERO)
    }
}

/// The setters.
impl Policy {
    /// The factor from one delay to the next of exponential growth; 2 unless set.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let policy = Policy::exponential(Duration::from_secs(1)).multiplier(1.5);
    /// assert_eq!(policy.nominal_after(3), Duration::from_millis(2250));
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not finite or below 1, or if the growth is not exponential. In a `const` these do not compile:
    ///
    /// ```compile_fail,E0080
    /// # use relent::Policy;
    /// const SHRINKING: Policy = Policy::DEFAULT.multiplier(0.5);
    /// ```
    /// ```compile_fail,E0080
    /// # use relent::Policy;
    /// const ENDLESS: Policy = Policy::DEFAULT.multiplier(f64::INFINITY);
    /// ```
    /// ```compile_fail,E0080
    /// # use relent::Policy;
    /// const LINEAR: Policy = Policy::linear(std::time::Duration::from_secs(1)).multiplier(3.0);
    /// ```
    #[track_caller]
    pub const fn multiplier(self, multiplier: f64) -> Self {
        accepted(self.with_multiplier(multiplier))
    }

    /// The cap: the longest delay this policy computes.
    ///
    /// It is taken down to whole milliseconds, so that no rounding can exceed it: below 1 ms it is zero, and then every
    /// delay is. A base above the cap waits the cap. [`MAX_DELAY`](Self::MAX_DELAY) or more is
    /// [`uncapped`](Self::uncapped).
    ///
    /// A server's hint may exceed the cap; a run has a ceiling of its own for hints.
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let minutes = |n: u64| Duration::from_secs(60 * n);
    /// let policy = Policy::linear(minutes(1)).max_delay(minutes(2));
    /// assert_eq!([1, 2, 3].map(|failures| policy.nominal_after(failures)), [1, 2, 2].map(minutes));
    /// assert_eq!(policy.max_delay(Duration::from_micros(500)).nominal_after(1), Duration::ZERO);
    /// ```
    pub const fn max_delay(mut self, cap: Duration) -> Self {
        self.cap_ms = ms::whole(cap);
        self
    }

    /// No cap: growth goes on to [`MAX_DELAY`](Self::MAX_DELAY).
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let policy = Policy::exponential(Duration::from_secs(1));
    /// assert_eq!(policy.nominal_after(11), Duration::from_secs(30));
    /// assert_eq!(policy.uncapped().nominal_after(11), Duration::from_secs(1024));
    /// ```
    pub const fn uncapped(self) -> Self {
        self.max_delay(Self::MAX_DELAY)
    }

    /// How delays are spread; see [`Jitter`] for which kind to take.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let ms = Duration::from_millis;
    /// let policy = Policy::fixed(ms(100)).jitter(Jitter::Downward(0.25));
    /// assert_eq!(policy.bounds_after(1), (ms(75), ms(100)));
    /// ```
    ///
    /// # Panics
    ///
    /// If a fraction is outside `0..=1` or NaN. In a `const` it does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use relent::{Jitter, Policy};
    /// const PERCENT: Policy = Policy::DEFAULT.jitter(Jitter::Downward(25.0));
    /// ```
    /// ```compile_fail,E0080
    /// # use relent::{Jitter, Policy};
    /// const NOT_A_NUMBER: Policy = Policy::DEFAULT.jitter(Jitter::Proportional(f64::NAN));
    /// ```
    #[track_caller]
    pub const fn jitter(self, jitter: Jitter) -> Self {
        accepted(self.with_jitter(jitter))
    }

    /// All calls of the operation, the first included: 3 means at most 2 retries. 0 means
    /// [`unbounded`](Self::unbounded).
    ///
    /// ```
    /// # use relent::Policy;
    /// # use std::time::Duration;
    /// let policy = Policy::fixed(Duration::from_secs(1)).max_attempts(3);
    /// assert_eq!(policy.worst_case_total(), Some(Duration::from_secs(2))); // two waits
    /// assert_eq!(policy.max_attempts(0), policy.unbounded());
    /// ```
    pub const fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Any number of attempts.
    ///
    /// ```
    /// # use relent::Policy;
    /// assert_eq!(Policy::DEFAULT.unbounded().attempts(), 0);
    /// assert_eq!(Policy::DEFAULT.unbounded().worst_case_total(), None);
    /// ```
    pub const fn unbounded(self) -> Self {
        self.max_attempts(0)
    }

    /// How long after its start a run may still begin an attempt.
    ///
    /// A wait that would end later is not begun. 584 years (`u64::MAX` nanoseconds) or more is no limit.
    ///
    /// ```
    /// # use relent::{Policy, clock::VirtualClock, retry};
    /// # use std::time::Duration;
    /// const SEC: Duration = Duration::from_secs(1);
    ///
    /// let clock = VirtualClock::new();
    /// let policy = Policy::fixed(2 * SEC).unbounded().max_elapsed(5 * SEC);
    /// let run = retry(async |_| Err::<(), _>("busy"), policy).clock(&clock);
    /// let report = clock.block_on(run.report());
    /// assert_eq!((report.attempts, report.elapsed), (3, 4 * SEC)); // at 0, 2 and 4 s
    /// assert_eq!(policy.max_elapsed(Duration::MAX).elapsed_limit(), None);
    /// ```
    pub const fn max_elapsed(mut self, max_elapsed: Duration) -> Self {
        self.max_elapsed_ns = ms::saturating_ns(max_elapsed);
        self
    }

    /// Whether jitter may carry a delay above the cap: [`Jitter::Proportional`] by its fraction, and
    /// [`Jitter::Decorrelated`] to three times the cap. The other kinds never exceed what was capped.
    ///
    /// Off unless set: it is here for those who must reproduce a system that caps first and spreads afterwards.
    ///
    /// ```
    /// # use relent::{Jitter, Policy};
    /// # use std::time::Duration;
    /// let seconds = Duration::from_secs;
    /// let policy = Policy::fixed(seconds(30)).max_delay(seconds(30));
    /// let policy = policy.jitter(Jitter::Proportional(0.2));
    /// assert_eq!(policy.bounds_after(1), (seconds(24), seconds(30)));
    /// assert_eq!(policy.allow_jitter_above_cap(true).bounds_after(1), (seconds(24), seconds(36)));
    /// ```
    pub const fn allow_jitter_above_cap(mut self, allow: bool) -> Self {
        self.jitter_above_cap = allow;
        self
    }
}

/// The checked forms, which literals, config values and text share.
impl Policy {
    pub(super) const fn new(shape: Shape, base: Duration) -> Result<Self, Rule> {
        if !base.is_zero() && base.as_millis() == 0 {
            return Err(Rule::BASE);
        }
        let (cap_ms, spread) = match shape {
            Shape::Exponential => (ms::whole(base).max(30_000.0), Spread::Equal),
            Shape::Fixed | Shape::Linear => (ms::MAX, Spread::None),
        };
        Ok(Self {
            base_ms: ms::exact(base),
            multiplier: 2.0,
            cap_ms,
            fraction: 0.0,
            max_elapsed_ns: u64::MAX,
            max_attempts: 3,
            shape,
            spread,
            jitter_above_cap: false,
        })
    }

    pub(super) const fn with_multiplier(mut self, multiplier: f64) -> Result<Self, Rule> {
        if !matches!(self.shape, Shape::Exponential) {
            return Err(Rule::NOT_EXPONENTIAL);
        }
        if !(multiplier >= 1.0 && multiplier.is_finite()) {
            return Err(Rule::MULTIPLIER);
        }
        self.multiplier = multiplier;
        Ok(self)
    }

    pub(super) const fn with_jitter(mut self, jitter: Jitter) -> Result<Self, Rule> {
        let (spread, fraction) = jitter.split();
        if !(fraction >= 0.0 && fraction <= 1.0) {
            return Err(Rule::JITTER);
        }
        self.spread = spread;
        self.fraction = fraction.abs(); // -0.0 is in range, and must not survive as a second zero in the text form
        Ok(self)
    }
}

/// A const panic can print a string, not format a value: the rule names the field.
#[track_caller]
pub(super) const fn accepted(policy: Result<Policy, Rule>) -> Policy {
    match policy {
        Ok(policy) => policy,
        Err(rule) => panic!("{}", rule.text),
    }
}
