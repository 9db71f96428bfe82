//! Overload: a service that can do so much and no more crashes, and comes back.
//!
//! It answers 1000 requests a second, keeps up to 1000 more in a queue, and refuses what does not fit. 5000 clients are
//! connected to it and ask every ten seconds on average, which is half of what it can do. Whoever has waited for half a
//! second gives up; the service does not know, and works on. So a queue of more than 500 requests makes every answer
//! late, and all work is wasted.
//!
//! After ten seconds the service crashes: all connections break at the same moment, so that all clients call at once.
//! Ten seconds later it is back. The clients are the tasks of 50 processes, which each have a budget and a breaker.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::time::Duration;

use relent::breaker::CircuitBreaker;
use relent::budget::RetryBudget;
use relent::clock::{Clock, VirtualClock};
use relent::rng::{Rng, SeededRng};
use relent::{Jitter, Policy, retry};

use crate::{ms, seconds};

pub const CLIENTS: u32 = 5000;
pub const CLIENTS_PER_PROCESS: u32 = 100;
/// Requests a second.
pub const CAPACITY: u32 = 1000;
pub const OUTAGE: Range<Duration> = seconds(10)..seconds(20);
pub const END: Duration = seconds(50);
/// The width of one [`Load`].
pub const SLICE: Duration = ms(500);

const SERVICE_TIME: Duration = Duration::from_millis(1000 / CAPACITY as u64);
const QUEUE: Duration = seconds(1);
const TIMEOUT: Duration = ms(500);
const ROUND_TRIP: Duration = ms(10);
const PAUSE: Range<f64> = 5.0..15.0;

/// Without jitter the waits are 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, and then 5 s, for 20 s.
const POLICY: Policy = Policy::exponential(ms(100)).max_delay(seconds(5)).unbounded().max_elapsed(seconds(20));

/// How the clients call.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    pub name: &'static str,
    pub jitter: Jitter,
    pub budget: bool,
    pub breaker: bool,
}

impl Strategy {
    const fn unguarded(name: &'static str, jitter: Jitter) -> Self {
        Self { name, jitter, budget: false, breaker: false }
    }
}

pub const NO_JITTER: Strategy = Strategy::unguarded("no jitter", Jitter::None);
pub const EQUAL: Strategy = Strategy::unguarded("equal jitter", Jitter::Equal);
pub const BUDGET: Strategy = Strategy { name: "equal jitter + budget", budget: true, ..EQUAL };
pub const BREAKER: Strategy = Strategy { name: "equal jitter + breaker", breaker: true, ..EQUAL };

/// All that are compared.
pub const STRATEGIES: [Strategy; 9] = [
    NO_JITTER,
    Strategy::unguarded("full jitter", Jitter::Full),
    Strategy::unguarded("decorrelated jitter", Jitter::Decorrelated),
    Strategy::unguarded("proportional(0.5) jitter", Jitter::Proportional(0.5)),
    Strategy::unguarded("downward(0.75) jitter", Jitter::Downward(0.75)),
    EQUAL,
    BUDGET,
    BREAKER,
    Strategy { name: "equal jitter + both", breaker: true, ..BUDGET },
];

/// What the tasks of one process share.
struct Guards<'a> {
    budget: RetryBudget<&'a VirtualClock>,
    breaker: CircuitBreaker<&'a VirtualClock>,
}

impl<'a> Guards<'a> {
    /// A budget of one retry for ten runs and one a second, and a breaker that looks every two seconds at the longest.
    fn new(strategy: &Strategy, process: u32, clock: &'a VirtualClock) -> Self {
        let budget = if strategy.budget {
            RetryBudget::new(0.1).min_per_second(1)
        } else {
            RetryBudget::new(1.0).min_per_second(u32::MAX)
        };
        let cooldown = Policy::fixed(seconds(2)).jitter(Jitter::Equal);
        let breaker = CircuitBreaker::new().cooldown(cooldown).seed(process.into()).with_clock(clock);
        if !strategy.breaker {
            breaker.force_closed();
        }
        Self { budget: budget.with_clock(clock), breaker }
    }
}

/// What the service saw in one [`SLICE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub requests: u32,
    /// Of these requests, those that got no answer in time: refused, lost, or answered when nobody waited any more.
    pub wasted: u32,
    /// Answers in time, to whatever requests.
    pub answered: u32,
}

impl Load {
    #[must_use]
    pub const fn requests_per_second(&self) -> u32 {
        self.requests * 1000 / SLICE.as_millis() as u32
    }

    #[must_use]
    pub const fn answered_per_second(&self) -> u32 {
        self.answered * 1000 / SLICE.as_millis() as u32
    }
}

struct Service<'a> {
    clock: &'a VirtualClock,
    /// When it will have answered all that is in its queue.
    idle_at: Cell<Duration>,
    load: RefCell<Vec<Load>>,
}

impl Service<'_> {
    /// One request as its client sees it.
    async fn request(&self) -> Result<(), &'static str> {
        let asked = self.clock.now();
        self.count(|load| load.requests += 1);
        let (wait, result) = self.enqueue(asked);
        if result.is_err() {
            self.count(|load| load.wasted += 1);
        }
        self.clock.sleep(wait).await;
        if result.is_ok() {
            self.count(|load| load.answered += 1);
        }
        result
    }

    /// How long a client waits that asks now, and for what: the work of the service is known as soon as it is accepted.
    fn enqueue(&self, asked: Duration) -> (Duration, Result<(), &'static str>) {
        let begins = self.idle_at.get().max(asked);
        if OUTAGE.contains(&asked) || begins - asked >= QUEUE {
            return (ROUND_TRIP, Err("refused"));
        }
        let answered = begins + SERVICE_TIME;
        self.idle_at.set(answered);
        let wait = answered - asked + ROUND_TRIP;
        if wait > TIMEOUT {
            return (TIMEOUT, Err("timed out"));
        }
        if OUTAGE.contains(&answered) {
            return (wait, Err("connection lost"));
        }
        (wait, Ok(()))
    }

    fn count(&self, count: impl FnOnce(&mut Load)) {
        let slice = slices(seconds(0)..self.clock.now()).end;
        self.load.borrow_mut().get_mut(slice).map(count);
    }

    /// Until the end of the pause that a client makes, or until its connection breaks.
    async fn pause(&self, pause: Duration) {
        let until_crash = OUTAGE.start.checked_sub(self.clock.now()).filter(|time| !time.is_zero());
        self.clock.sleep(until_crash.map_or(pause, |time| time.min(pause))).await;
    }
}

/// What was seen of one strategy.
#[derive(Clone, Debug)]
pub struct Seen {
    pub load: Vec<Load>,
    pub succeeded: u32,
    pub failed: u32,
}

/// Which slices lie between two times.
const fn slices(times: Range<Duration>) -> Range<usize> {
    let slice = SLICE.as_millis();
    (times.start.as_millis() / slice) as usize..(times.end.as_millis() / slice) as usize
}

impl Seen {
    #[must_use]
    pub fn requests_in_outage(&self) -> u32 {
        self.load[slices(OUTAGE)].iter().map(|load| load.requests).sum()
    }

    /// Requests after the outage that were refused, or answered when nobody waited any more.
    #[must_use]
    pub fn wasted_after(&self) -> u32 {
        self.after().iter().map(|load| load.wasted).sum()
    }

    /// The most requests in a slice after the outage, as requests a second.
    #[must_use]
    pub fn peak_after(&self) -> u32 {
        self.after().iter().map(Load::requests_per_second).max().unwrap_or(0)
    }

    /// From the end of the outage to the end of the last slice in which more than one request in ten was wasted; `None`
    /// if that is the last of all.
    #[must_use]
    pub fn recovery(&self) -> Option<Duration> {
        let is_bad = |load: &Load| load.wasted > load.requests / 10;
        let bad = self.after().iter().rposition(is_bad).map_or(0, |last| last + 1);
        (bad < self.after().len()).then(|| SLICE * bad as u32)
    }

    fn after(&self) -> &[Load] {
        &self.load[slices(OUTAGE.end..END)]
    }
}

/// Plays one strategy from start to end.
#[must_use]
pub fn play(strategy: &Strategy) -> Seen {
    let clock = VirtualClock::new();
    let load = RefCell::new(vec![Load::default(); slices(seconds(0)..END).end]);
    let service = Service { clock: &clock, idle_at: Cell::new(Duration::ZERO), load };
    let processes: Vec<Guards> =
        (0..CLIENTS / CLIENTS_PER_PROCESS).map(|process| Guards::new(strategy, process, &clock)).collect();
    let (succeeded, failed) = (Cell::new(0), Cell::new(0));
    let policy = POLICY.jitter(strategy.jitter);

    let client = async |guards: &Guards, seed: u32| {
        let mut rng = SeededRng::new(seed.into());
        service.pause(Duration::from_secs_f64(PAUSE.end * rng.next_f64())).await;
        while clock.now() < END {
            let run = retry(|_| guards.breaker.call(service.request()), &policy);
            let result = run.budget(&guards.budget).clock(&clock).rng(&mut rng).await;
            let count = if result.is_ok() { &succeeded } else { &failed };
            count.set(count.get() + 1);
            let pause = PAUSE.start + (PAUSE.end - PAUSE.start) * rng.next_f64();
            service.pause(Duration::from_secs_f64(pause)).await;
        }
    };
    let all = (0..CLIENTS).map(|seed| client(&processes[(seed / CLIENTS_PER_PROCESS) as usize], seed));
    clock.block_on_all(all);
    Seen { load: service.load.into_inner(), succeeded: succeeded.get(), failed: failed.get() }
}
