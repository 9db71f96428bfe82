//! Whatever happens to a circuit breaker in sequence, it does what a model of its rules does that packs nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use relent::breaker::{CircuitBreaker, Permit, State};
use relent::clock::VirtualClock;
use relent::error::CircuitOpen;
use relent::{Jitter, Policy};

#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire,
    /// Of the permits that are held, the one at this place from the start, wrapped around.
    Success(usize),
    Failure(usize),
    Neutral(usize),
    Advance(u64),
    ForceOpen,
    ForceClosed,
    Reset,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Acquire),
        4 => (0..8_usize).prop_map(Event::Success),
        6 => (0..8_usize).prop_map(Event::Failure),
        2 => (0..8_usize).prop_map(Event::Neutral),
        4 => prop_oneof![Just(100), Just(200), Just(400), 0..500_u64].prop_map(Event::Advance),
        1 => prop_oneof![Just(Event::ForceOpen), Just(Event::ForceClosed), Just(Event::Reset), Just(Event::Reset)],
    ]
}

fn policy() -> Policy {
    Policy::exponential(Duration::from_millis(100)).jitter(Jitter::None).max_delay(Duration::from_millis(400))
}

/// The rules, with every permit known by its number.
struct Model {
    threshold: u16,
    probes: usize,
    successes_needed: u8,
    now: Duration,
    state: State,
    failures: u16,
    successes: u8,
    trips: u32,
    /// The last trip, or the last admission of a probe while no other was in flight.
    since: Duration,
    /// The calls whose results count. In the half-open state these are the probes.
    counting: BTreeSet<usize>,
}

impl Model {
    fn enter(&mut self, state: State) -> Option<(State, State)> {
        let from = std::mem::replace(&mut self.state, state);
        self.failures = 0;
        self.counting.clear();
        (from != state).then_some((from, state))
    }

    fn trip(&mut self) -> Option<(State, State)> {
        self.trips += 1;
        self.since = self.now;
        self.enter(State::Open)
    }

    fn acquire(&mut self, call: usize) -> Result<(), Duration> {
        let wait = (self.since + policy().nominal_after(self.trips)).saturating_sub(self.now);
        match self.state {
            State::ForcedOpen => return Err(Duration::MAX),
            State::Open if wait > Duration::ZERO => return Err(wait),
            State::Open => {
                self.enter(State::HalfOpen);
                self.successes = 0;
            }
            State::HalfOpen if wait == Duration::ZERO => {
                self.trips += u32::from(!self.counting.is_empty());
                self.counting.clear();
            }
            State::HalfOpen if self.counting.len() == self.probes => return Err(wait),
            _ => {}
        }
        if self.state == State::HalfOpen && self.counting.is_empty() {
            self.since = self.now;
        }
        self.counting.insert(call);
        Ok(())
    }

    fn succeed(&mut self, call: usize) -> Option<(State, State)> {
        if !self.counting.remove(&call) {
            return None;
        }
        match self.state {
            State::Closed => self.failures = 0,
            State::HalfOpen => {
                self.successes += 1;
                if self.successes >= self.successes_needed {
                    self.trips = 0;
                    return self.enter(State::Closed);
                }
            }
            _ => {}
        }
        None
    }

    fn fail(&mut self, call: usize) -> Option<(State, State)> {
        if !self.counting.remove(&call) {
            return None;
        }
        match self.state {
            State::Closed => {
                self.failures += 1;
                if self.failures >= self.threshold { self.trip() } else { None }
            }
            State::HalfOpen => self.trip(),
            _ => None,
        }
    }

    fn force(&mut self, state: State) -> Option<(State, State)> {
        self.trips = 0;
        self.enter(state)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_breaker_does_what_its_rules_say(
        threshold in 1..4_u16,
        probes in 1..4_u8,
        successes_needed in 1..4_u8,
        events in prop::collection::vec(event(), 0..40),
    ) {
        let clock = VirtualClock::new();
        let breaker = CircuitBreaker::new()
            .failure_threshold(threshold)
            .probes(probes)
            .success_threshold(successes_needed)
            .cooldown(policy())
            .with_clock(&clock);
        let mut model = Model {
            threshold,
            probes: probes.into(),
            successes_needed,
            now: Duration::ZERO,
            state: State::Closed,
            failures: 0,
            successes: 0,
            trips: 0,
            since: Duration::ZERO,
            counting: BTreeSet::new(),
        };
        let mut held: Vec<(usize, Permit<_>)> = Vec::new();

        for (call, event) in events.into_iter().enumerate() {
            let mut take = |place: usize| (!held.is_empty()).then(|| held.remove(place % held.len()));
            let (made, expected) = match event {
                Event::Acquire => {
                    let answer = breaker.acquire();
                    let answered = answer.as_ref().map(|_| ()).map_err(CircuitOpen::retry_after);
                    prop_assert_eq!(answered, model.acquire(call));
                    held.extend(answer.ok().map(|permit| (call, permit)));
                    (None, None)
                }
                Event::Success(place) => match take(place) {
                    Some((call, permit)) => (permit.success(), model.succeed(call)),
                    None => (None, None),
                },
                Event::Failure(place) => match take(place) {
                    Some((call, permit)) => (permit.failure(), model.fail(call)),
                    None => (None, None),
                },
                Event::Neutral(place) => {
                    if let Some((call, permit)) = take(place) {
                        permit.neutral();
                        model.counting.remove(&call);
                    }
                    (None, None)
                }
                Event::Advance(millis) => {
                    clock.advance(Duration::from_millis(millis));
                    model.now += Duration::from_millis(millis);
                    (None, None)
                }
                Event::ForceOpen => (breaker.force_open(), model.force(State::ForcedOpen)),
                Event::ForceClosed => (breaker.force_closed(), model.force(State::ForcedClosed)),
                Event::Reset => (breaker.reset(), model.force(State::Closed)),
            };
            if !matches!(event, Event::Acquire) {
                prop_assert_eq!(made.map(|step| (step.from(), step.to())), expected);
            }
            prop_assert_eq!(breaker.state(), model.state);
        }
    }
}
