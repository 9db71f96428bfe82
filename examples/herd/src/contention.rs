//! Contention: many clients want to update one row.
//!
//! The model is that of the study "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015;
//! <https://github.com/aws-samples/aws-arch-backoff-simulator>). All clients start at once, and each must succeed once:
//! it reads the version of the row, and writes. The write succeeds if the version is still the one that was read.
//! Otherwise the client waits and starts over. Each hop over the network takes about 10 ms.
//!
//! The server answers whatever comes, so that waiting less is always faster. This says what jitter saves those who get
//! in each other's way, and nothing about overload.

use std::cell::{Cell, RefCell};
use std::f64::consts::TAU;
use std::time::Duration;

use relent::clock::{Clock, VirtualClock};
use relent::rng::{Rng, SeededRng, rng_fn};
use relent::{Jitter, Policy, retry};

use crate::ms;

mod reference;

pub use reference::REFERENCES;

const EXPONENTIAL: Policy = Policy::exponential(ms(10)).max_delay(ms(2000)).unbounded();
const DECORRELATED: Policy = Policy::exponential(ms(5)).max_delay(ms(2000)).unbounded().jitter(Jitter::Decorrelated);

/// The strategies of the study, in the order of [`Reference::outcomes`].
///
/// The study doubles before the first wait, so that the base of its exponential ones is 10 ms here.
pub const STRATEGIES: [(&str, Policy); 5] = [
    ("no backoff", Policy::immediate().unbounded()),
    ("exponential", EXPONENTIAL.jitter(Jitter::None)),
    ("equal", EXPONENTIAL.jitter(Jitter::Equal)),
    ("full", EXPONENTIAL.jitter(Jitter::Full)),
    ("decorrelated", DECORRELATED),
];

/// What it takes until every client has succeeded, as a mean of many runs.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Writes, the failed ones included.
    pub calls: f64,
    /// Until the last client knows.
    pub ms: f64,
}

impl Outcome {
    /// By which parts of `reference` the calls and the time differ from it.
    #[must_use]
    pub fn deviation(&self, reference: &Self) -> (f64, f64) {
        (self.calls / reference.calls - 1.0, self.ms / reference.ms - 1.0)
    }
}

/// What other programs of this model say.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// How many clients there are.
    pub clients: u32,
    /// For each of the [`STRATEGIES`].
    pub outcomes: [Outcome; STRATEGIES.len()],
}

/// The row, the network before it, and the draws of all.
struct Row<'a> {
    clock: &'a VirtualClock,
    rng: &'a RefCell<SeededRng>,
    version: Cell<u64>,
    calls: Cell<u64>,
}

/// Another client's write came between.
struct Stale;

impl Row<'_> {
    /// The time of one hop, normally distributed with a mean of 10 ms and a deviation of 2 ms (Box and Muller, 1958).
    fn hop(&self) -> Duration {
        let mut rng = self.rng.borrow_mut();
        let radius = (-2.0 * (1.0 - rng.next_f64()).ln()).sqrt();
        let normal = radius * (TAU * rng.next_f64()).cos();
        Duration::from_secs_f64((10.0 + 2.0 * normal).abs() / 1000.0)
    }

    async fn update(&self) -> Result<(), Stale> {
        self.clock.sleep(self.hop()).await;
        let read = self.version.get();
        self.clock.sleep(self.hop() + self.hop()).await;
        self.calls.set(self.calls.get() + 1);
        let is_current = read == self.version.get();
        if is_current {
            self.version.set(read + 1);
        }
        self.clock.sleep(self.hop()).await;
        if is_current { Ok(()) } else { Err(Stale) }
    }
}

/// One run: how many writes it took, and how long.
fn run(policy: &Policy, clients: u32, seed: u64) -> (u64, Duration) {
    let (clock, rng) = (VirtualClock::new(), RefCell::new(SeededRng::new(seed)));
    let row = Row { clock: &clock, rng: &rng, version: Cell::new(0), calls: Cell::new(0) };
    let client =
        |_| retry(|_| row.update(), policy).unmarked().clock(&clock).rng(rng_fn(|| rng.borrow_mut().next_f64()));
    clock.block_on_all((0..clients).map(client));
    (row.calls.get(), clock.now())
}

/// How many runs make a mean that is steady enough to be compared: 400, or more where there are few clients.
#[must_use]
pub const fn runs(clients: u32) -> u32 {
    if clients < 100 { 40_000 / clients } else { 400 }
}

/// The mean of `runs` runs, whose seeds are 0, 1, 2 and so on.
#[must_use]
pub fn mean(policy: &Policy, clients: u32, runs: u32) -> Outcome {
    let (mut calls, mut time) = (0, Duration::ZERO);
    for seed in 0..runs {
        let (run_calls, run_time) = run(policy, clients, seed.into());
        calls += run_calls;
        time += run_time;
    }
    let runs = f64::from(runs);
    Outcome { calls: calls as f64 / runs, ms: time.as_secs_f64() * 1000.0 / runs }
}
