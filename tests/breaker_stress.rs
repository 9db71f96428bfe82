//! A circuit breaker shared by many threads, on real atomics. Every interleaving of few threads is tried elsewhere, by
//! the models in `tests/loom`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use relent::breaker::{CircuitBreaker, State};
use relent::clock::{Clock, clock_fn};
use relent::rng::{Rng, SeededRng};
use relent::{Jitter, Policy};

/// A clock that all threads share and set, in milliseconds.
fn shared_clock(now: &AtomicU64) -> impl Clock + use<'_> {
    clock_fn(|| Duration::from_millis(now.load(Ordering::Relaxed)), |_| std::future::ready(()))
}

/// Field case 91.
#[test]
fn exactly_one_of_fifty_threads_is_admitted_at_the_end_of_the_cooldown() {
    const THREADS: usize = 50;
    const ROUNDS: u64 = 1000;

    let now = AtomicU64::new(0);
    let breaker = CircuitBreaker::new()
        .failure_threshold(1)
        .cooldown(Policy::fixed(Duration::from_millis(10)))
        .with_clock(shared_clock(&now));
    let admitted = AtomicU64::new(0);
    let barrier = Barrier::new(THREADS);

    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    if barrier.wait().is_leader() {
                        breaker.acquire().expect("closed").failure();
                        now.fetch_add(10, Ordering::Relaxed);
                    }
                    barrier.wait();
                    let permit = breaker.acquire();
                    admitted.fetch_add(u64::from(permit.is_ok()), Ordering::Relaxed);
                    barrier.wait();
                    assert_eq!(admitted.load(Ordering::Relaxed), round);
                    if let Ok(permit) = permit {
                        permit.success();
                    }
                }
            });
        }
    });
    assert_eq!(breaker.state(), State::Closed);
}

/// Every admitted call ends in exactly one way, and in the end no slot is taken.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_million_calls_of_eight_threads_leave_nothing_behind() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 125_000;
    const PROBES: u8 = 3;

    let now = AtomicU64::new(0);
    let breaker = CircuitBreaker::new()
        .failure_threshold(3)
        .cooldown(
            Policy::exponential(Duration::from_millis(2)).max_delay(Duration::from_millis(8)).jitter(Jitter::Full),
        )
        .probes(PROBES)
        .success_threshold(4)
        .with_clock(shared_clock(&now));
    let [admitted, refused, success, failure, neutral] = [const { AtomicU64::new(0) }; 5];
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);

    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (breaker, now) = (&breaker, &now);
            let (admitted, refused, success, failure, neutral) = (&admitted, &refused, &success, &failure, &neutral);
            scope.spawn(move || {
                let mut rng = SeededRng::new(seed);
                for _ in 0..CALLS {
                    let draw = rng.next_f64();
                    if draw < 0.01 {
                        now.fetch_add(1, Ordering::Relaxed);
                    }
                    let Ok(permit) = breaker.acquire() else {
                        count(refused);
                        continue;
                    };
                    count(admitted);
                    match rng.next_f64() {
                        ..0.5 => {
                            count(success);
                            permit.success();
                        }
                        ..0.8 => {
                            count(failure);
                            permit.failure();
                        }
                        ..0.9 => {
                            count(neutral);
                            drop(permit);
                        }
                        _ => {
                            count(neutral);
                            let panicking = || {
                                let _permit = permit;
                                resume_unwind(Box::new(()))
                            };
                            assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
                        }
                    }
                }
            });
        }
    });

    let [admitted, refused, success, failure, neutral] =
        [admitted, refused, success, failure, neutral].map(AtomicU64::into_inner);
    assert_eq!(admitted + refused, THREADS * CALLS);
    assert_eq!(admitted, success + failure + neutral);
    assert!(refused > 0 && admitted > THREADS * CALLS / 100);

    // No slot is in flight: a half-open breaker admits all its probes, and not one more.
    if breaker.state() == State::Closed {
        while breaker.acquire().is_ok_and(|permit| permit.failure().is_none()) {}
    }
    now.fetch_add(8, Ordering::Relaxed);
    let probes: Vec<_> = (0..=PROBES).map_while(|_| breaker.acquire().ok()).collect();
    assert_eq!(probes.len(), usize::from(PROBES));
}
