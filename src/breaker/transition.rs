//! The states of a breaker, and the steps between them.

use core::fmt;

/// Where a breaker stands.
///
/// ```
/// use std::time::Duration;
/// use relent::breaker::{CircuitBreaker, State};
/// use relent::clock::VirtualClock;
///
/// let clock = VirtualClock::new();
/// let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
/// assert_eq!(breaker.state(), State::Closed);
/// breaker.acquire()?.failure();
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(breaker.state(), State::Open);
/// let probe = breaker.acquire()?;
/// assert_eq!(breaker.state(), State::HalfOpen);
/// probe.success();
/// assert_eq!(breaker.state(), State::Closed);
///
/// breaker.force_open();
/// assert_eq!(breaker.state(), State::ForcedOpen);
/// breaker.force_closed();
/// assert_eq!(breaker.state(), State::ForcedClosed);
/// assert_eq!(State::HalfOpen.to_string(), "half-open");
/// # Ok::<(), relent::error::CircuitOpen>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Every call is admitted, and its result counts.
    Closed,
    /// No call is admitted until the cooldown has passed. The first one after that makes it half-open: until a call
    /// asks, a breaker whose cooldown has passed stays open.
    Open,
    /// A few calls are admitted as probes; their results close the breaker or open it again.
    HalfOpen,
    /// Opened by hand: no call is admitted until [`reset`](super::CircuitBreaker::reset).
    ForcedOpen,
    /// Closed by hand: every call is admitted and no result counts until [`reset`](super::CircuitBreaker::reset).
    ForcedClosed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::ForcedOpen => "forced open",
            Self::ForcedClosed => "forced closed",
        })
    }
}

/// A breaker went from one state to another.
///
/// Told to the hook of [`on_transition`](super::CircuitBreaker::on_transition), and returned to the caller that caused
/// it. `Display` is a line for a log.
///
/// ```
/// use relent::breaker::{CircuitBreaker, State};
///
/// let breaker = CircuitBreaker::new().named("db").failure_threshold(1);
/// let tripped = breaker.acquire()?.failure().unwrap();
/// assert_eq!((tripped.name(), tripped.from(), tripped.to()), ("db", State::Closed, State::Open));
/// assert_eq!(tripped.to_string(), r#"circuit breaker "db": closed -> open"#);
/// # Ok::<(), relent::error::CircuitOpen>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub(super) name: &'static str,
    pub(super) from: State,
    pub(super) to: State,
}

impl Transition {
    /// The name of the breaker; empty if it has none.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The state that was left.
    #[must_use]
    pub const fn from(&self) -> State {
        self.from
    }

    /// The state that was entered.
    #[must_use]
    pub const fn to(&self) -> State {
        self.to
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("circuit breaker")?;
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        write!(f, ": {} -> {}", self.from, self.to)
    }
}
