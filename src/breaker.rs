//! Refusing calls to a service that is down.
//!
//! # What it is for
//!
//! While a service is down, every call to it still costs its caller a connection and the wait for a timeout, and costs
//! the service the work of failing. A circuit breaker sees failures follow each other, and then answers in the service's
//! stead: the call is refused at once, with the time after which to ask again.
//!
//! ```
//! use std::time::Duration;
//! use relent::breaker::CircuitBreaker;
//! use relent::clock::VirtualClock;
//!
//! // A service is down for 100 s, and gets 10 calls a second.
//! let clock = VirtualClock::new();
//! let breaker = CircuitBreaker::new().with_clock(&clock);
//! let mut reached = 0;
//! for _ in 0..1000 {
//!     let _ = breaker.call_blocking(|| {
//!         reached += 1;
//!         Err::<(), _>("down")
//!     });
//!     clock.advance(Duration::from_millis(100));
//! }
//! assert_eq!(reached, 5 + 3); // five failures in a row, and a probe after every 30 s
//! ```
//!
//! # Failures in a row, or a rate
//!
//! This breaker counts failures in a row. That needs no window and no least number of calls, and tells a service that is
//! down from one that is flaky. A service that fails every call opens it within the threshold; flakiness hardly does,
//! and is what retries are for:
//!
//! ```
//! /// How many calls it takes on average until five in a row fail, each with probability `p`.
//! fn calls_until_open(p: f64) -> f64 {
//!     (p.powi(-5) - 1.0) / (1.0 - p)
//! }
//!
//! assert_eq!(calls_until_open(0.9).round(), 7.0);
//! assert_eq!(calls_until_open(0.5).round(), 62.0);
//! assert_eq!(calls_until_open(0.1).round(), 111_110.0);
//! ```
//!
//! The price: a service that fails most calls but not all stays in use for longer than under a rule such as "half of the
//! last hundred". Results count in the order in which they are reported.
//!
//! # Half-open
//!
//! When the cooldown has passed nobody knows whether the service is well. To let all callers find out would be the load
//! that keeps it down, so the breaker lets a few through as *probes*, one by default, and refuses the rest. Enough
//! successes close it, one failure opens it again. The cooldown is a [`Policy`], so that it can grow while the probes
//! fail, and jitter keeps the probes of many processes apart.
//!
//! A probe that hangs would hold its slot for ever. So the slots have one *lease*, which begins when the first of them is
//! taken and is as long as the cooldown without its jitter. The first call after its end takes them all back: it begins
//! the next lease, and the results of the probes before it are ignored. So no slot is lost for longer, whatever happens
//! in the others; and a probe that began a lease counts if it ends within it, so the breaker makes headway. A probe that
//! outlives its lease makes the next one longer, as a failure would, if the cooldown is one that grows. A fixed cooldown
//! must be longer than a call may last, its timeout included: no slower call ever closes the breaker.
//!
//! # A run as one call, or each attempt as a call
//!
//! ```
//! use std::time::Duration;
//! use relent::breaker::{CallError, CircuitBreaker};
//! use relent::clock::{Clock, VirtualClock};
//! use relent::{Policy, retry};
//! # use std::cell::Cell;
//!
//! const POLICY: Policy = Policy::fixed(Duration::from_millis(100)); // three attempts
//!
//! let clock = VirtualClock::new();
//! let breaker = CircuitBreaker::new().with_clock(&clock);
//! # let count = Cell::new(0);
//! # let calls = || count.replace(0);
//! let query = || async {
//!     # count.set(count.get() + 1);
//!     Err::<u32, _>("down")
//! };
//!
//! clock.block_on(async {
//!     // A run is one call: five runs fail, which is 15 attempts. A refused run ends at once.
//!     for _ in 0..5 {
//!         let run = retry(|_| query(), POLICY).clock(&clock);
//!         assert_eq!(breaker.call(run).await, Err(CallError::Inner("down")));
//!     }
//!     assert_eq!(calls(), 15);
//!     let before = clock.now();
//!     let refused = breaker.call(retry(|_| query(), POLICY).clock(&clock)).await;
//!     assert!(matches!(refused, Err(CallError::Open(_))));
//!     assert_eq!((calls(), clock.now()), (0, before));
//!
//!     // Each attempt is a call: five attempts fail, in whatever runs.
//!     // A refused attempt waits for the cooldown to end.
//!     breaker.reset();
//!     for _ in 0..2 {
//!         let _ = retry(|_| breaker.call(query()), POLICY).clock(&clock).await;
//!     }
//!     assert_eq!(calls(), 5);
//!     let before = clock.now();
//!     let refused = retry(|_| breaker.call(query()), POLICY.max_attempts(2)).clock(&clock).await;
//!     assert_eq!(refused, Err(CallError::Inner("down"))); // its second attempt was the probe
//!     assert_eq!((calls(), clock.now() - before), (1, Duration::from_millis(29_900)));
//! });
//! ```
//!
//! Wrap the run where somebody waits for the answer: a failure that a retry mends does not count, and while the breaker
//! is open nobody waits. A refused run is not begun, so a [budget](crate::budget) does not count it. A probe is then a
//! whole run: let the cooldown be longer than a run lasts, the waits that a server may ask for included
//! ([`max_elapsed`](Policy::max_elapsed) bounds them). A probe that may not retry, because the budget is used up or
//! the operation is not idempotent, opens the breaker again at one failure, as a single call would.
//!
//! Wrap each attempt where the work can wait, a queue say: the breaker opens sooner, all runs see it between their
//! attempts, and they come back when the cooldown ends, spread by the jitter of their own policies. Those that come
//! while a probe is out wait as if it hung: until its lease ends, which a cooldown much longer than a call makes long.
//! A refusal does not count as a failure of the service, but it is a failed attempt of its run: it uses up one of the
//! run's attempts, and the retry after it asks the budget as any other. A cooldown longer than the run's ceiling on
//! hints, or than what is left until its deadline, ends the run at once.
//!
//! Do one or the other with a breaker: a call inside a call of the same one counts twice, and when the outer is the
//! probe the inner is refused.
//!
//! # How it is shared
//!
//! All of the state is in two words of 64 bits. The first holds the phase with its counts, the number of the latest trip
//! or lease, and a generation; every admission and every result that counts is one compare-exchange on it. The second
//! holds the time of that trip, or at which that lease began. A call that succeeds while no failure is pending only
//! loads the first, and reads no clock. There is no lock, and no thread waits for another. On targets without 64-bit
//! atomics this module is absent.
//!
//! The models in `tests/loom` try every interleaving of two and of three threads, for the largest models every one with
//! up to four preemptions: exactly one, or two, of three calls are admitted when the cooldown ends; a result, a drop and
//! the end of a lease neither lose a slot nor give it twice; a success that clears a failure does not undo a trip; the
//! time of a trip is not overwritten by an earlier one. The generation has 24 bits: a result counts wrongly only if it is
//! reported exactly a multiple of 16 777 216 trips, closes and leases after its call was admitted.

mod build;
mod call;
mod config;
mod permit;
mod transition;
mod word;

use core::fmt;
use core::time::Duration;

use crate::clock::{Clock, DefaultClock};
use crate::error::CircuitOpen;
use crate::policy::Policy;
use crate::rng::{Rng, SeededRng};
use crate::sync::{AtomicU64, Ordering};
use word::{Limits, Outcome, Phase, Stamp, Word};

pub use crate::error::call::CallError;
pub use config::{BreakerConfig, BreakerError};
pub use permit::Permit;
pub use transition::{State, Transition};

/// Stops calling a service that keeps failing, and finds out when it is well again.
///
/// See the [module](self) for when to use one. It is shared by reference, so a `static` serves a whole program (a `const`
/// would be a new one at each use); without a failure pending, a call that succeeds only reads it.
///
/// ```
/// use std::time::Duration;
/// use relent::Policy;
/// use relent::breaker::{CircuitBreaker, State};
///
/// static DATABASE: CircuitBreaker = CircuitBreaker::new()
///     .named("database")
///     .failure_threshold(3)
///     .cooldown(Policy::exponential(Duration::from_secs(10)).max_delay(Duration::from_secs(300)));
///
/// for _ in 0..3 {
///     DATABASE.acquire()?.failure();
/// }
/// assert_eq!(DATABASE.state(), State::Open);
/// assert_eq!(DATABASE.acquire().unwrap_err().name(), "database");
/// # Ok::<(), relent::error::CircuitOpen>(())
/// ```
pub struct CircuitBreaker<C = DefaultClock> {
    /// A packed [`Word`].
    word: AtomicU64,
    /// A packed [`Stamp`].
    stamp: AtomicU64,
    limits: Limits,
    cooldown: Policy,
    seed: Option<u64>,
    name: &'static str,
    on_transition: Option<fn(&Transition)>,
    clock: C,
}

impl<C> CircuitBreaker<C> {
    /// Asks to make a call.
    ///
    /// # Errors
    ///
    /// [`CircuitOpen`] if the breaker is open, or half-open with all probes in flight. Its `retry_after` is the time
    /// until the cooldown ends, or the lease of the slots: after that much time the same question is
    /// answered with a permit, unless another call got it. A refusal does not count as a failure.
    ///
    /// ```
    /// use relent::breaker::CircuitBreaker;
    ///
    /// fn load(breaker: &CircuitBreaker) -> Result<u32, Box<dyn std::error::Error>> {
    ///     let permit = breaker.acquire()?;
    ///     match "42".parse() {
    ///         Ok(value) => {
    ///             permit.success();
    ///             Ok(value)
    ///         }
    ///         Err(error) => {
    ///             permit.failure();
    ///             Err(Box::new(error))
    ///         }
    ///     }
    /// }
    ///
    /// let breaker = CircuitBreaker::new();
    /// assert_eq!(load(&breaker).unwrap(), 42);
    /// breaker.force_open();
    /// assert!(load(&breaker).unwrap_err().to_string().starts_with("circuit breaker is open"));
    /// ```
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_, C>, CircuitOpen>
    where
        C: Clock,
    {
        let word = self.word.load(Ordering::Acquire);
        match word::closed_generation(word) {
            Some(generation) => Ok(Permit::new(self, generation)),
            None => self.acquire_probe(Word::unpack(word)),
        }
    }

    /// The state at this moment.
    ///
    /// It changes with a call: a breaker whose cooldown has passed is [`Open`](State::Open) until the next one asks.
    #[must_use]
    pub fn state(&self) -> State {
        self.load().state()
    }

    /// Refuses every call until [`reset`](Self::reset), however long that takes.
    ///
    /// The refusal's `retry_after` is [`Duration::MAX`], which ends a run at once, unless it ignores hints. The results
    /// of calls in flight are ignored, and so is a cooldown that was running. Returns the transition, or `None` if it was
    /// forced open already.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::breaker::{CircuitBreaker, State};
    /// let breaker = CircuitBreaker::new();
    /// assert_eq!(breaker.force_open().map(|transition| transition.to()), Some(State::ForcedOpen));
    /// assert_eq!(breaker.force_open(), None);
    /// assert_eq!(breaker.acquire().unwrap_err().retry_after(), Duration::MAX);
    /// ```
    pub fn force_open(&self) -> Option<Transition> {
        self.force(Phase::ForcedOpen)
    }

    /// Admits every call and ignores every result until [`reset`](Self::reset).
    ///
    /// Returns the transition, or `None` if it was forced closed already.
    ///
    /// ```
    /// # use relent::breaker::{CircuitBreaker, State};
    /// let breaker = CircuitBreaker::new().failure_threshold(1);
    /// breaker.force_closed();
    /// assert_eq!(breaker.acquire()?.failure(), None);
    /// assert_eq!(breaker.state(), State::ForcedClosed);
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    pub fn force_closed(&self) -> Option<Transition> {
        self.force(Phase::ForcedClosed)
    }

    /// Back to closed from any state, forced or not, with nothing counted.
    ///
    /// The results of calls in flight are ignored. Returns the transition, or `None` if it was closed already.
    ///
    /// ```
    /// # use relent::breaker::{CircuitBreaker, State};
    /// let breaker = CircuitBreaker::new().failure_threshold(1);
    /// let in_flight = breaker.acquire()?;
    /// breaker.acquire()?.failure();
    /// assert_eq!(breaker.reset().map(|transition| transition.from()), Some(State::Open));
    /// assert_eq!(in_flight.failure(), None);
    /// assert_eq!(breaker.state(), State::Closed);
    /// # Ok::<(), relent::error::CircuitOpen>(())
    /// ```
    pub fn reset(&self) -> Option<Transition> {
        self.force(Phase::Closed { failures: 0 })
    }

    fn force(&self, phase: Phase) -> Option<Transition> {
        let mut seen = self.load();
        loop {
            let next = seen.restart(phase);
            match self.replace(seen, next) {
                Ok(()) => return self.announce(seen, next),
                Err(actual) => seen = actual,
            }
        }
    }

    fn load(&self) -> Word {
        Word::unpack(self.word.load(Ordering::Acquire))
    }

    fn replace(&self, seen: Word, next: Word) -> Result<(), Word> {
        match self.word.compare_exchange(seen.pack(), next.pack(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(actual) => Err(Word::unpack(actual)),
        }
    }

    fn announce(&self, seen: Word, next: Word) -> Option<Transition> {
        let transition = Transition { name: self.name, from: seen.state(), to: next.state() };
        if transition.from == transition.to {
            return None;
        }
        if let Some(hook) = self.on_transition {
            hook(&transition);
        }
        Some(transition)
    }
}

impl<C: Clock> CircuitBreaker<C> {
    #[cold]
    fn acquire_probe(&self, mut seen: Word) -> Result<Permit<'_, C>, CircuitOpen> {
        loop {
            let next = match seen.phase {
                Phase::Closed { .. } | Phase::ForcedClosed => return Ok(Permit::new(self, seen.generation)),
                Phase::ForcedOpen => return Err(CircuitOpen::new(self.name, Duration::MAX)),
                Phase::HalfOpen { trips, in_flight: 0, .. } => seen.lease(trips),
                Phase::Open { trips } | Phase::HalfOpen { trips, .. } => match self.time_left(seen, trips) {
                    None => {
                        seen = self.load();
                        continue;
                    }
                    // A probe that is still out is slow enough to count as one more that failed.
                    Some(Duration::ZERO) if seen.state() == State::HalfOpen => seen.lease(trips.saturating_add(1)),
                    Some(Duration::ZERO) => seen.lease(trips),
                    Some(wait) => seen.admit(self.limits).ok_or(CircuitOpen::new(self.name, wait))?,
                },
            };
            match self.replace(seen, next) {
                Ok(()) => {
                    // Before the clock and the hook run: should one of them panic, the slot is free again.
                    let permit = Permit::new(self, next.generation);
                    if next.event != seen.event {
                        self.date(next);
                    }
                    self.announce(seen, next);
                    return Ok(permit);
                }
                Err(actual) => seen = actual,
            }
        }
    }

    /// Reports how a call of `generation` ended.
    #[inline]
    fn report(&self, generation: u64, outcome: Outcome) -> Option<Transition> {
        let healthy = word::is_healthy(self.word.load(Ordering::Acquire));
        if healthy && !matches!(outcome, Outcome::Failure) { None } else { self.count(generation, outcome) }
    }

    #[cold]
    fn count(&self, generation: u64, outcome: Outcome) -> Option<Transition> {
        let mut seen = self.load();
        while seen.generation == generation {
            let next = seen.after(outcome, self.limits)?;
            match self.replace(seen, next) {
                Ok(()) => {
                    if next.event != seen.event {
                        self.date(next);
                    }
                    return self.announce(seen, next);
                }
                Err(actual) => seen = actual,
            }
        }
        None
    }

    /// What is left of the cooldown, or of the lease of the slots; `None` if the state has moved on.
    fn time_left(&self, seen: Word, trips: u8) -> Option<Duration> {
        let (stamp, age) = self.date(seen)?;
        let nominal = self.cooldown.nominal_after(trips.into());
        let wait = match seen.phase {
            Phase::Open { .. } => self.cooldown.delay_after(trips.into(), self.draw(stamp)).unwrap_or(nominal),
            // Not drawn: full jitter could take the slot of a probe that has hardly begun.
            _ => nominal,
        };
        Some(wait.saturating_sub(age))
    }

    /// When the event of `seen` happened, and how long ago; `None` if another has followed it. Writes the time of an
    /// event that has none yet.
    ///
    /// The thread that made the event does so right after it. Whoever comes between the two does it instead, so that no
    /// thread waits for another. An event behind which the clock has stepped back is taken to happen now: the wait is
    /// then no longer than asked.
    fn date(&self, seen: Word) -> Option<(Stamp, Duration)> {
        loop {
            let written = Stamp::unpack(self.stamp.load(Ordering::Acquire));
            // After the stamp, or an event that another thread has just dated would seem to lie ahead.
            let now = self.clock.now();
            if written.event == seen.event {
                if let Some(age) = written.elapsed(now) {
                    return Some((written, age));
                }
            }
            if self.load().event != seen.event {
                return None;
            }
            let dated = Stamp::new(seen.event, now);
            let exchange =
                self.stamp.compare_exchange(written.pack(), dated.pack(), Ordering::AcqRel, Ordering::Relaxed);
            if exchange.is_ok() {
                return Some((dated, Duration::ZERO));
            }
        }
    }

    /// The draw of a trip: its number and its time, hashed. All who ask find the same, so it need not be kept.
    fn draw(&self, stamp: Stamp) -> f64 {
        // Breakers of one process that trip together differ in where they are. One that is moved while open draws again.
        let seed = self.seed.unwrap_or_else(|| default_seed(core::ptr::from_ref(self).addr()));
        SeededRng::new(seed ^ stamp.pack()).next_f64()
    }
}

impl<C> fmt::Debug for CircuitBreaker<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("name", &self.name)
            .field("state", &self.state())
            .field("limits", &self.limits)
            .field("cooldown", &self.cooldown)
            .finish_non_exhaustive()
    }
}

/// Differs between processes and between the breakers of one, so that those that trip together do not come back together.
#[cfg(feature = "std")]
fn default_seed(address: usize) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::LazyLock;

    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(address)
}

#[cfg(not(feature = "std"))]
const fn default_seed(address: usize) -> u64 {
    address as u64
}
