//! What a breaker knows, packed into two words, and the rules that lead from one state to the next.

use core::time::Duration;

use super::State;

/// The state, as the first word holds it.
///
/// | bits | field |
/// |---|---|
/// | 0..3 | which phase |
/// | 3..27 | the counts of the phase: one of 16 bits, or up to three of 8 |
/// | 27..40 | `event` |
/// | 40..64 | `generation` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) phase: Phase,
    /// The number of the latest event whose time the second word holds: a trip, or the beginning of a lease. Wraps.
    pub(super) event: u64,
    /// Changes when the results of the calls in flight stop to count. Wraps.
    pub(super) generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed { failures: u16 },
    Open { trips: u8 },
    HalfOpen { trips: u8, in_flight: u8, successes: u8 },
    ForcedOpen,
    ForcedClosed,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Success,
    Failure,
    Neutral,
}

/// How many of what change the state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) failure_threshold: u16,
    pub(super) probes: u8,
    pub(super) success_threshold: u8,
}

const PHASE_BITS: u32 = 3;
const EVENT_BITS: u32 = 13;
const EVENT_SHIFT: u32 = 27;
const GENERATION_SHIFT: u32 = EVENT_SHIFT + EVENT_BITS;

const PHASE_MASK: u64 = (1 << PHASE_BITS) - 1;
const HEALTHY_MASK: u64 = (1 << EVENT_SHIFT) - 1;
const EVENT_MASK: u64 = (1 << EVENT_BITS) - 1;
const GENERATION_MASK: u64 = u64::MAX >> GENERATION_SHIFT;

// As the module's documentation says.
const _: () = assert!(GENERATION_MASK + 1 == 16_777_216);

/// The generation of a packed state that is closed, without the cost of unpacking any other.
#[inline]
pub(super) const fn closed_generation(word: u64) -> Option<u64> {
    if word & PHASE_MASK == 0 { Some(word >> GENERATION_SHIFT) } else { None }
}

/// Whether a packed state is closed with no failure pending: then no result but a failure can change it.
#[inline]
pub(super) const fn is_healthy(word: u64) -> bool {
    word & HEALTHY_MASK == 0
}

impl Word {
    /// Closed, with nothing counted.
    pub(super) const NEW: u64 = Self { phase: Phase::Closed { failures: 0 }, event: 0, generation: 0 }.pack();

    pub(super) const fn pack(self) -> u64 {
        let (phase, [a, b, c]) = match self.phase {
            Phase::Closed { failures } => {
                let [low, high] = failures.to_le_bytes();
                (0, [low, high, 0])
            }
            Phase::Open { trips } => (1, [trips, 0, 0]),
            Phase::HalfOpen { trips, in_flight, successes } => (2, [trips, in_flight, successes]),
            Phase::ForcedOpen => (3, [0; 3]),
            Phase::ForcedClosed => (4, [0; 3]),
        };
        let counts = u64::from_le_bytes([a, b, c, 0, 0, 0, 0, 0]);
        phase + (counts << PHASE_BITS) + (self.event << EVENT_SHIFT) + (self.generation << GENERATION_SHIFT)
    }

    pub(super) const fn unpack(word: u64) -> Self {
        let [a, b, c, ..] = (word >> PHASE_BITS).to_le_bytes();
        let phase = match word & PHASE_MASK {
            0 => Phase::Closed { failures: u16::from_le_bytes([a, b]) },
            1 => Phase::Open { trips: a },
            2 => Phase::HalfOpen { trips: a, in_flight: b, successes: c },
            3 => Phase::ForcedOpen,
            _ => Phase::ForcedClosed,
        };
        Self { phase, event: word >> EVENT_SHIFT & EVENT_MASK, generation: word >> GENERATION_SHIFT }
    }

    pub(super) const fn state(self) -> State {
        match self.phase {
            Phase::Closed { .. } => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::ForcedOpen => State::ForcedOpen,
            Phase::ForcedClosed => State::ForcedClosed,
        }
    }

    /// The state after a call of this generation ended; `None` if that changes nothing.
    pub(super) const fn after(self, outcome: Outcome, limits: Limits) -> Option<Self> {
        Some(match (self.phase, outcome) {
            (Phase::Closed { failures: 1.. }, Outcome::Success) => self.with(Phase::Closed { failures: 0 }),
            (Phase::Closed { failures }, Outcome::Failure) if failures + 1 < limits.failure_threshold => {
                self.with(Phase::Closed { failures: failures + 1 })
            }
            (Phase::Closed { .. }, Outcome::Failure) => self.trip(1),
            (Phase::HalfOpen { successes, .. }, Outcome::Success) if successes + 1 >= limits.success_threshold => {
                self.restart(Phase::Closed { failures: 0 })
            }
            (Phase::HalfOpen { trips, in_flight, successes }, Outcome::Success) => {
                self.with(Phase::HalfOpen { trips, in_flight: in_flight.saturating_sub(1), successes: successes + 1 })
            }
            (Phase::HalfOpen { trips, .. }, Outcome::Failure) => self.trip(trips.saturating_add(1)),
            (Phase::HalfOpen { trips, in_flight, successes }, Outcome::Neutral) => {
                self.with(Phase::HalfOpen { trips, in_flight: in_flight.saturating_sub(1), successes })
            }
            _ => return None,
        })
    }

    /// The state after a probe was admitted to a free slot; `None` if there is none.
    ///
    /// It begins no lease, which would lengthen that of a probe that never ends.
    pub(super) const fn admit(self, limits: Limits) -> Option<Self> {
        match self.phase {
            Phase::HalfOpen { trips, in_flight, successes } if in_flight < limits.probes => {
                Some(self.with(Phase::HalfOpen { trips, in_flight: in_flight + 1, successes }))
            }
            _ => None,
        }
    }

    /// The state after a probe was admitted that begins a lease; whatever held a slot before has lost it.
    pub(super) const fn lease(self, trips: u8) -> Self {
        let successes = if let Phase::HalfOpen { successes, .. } = self.phase { successes } else { 0 };
        self.restart(Phase::HalfOpen { trips, in_flight: 1, successes }).next_event()
    }

    /// `phase`, in which the results of earlier calls do not count.
    pub(super) const fn restart(self, phase: Phase) -> Self {
        Self { phase, generation: (self.generation + 1) & GENERATION_MASK, ..self }
    }

    const fn trip(self, trips: u8) -> Self {
        self.restart(Phase::Open { trips }).next_event()
    }

    const fn with(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    const fn next_event(self) -> Self {
        Self { event: (self.event + 1) & EVENT_MASK, ..self }
    }
}

/// When an event happened, as the second word holds it: the number of the event in the low 13 bits, above it the
/// clock's microseconds modulo 2^51 (71 years), so that a clock may have any origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) event: u64,
    micros: u64,
}

const MICROS_MASK: u64 = u64::MAX >> EVENT_BITS;

impl Stamp {
    pub(super) const fn new(event: u64, now: Duration) -> Self {
        Self { event, micros: micros(now) }
    }

    pub(super) const fn pack(self) -> u64 {
        (self.micros << EVENT_BITS) + self.event
    }

    pub(super) const fn unpack(word: u64) -> Self {
        Self { event: word & EVENT_MASK, micros: word >> EVENT_BITS }
    }

    /// The time since, or `None` if the clock has stepped back behind it.
    pub(super) const fn elapsed(self, now: Duration) -> Option<Duration> {
        let elapsed = micros(now).wrapping_sub(self.micros) & MICROS_MASK;
        if elapsed <= MICROS_MASK / 2 { Some(Duration::from_micros(elapsed)) } else { None }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the time is held modulo 2^51")]
const fn micros(time: Duration) -> u64 {
    time.as_micros() as u64 & MICROS_MASK
}
