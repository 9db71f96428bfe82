//! Schedules of random policies, boiled down to one number each, to be compared between targets.
//!
//! `tests/wasm/run` compares the numbers of a browser's engine, of a 32-bit machine and of this one.

use std::fmt::{self, Write};
use std::time::Duration;

use relent::levels::{Level, Levels};
use relent::policy::{Growth, PolicyConfig};
use relent::rng::{Rng, SeededRng};
use relent::schedule::{Progress, Schedule};
use relent::{Jitter, Policy};

/// How many policies are compared.
pub const POLICIES: u32 = 10_000;

/// All that the pure part computes for the policy of this number: every bit of it counts.
#[unsafe(no_mangle)]
pub extern "C" fn digest(number: u32) -> u64 {
    let mut rng = SeededRng::new(number.into());
    let policy = policy(&mut rng);
    let mut digest = Digest::new();

    write!(digest, "{policy} {policy:?}").unwrap();
    digest.waits(&policy, &mut rng);
    for failures in [0, 1, 2, 7, 100, 1 << 20, u32::MAX] {
        digest.duration(policy.nominal_after(failures));
        let (shortest, longest) = policy.bounds_after(failures);
        digest.duration(shortest);
        digest.duration(longest);
        digest.duration(policy.delay_after(failures, rng.next_f64()).unwrap_or_default());
    }
    digest.duration(policy.worst_case_total().unwrap_or_default());

    digest.waits(&levels(&mut rng), &mut rng);
    digest.0
}

/// The 64-bit FNV-1a hash.
struct Digest(u64);

impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn duration(&mut self, duration: Duration) {
        self.bytes(&duration.as_nanos().to_le_bytes());
    }

    /// The first waits of a run, each also as it was before it was rounded.
    fn waits(&mut self, schedule: &impl Schedule, rng: &mut SeededRng) {
        let mut progress = Progress::new();
        for _ in 0..24 {
            progress.count_failure();
            self.duration(schedule.next(&mut progress, rng).unwrap_or(Duration::MAX));
            self.bytes(&progress.previous_ms().to_bits().to_le_bytes());
        }
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

fn policy(rng: &mut SeededRng) -> Policy {
    let config = PolicyConfig {
        growth: match below(rng, 4) {
            0 => Growth::Fixed,
            1 => Growth::Linear,
            2 => Growth::Exponential(2.0),
            _ => Growth::Exponential(1.0 + 3.0 * rng.next_f64()),
        },
        base: Duration::from_micros(1000) + duration(rng),
        max_delay: [None, Some(Duration::MAX), Some(duration(rng) * 50)][below(rng, 3)],
        jitter: Some(match below(rng, 6) {
            0 => Jitter::None,
            1 => Jitter::Full,
            2 => Jitter::Equal,
            3 => Jitter::Decorrelated,
            4 => Jitter::Proportional(rng.next_f64()),
            _ => Jitter::Downward(rng.next_f64()),
        }),
        max_attempts: [0, 3, 10, 100_000][below(rng, 4)],
        max_elapsed: [None, Some(duration(rng) * 9)][below(rng, 2)],
        allow_jitter_above_cap: below(rng, 2) == 0,
    };
    Policy::try_from(config).expect("every value is in its range")
}

fn levels(rng: &mut SeededRng) -> Levels {
    let first = Level::new(1 + u32::from(rng.next_f64() < 0.5)).delay(Duration::from_millis(1) + duration(rng));
    let then =
        Level::unbounded().factor(rng.next_f64() * 2.5).jitter(rng.next_f64()).max_delay(Duration::from_secs(900));
    Levels::try_from([first, then.increment_ms(250)]).expect("every value is in its range")
}

fn below(rng: &mut SeededRng, count: usize) -> usize {
    (rng.next_f64() * count as f64) as usize
}

/// Up to some minutes, to the nanosecond.
fn duration(rng: &mut SeededRng) -> Duration {
    Duration::from_nanos((rng.next_f64() * [1e7, 1e9, 1e11][below(rng, 3)]) as u64)
}
