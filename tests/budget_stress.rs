//! The retry budget on real threads: a million operations, and every one of them accounted for.

use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use relent::budget::RetryBudget;
use relent::clock::clock_fn;

const THREADS: u64 = 8;
const OPERATIONS: u64 = 125_000;

/// A stream of numbers of its own for each thread.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn in_one_window_no_run_is_lost_and_no_retry_too_many() {
    let clock = clock_fn(|| Duration::ZERO, |_| ready(()));
    let budget = RetryBudget::new(0.3).min_per_second(7).with_clock(clock);
    let counts = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let budget = &budget;
                scope.spawn(move || {
                    let (mut runs, mut grants, mut state) = (0_u64, 0_u64, thread);
                    for _ in 0..OPERATIONS {
                        if random(&mut state) % 2 == 0 {
                            budget.record_run();
                            runs += 1;
                        } else if budget.try_retry() {
                            grants += 1;
                        }
                    }
                    (runs, grants)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let runs: u64 = counts.iter().map(|(runs, _)| runs).sum();
    let grants: u64 = counts.iter().map(|(_, grants)| grants).sum();
    let allowed = runs * 3 / 10 + 70;
    assert!(grants <= allowed, "{grants} of {allowed}");
    assert_eq!(grants + u64::from(budget.balance()), allowed);
}

/// One operation of a thread: the time before it and after.
#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

/// While every operation moves the time, and some by more than a window.
#[test]
fn while_the_window_moves_no_grant_exceeds_what_the_runs_in_it_pay_for() {
    const SLICE: u64 = 1000;
    const WINDOW: u64 = 20 * SLICE;
    let time = AtomicU64::new(0);
    let clock = clock_fn(|| Duration::from_nanos(time.load(Ordering::SeqCst)), |_| ready(()));
    let budget = RetryBudget::new(0.3).min_per_second(0).window(Duration::from_nanos(WINDOW)).with_clock(clock);

    let logs = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (budget, time) = (&budget, &time);
                scope.spawn(move || {
                    let (mut runs, mut grants, mut state) = (Vec::new(), Vec::new(), thread);
                    for _ in 0..OPERATIONS {
                        let step = match random(&mut state) % 10_000 {
                            0 => 40 * SLICE,
                            1..100 => SLICE,
                            _ => 10,
                        };
                        let from = time.fetch_add(step, Ordering::SeqCst) + step;
                        let log = if random(&mut state) % 2 == 0 {
                            budget.record_run();
                            &mut runs
                        } else if budget.try_retry() {
                            &mut grants
                        } else {
                            continue;
                        };
                        log.push(Span { from, to: time.load(Ordering::SeqCst) });
                    }
                    (runs, grants)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let runs: Vec<_> = logs.iter().flat_map(|(runs, _)| runs).copied().collect();
    let grants: Vec<_> = logs.iter().flat_map(|(_, grants)| grants).copied().collect();
    let sorted = |log: &[Span], end: fn(&Span) -> u64| {
        let mut ends: Vec<_> = log.iter().map(end).collect();
        ends.sort_unstable();
        ends
    };
    let (runs_from, runs_to) = (sorted(&runs, |run| run.from), sorted(&runs, |run| run.to));
    let (grants_from, grants_to) = (sorted(&grants, |grant| grant.from), sorted(&grants, |grant| grant.to));
    let below = |ends: &[u64], limit: u64| ends.partition_point(|&end| end < limit);

    assert!(grants.len() > 10_000, "{} grants", grants.len());
    for grant in grants {
        // Retries that were surely over, and surely in the window wherever in its span this grant was given.
        let window = (grant.to / SLICE).saturating_sub(20) * SLICE;
        let retries = below(&grants_to, grant.from).saturating_sub(below(&grants_from, window));
        // Runs that had begun, and might still have been in it.
        let window = (grant.from / SLICE).saturating_sub(20) * SLICE;
        let runs = below(&runs_from, grant.to + 1) - below(&runs_to, window);
        let allowed = runs * 3 / 10;
        assert!(retries < allowed, "{retries} retries before that at {} ns, {allowed} allowed", grant.to);
    }
}

/// One run in each slice, and 21 slices in a window: 22 runs would pay for a retry, but are never in it together.
#[test]
fn a_run_that_has_left_never_counts_with_one_that_came_after() {
    const SLICE: u64 = 1000;
    let time = AtomicU64::new(0);
    let clock = clock_fn(|| Duration::from_nanos(time.load(Ordering::SeqCst)), |_| ready(()));
    let window = Duration::from_nanos(20 * SLICE);
    let budget = RetryBudget::new(0.047).min_per_second(0).window(window).with_clock(clock);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let ask = || {
            while !done.load(Ordering::Relaxed) {
                assert!(!budget.try_retry(), "0.047 · 21 is less than 1");
            }
        };
        let asking = [scope.spawn(ask), scope.spawn(ask)];
        for _ in 0..500_000 {
            budget.record_run();
            time.fetch_add(SLICE, Ordering::SeqCst);
        }
        done.store(true, Ordering::Relaxed);
        for thread in asking {
            thread.join().unwrap();
        }
    });
    // Twenty slices hold a run each, and the present one none yet.
    budget.record_run();
    assert_eq!(budget.balance(), 0);
    budget.record_run();
    assert_eq!(budget.balance(), 1);
}
