//! What goes wrong, drawn from a seed.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relent::rng::{Rng, SeededRng};

/// What goes wrong with one request, or with the look-up for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset before the request is executed.
    ResetBefore,
    /// The connection is reset after that.
    ResetAfter,
    /// 503.
    Unavailable,
    /// 429, with a `Retry-After` in seconds.
    TooManySeconds,
    /// 429, with a `Retry-After` that is a date.
    TooManyDate,
    /// The body comes in pieces, in time.
    SlowBody,
    /// The body begins, and does not go on.
    StalledBody,
    /// The body ends before its length.
    PartialBody,
    /// The name cannot be looked up.
    Lookup,
}

impl Fault {
    /// All of them, in their order.
    pub const ALL: [Self; 9] = [
        Self::ResetBefore,
        Self::ResetAfter,
        Self::Unavailable,
        Self::TooManySeconds,
        Self::TooManyDate,
        Self::SlowBody,
        Self::StalledBody,
        Self::PartialBody,
        Self::Lookup,
    ];

    /// How often a request meets it: about one in six meets any.
    const fn rate(self) -> f64 {
        match self {
            Self::ResetBefore | Self::ResetAfter | Self::PartialBody => 0.02,
            Self::Unavailable => 0.04,
            Self::TooManySeconds | Self::TooManyDate | Self::StalledBody => 0.01,
            Self::SlowBody => 0.03,
            Self::Lookup => 0.1,
        }
    }
}

/// How the upstream is as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Weather {
    /// Each request meets a fault with its own rate.
    Usual,
    /// Every connection is reset.
    Down,
    /// No request is answered.
    Hanging,
}

/// The source of all faults, and their count.
#[derive(Debug)]
pub struct Faults {
    rng: Mutex<SeededRng>,
    weather: AtomicU8,
    met: [AtomicU64; Fault::ALL.len()],
}

/// How long a hanging or stalled upstream holds a connection: longer than anybody waits.
pub const STALL: Duration = Duration::from_secs(30);

impl Faults {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let met = Fault::ALL.map(|_| AtomicU64::new(0));
        Self { rng: Mutex::new(SeededRng::new(seed)), weather: AtomicU8::new(Weather::Usual as u8), met }
    }

    pub fn set_weather(&self, weather: Weather) {
        self.weather.store(weather as u8, Relaxed);
    }

    #[must_use]
    pub fn is(&self, weather: Weather) -> bool {
        self.weather.load(Relaxed) == weather as u8
    }

    /// The fault that the next request meets.
    pub fn for_request(&self) -> Option<Fault> {
        if self.is(Weather::Down) {
            return Some(self.meet(Fault::ResetBefore));
        }
        let mut draw = self.draw();
        let meets = |fault: &Fault| {
            draw -= fault.rate();
            draw < 0.0
        };
        Fault::ALL.into_iter().filter(|fault| *fault != Fault::Lookup).find(meets).map(|fault| self.meet(fault))
    }

    /// Whether the next look-up fails.
    pub fn fails_lookup(&self) -> bool {
        let fails = self.draw() < Fault::Lookup.rate();
        if fails {
            self.meet(Fault::Lookup);
        }
        fails
    }

    fn draw(&self) -> f64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).next_f64()
    }

    fn meet(&self, fault: Fault) -> Fault {
        self.met[fault as usize].fetch_add(1, Relaxed);
        fault
    }

    /// How often each was met.
    pub fn met(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Fault::ALL.into_iter().zip(&self.met).map(|(fault, met)| (fault, met.load(Relaxed)))
    }
}

/// The counts.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.met().map(|(fault, met)| format!("{met} {fault:?}")).collect();
        f.write_str(&counts.join(", "))
    }
}
