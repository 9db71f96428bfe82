//! Where the waits of those that failed together fall, and what a simulated retry costs.

use std::fs;
use std::time::{Duration, Instant};

use relent::clock::VirtualClock;
use relent::rng::SeededRng;
use relent::{Jitter, Policy, retry};

use crate::{ms, seconds};

/// Without jitter the waits are 100, 200, 400, 800, 1600, and then 2000 ms for ever.
pub const POLICY: Policy = Policy::exponential(ms(100)).max_delay(seconds(2)).unbounded();

/// Every jitter; `Downward(0.5)` would be `Equal`.
pub const JITTERS: [(&str, Jitter); 6] = [
    ("none", Jitter::None),
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
    ("decorrelated", Jitter::Decorrelated),
    ("proportional(0.5)", Jitter::Proportional(0.5)),
    ("downward(0.75)", Jitter::Downward(0.75)),
];

/// How long each of `clients` waits after its `failures`th failure.
pub fn waits(policy: Policy, clients: u64, failures: usize) -> impl Iterator<Item = Duration> {
    (0..clients).filter_map(move |client| policy.delays(SeededRng::new(client)).nth(failures - 1))
}

/// What it costs to simulate `clients` clients that each retry `retries` times in vain: the time that one core spends on
/// it, or where the system does not tell, the time that passes.
#[must_use]
pub fn time_of_storm(clients: u32, retries: u32) -> Duration {
    let (started, core_started) = (Instant::now(), core_time());
    let (clock, policy) = (VirtualClock::new(), POLICY.max_attempts(retries + 1));
    let client =
        |seed| retry(async |_| Err::<(), _>("down"), &policy).clock(&clock).rng(SeededRng::new(u64::from(seed)));
    clock.block_on_all((0..clients).map(client));
    core_time().zip(core_started).map_or_else(|| started.elapsed(), |(end, start)| end - start)
}

/// How long this thread has been on a core; Linux tells (`proc_pid_schedstat`, in nanoseconds).
fn core_time() -> Option<Duration> {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let time = Duration::from_nanos(schedstat.split(' ').next()?.parse().ok()?);
    (!time.is_zero()).then_some(time)
}
