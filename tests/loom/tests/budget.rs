//! The retry budget under the interleavings of two or three threads: never more granted than allowed, and no run lost.
//!
//! Here a window has two slices, and is 2 ns long: what is counted at `t` counts until `t + 2` has passed. A thread can
//! act long after it read the clock. Interleavings with up to three preemptions are tried.

use std::future::{Ready, ready};
use std::time::Duration;

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use relent_loom::budget::RetryBudget;
use relent_loom::clock::Clock;

#[derive(Clone)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::SeqCst);
    }
}

impl Clock for Time {
    type Sleep = Ready<()>;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> Ready<()> {
        ready(())
    }
}

/// A budget that allows `reserve` retries without a run, and its time, 0.
fn model(ratio: f64, reserve: u32) -> (Arc<RetryBudget<Time>>, Time) {
    let time = Time(Arc::new(AtomicU64::new(0)));
    let budget = RetryBudget::new(ratio)
        .with_clock(time.clone())
        .window(Duration::from_nanos(2))
        .min_per_second(reserve * 500_000_000);
    (Arc::new(budget), time)
}

/// `RELENT_PREEMPTIONS` says otherwise.
fn preemptions(usual: usize) -> usize {
    std::env::var("RELENT_PREEMPTIONS").map_or(usual, |bound| bound.parse().expect("RELENT_PREEMPTIONS is a number"))
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions(3));
    builder.check(model);
}

/// How many of the threads were granted a retry.
fn granted<const N: usize>(threads: [thread::JoinHandle<bool>; N]) -> u32 {
    threads.map(|thread| u32::from(thread.join().unwrap())).iter().sum()
}

/// Three threads, at one instant.
#[test]
fn of_three_that_ask_exactly_as_many_are_granted_as_allowed() {
    for allowed in [1, 2] {
        check(move || {
            let (budget, _) = model(0.0, allowed);
            let ask = || {
                let budget = Arc::clone(&budget);
                thread::spawn(move || budget.try_retry())
            };
            assert_eq!(granted([ask(), ask(), ask()]), allowed);
            assert_eq!(budget.balance(), 0);
        });
    }
}

/// Three threads, at one instant: none misses a run, and none is granted more than there were.
#[test]
fn runs_and_grants_that_race_add_up() {
    check(|| {
        let (budget, _) = model(1.0, 0);
        let run = || {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                budget.record_run();
                budget.try_retry()
            })
        };
        let ask = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.try_retry())
        };
        let granted = granted([run(), run(), ask]);
        assert_eq!(granted, 2, "two runs pay for two of the three");
        assert_eq!(budget.balance(), 0);
    });
}

/// Two threads: a reserve that was spent comes back once, whichever of them moves the window.
#[test]
fn an_expired_retry_is_granted_again_to_one_thread_only() {
    check(|| {
        let (budget, time) = model(0.0, 1);
        assert!(budget.try_retry());
        let ask = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.try_retry())
        };
        let move_on = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                time.set(3);
                budget.try_retry()
            })
        };
        assert_eq!(granted([ask, move_on]), 1);
    });
}

/// Two threads: a retry that is still in the window is held against whoever asks later.
#[test]
fn a_retry_does_not_expire_early() {
    check(|| {
        let (budget, time) = model(0.0, 1);
        let ask = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.try_retry())
        };
        let move_on = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                time.set(2);
                budget.try_retry()
            })
        };
        assert_eq!(granted([ask, move_on]), 1);
    });
}

/// Two threads: a grant that was decided before the window moved does not outlive what has happened since, even where
/// as many runs as retries were counted in between.
#[test]
fn an_old_run_pays_for_no_retry_once_newer_ones_were_granted() {
    check(|| {
        let (budget, time) = model(1.0, 0);
        budget.record_run();
        let ask = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.try_retry())
        };
        time.set(3);
        budget.record_run();
        let first = budget.try_retry();
        let second = budget.try_retry();
        assert!(!second, "one run is in the window");
        let asked = ask.join().unwrap();
        // The one that asked was granted before the window moved, on the old run, or took the place of `first`.
        assert!(first || asked);
        assert_eq!(budget.balance(), 0);
    });
}

/// Two threads that move the window together: what both then count stays for two slices more.
#[test]
fn runs_that_race_with_expiry_are_counted_for_a_whole_window() {
    for to in [1, 3, 4, 1000] {
        check(move || {
            let (budget, time) = model(1.0, 0);
            budget.record_run();
            time.set(to);
            let run = {
                let budget = Arc::clone(&budget);
                thread::spawn(move || budget.record_run())
            };
            budget.record_run();
            run.join().unwrap();
            let old = u32::from(to <= 2);
            assert_eq!(budget.balance(), 2 + old);
            time.set(to + 2);
            assert_eq!(budget.balance(), 2);
            time.set(to + 3);
            assert_eq!(budget.balance(), 0);
        });
    }
}

/// Three threads: the window leaves the old run behind while two ask and one counts a new run.
#[test]
fn grants_and_runs_hold_while_the_window_moves_on() {
    check(|| {
        let (budget, time) = model(1.0, 0);
        budget.record_run();
        time.set(2);
        assert_eq!(budget.balance(), 1);
        let ask = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.try_retry())
        };
        let run = {
            let (budget, time) = (Arc::clone(&budget), time.clone());
            thread::spawn(move || {
                time.set(3);
                budget.record_run();
                true
            })
        };
        let asked = u32::from(budget.try_retry());
        let granted = granted([ask, run]) - 1 + asked;
        assert!(granted <= 2, "two runs in all");
        assert!(granted + budget.balance() >= 1, "the new run is not lost");
    });
}
