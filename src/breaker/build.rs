//! How a breaker is set up.

use super::config::{BreakerConfig, COOLDOWN_RULE, FAILURES_RULE, PROBES_RULE, SUCCESSES_RULE, is_stateless};
use super::word::{Limits, Word};
use super::{CircuitBreaker, Transition};
use crate::clock::DEFAULT_CLOCK;
use crate::policy::Policy;
use crate::sync::AtomicU64;

impl CircuitBreaker {
    /// A closed breaker without a name: 5 consecutive failures open it for 30 s, then 1 success of 1 probe closes it.
    #[cfg(not(relent_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self::from_parts(AtomicU64::new(Word::NEW), AtomicU64::new(0), DEFAULT_CLOCK)
    }

    #[cfg(relent_loom)]
    pub fn new() -> Self {
        Self::from_parts(AtomicU64::new(Word::NEW), AtomicU64::new(0), DEFAULT_CLOCK)
    }

    /// Measures the cooldown on `clock`, which an admitted call of a closed breaker does not read.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::breaker::CircuitBreaker;
    /// # use relent::clock::VirtualClock;
    /// let clock = VirtualClock::new();
    /// let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
    /// breaker.acquire().unwrap().failure();
    /// clock.advance(Duration::from_secs(29));
    /// assert!(breaker.acquire().is_err());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(breaker.acquire().is_ok());
    /// ```
    #[must_use]
    pub const fn with_clock<C>(self, clock: C) -> CircuitBreaker<C> {
        let Self { word, stamp, limits, cooldown, seed, name, on_transition, clock: _ } = self;
        CircuitBreaker { word, stamp, limits, cooldown, seed, name, on_transition, clock }
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> CircuitBreaker<C> {
    const fn from_parts(word: AtomicU64, stamp: AtomicU64, clock: C) -> Self {
        let BreakerConfig { failure_threshold, success_threshold, probes, cooldown } = BreakerConfig::DEFAULT;
        Self {
            word,
            stamp,
            limits: Limits { failure_threshold, probes, success_threshold },
            cooldown,
            seed: None,
            name: "",
            on_transition: None,
            clock,
        }
    }

    /// The name that refusals and transitions carry.
    ///
    /// It lives as long as the program, as most breakers do: for one that is made for each host at run time, leak the
    /// name once (`String::leak`), beside the breaker that stays.
    ///
    /// ```
    /// # use relent::breaker::CircuitBreaker;
    /// let breaker = CircuitBreaker::new().named("payments");
    /// assert_eq!(breaker.force_open().unwrap().name(), "payments");
    /// assert_eq!(breaker.acquire().unwrap_err().name(), "payments");
    /// ```
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// How many failures in a row open the breaker; 5 by default.
    ///
    /// A success in between starts the count anew, a neutral outcome leaves it.
    ///
    /// # Panics
    ///
    /// If it is 0; in a `const` or `static` it then does not compile.
    ///
    /// ```
    /// # use relent::breaker::{CircuitBreaker, State};
    /// let breaker = CircuitBreaker::new().failure_threshold(2);
    /// breaker.acquire()?.failure();
    /// breaker.acquire()?.success();
    /// breaker.acquire()?.failure();
    /// assert_eq!(breaker.state(), State::Closed);
    /// breaker.acquire()?.failure();
    /// assert_eq!(breaker.state(), State::Open);
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn failure_threshold(mut self, failures: u16) -> Self {
        assert!(failures > 0, "{}", FAILURES_RULE);
        self.limits.failure_threshold = failures;
        self
    }

    /// How long the breaker stays open; fixed at 30 s by default. Let it be longer than a call may last: see
    /// [half-open](super#half-open).
    ///
    /// A policy, so that a service that fails its probes is asked less and less often: the `k`-th trip in a row, without
    /// a return to closed, waits what the policy waits after `k` failures, jitter included. One draw per trip (another
    /// if the clock steps back behind it). `k` stops at 255. The policy's limits of attempts and of time do not apply: a
    /// breaker does not give up.
    ///
    /// A [`Policy::exponential`] of 30 s or more grows only with a [`max_delay`](Policy::max_delay) above that.
    ///
    /// With a cooldown of zero every call is admitted as a probe, and only the latest counts.
    ///
    /// # Panics
    ///
    /// If the policy has decorrelated jitter, which needs the delay before; in a `const` or `static` it then does not
    /// compile.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::Policy;
    /// # use relent::breaker::CircuitBreaker;
    /// let cooldown = Policy::fixed(Duration::from_millis(250));
    /// let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown);
    /// breaker.acquire()?.failure();
    /// assert!(breaker.acquire().unwrap_err().retry_after() <= Duration::from_millis(250));
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn cooldown(mut self, policy: Policy) -> Self {
        assert!(is_stateless(&policy), "{}", COOLDOWN_RULE);
        self.cooldown = policy;
        self
    }

    /// How many calls a half-open breaker lets through at the same time; 1 by default.
    ///
    /// Those of one [lease](super#half-open), that is: what still runs when it ends is not counted any more.
    ///
    /// # Panics
    ///
    /// If it is 0; in a `const` or `static` it then does not compile.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::breaker::CircuitBreaker;
    /// # use relent::clock::VirtualClock;
    /// let clock = VirtualClock::new();
    /// let breaker = CircuitBreaker::new().failure_threshold(1).probes(2).with_clock(&clock);
    /// breaker.acquire()?.failure();
    /// clock.advance(Duration::from_secs(30));
    /// let probes = [breaker.acquire()?, breaker.acquire()?];
    /// assert!(breaker.acquire().is_err());
    /// drop(probes);
    /// assert!(breaker.acquire().is_ok());
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn probes(mut self, probes: u8) -> Self {
        assert!(probes > 0, "{}", PROBES_RULE);
        self.limits.probes = probes;
        self
    }

    /// How many probes must succeed, without a failure in between, to close the breaker; 1 by default.
    ///
    /// It may exceed [`probes`](Self::probes): a probe that has ended makes room for the next.
    ///
    /// # Panics
    ///
    /// If it is 0; in a `const` or `static` it then does not compile.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::breaker::{CircuitBreaker, State};
    /// # use relent::clock::VirtualClock;
    /// let clock = VirtualClock::new();
    /// let breaker = CircuitBreaker::new().failure_threshold(1).success_threshold(2);
    /// let breaker = breaker.with_clock(&clock);
    /// breaker.acquire()?.failure();
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(breaker.acquire()?.success(), None);
    /// assert_eq!(breaker.acquire()?.success().map(|transition| transition.to()), Some(State::Closed));
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn success_threshold(mut self, successes: u8) -> Self {
        assert!(successes > 0, "{}", SUCCESSES_RULE);
        self.limits.success_threshold = successes;
        self
    }

    /// Makes the jitter of the cooldown reproducible: the same trips at the same times draw the same.
    ///
    /// Without it every process draws differently, and so does each of its breakers. Where there is no randomness to start
    /// from (without the `std` feature, and on `wasm32-unknown-unknown`), give each device a seed of its own, or all that
    /// fail together come back together.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::{Jitter, Policy};
    /// # use relent::breaker::CircuitBreaker;
    /// # use relent::clock::VirtualClock;
    /// let cooldown = |seed| {
    ///     let policy = Policy::fixed(Duration::from_secs(30)).jitter(Jitter::Full);
    ///     let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(policy).seed(seed);
    ///     let breaker = breaker.with_clock(VirtualClock::new());
    ///     breaker.acquire().unwrap().failure();
    ///     breaker.acquire().unwrap_err().retry_after()
    /// };
    /// assert_eq!(cooldown(1), cooldown(1));
    /// assert_ne!(cooldown(1), cooldown(2));
    /// ```
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Calls `hook` after each transition, on the thread that caused it.
    ///
    /// Of transitions that quickly follow each other on different threads, the hooks may run in either order.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicU32, Ordering};
    /// # use relent::breaker::{CircuitBreaker, State};
    /// static TRIPS: AtomicU32 = AtomicU32::new(0);
    ///
    /// let breaker = CircuitBreaker::new().failure_threshold(1).on_transition(|transition| {
    ///     if transition.to() == State::Open {
    ///         TRIPS.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// breaker.acquire()?.failure();
    /// breaker.reset();
    /// assert_eq!(TRIPS.load(Ordering::Relaxed), 1);
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    #[must_use]
    pub const fn on_transition(mut self, hook: fn(&Transition)) -> Self {
        self.on_transition = Some(hook);
        self
    }
}
