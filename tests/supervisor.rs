//! Supervision on virtual time: what counts as a failure, as health, and as the end.

#![allow(clippy::unchecked_time_subtraction, reason = "a panic fails the test, as it should")]

mod common;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use common::{MS, SEC, Script, always_fails};
use relent::backoff::{Backoff, Exhausted};
use relent::clock::{Clock, VirtualClock};
use relent::levels::{Level, Levels};
use relent::retry::StopReason;
use relent::rng::{FixedRng, rng_fn};
use relent::schedule::Schedule;
use relent::{Attempt, Jitter, Policy};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const DOUBLING: Policy = Policy::exponential(SEC).jitter(Jitter::None).unbounded();

/// The delays after `n` failures, each followed by its wait.
fn delays<S: Schedule>(schedule: S, n: usize) -> Vec<u128> {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(schedule).clock(&clock).rng(FixedRng::new(0.5));
    let mut delays = Vec::new();
    for _ in 0..n {
        backoff.failed();
        let Ok(wait) = backoff.attempt() else { break };
        let failed_at = clock.now();
        clock.block_on(wait);
        assert_eq!(clock.now(), failed_at + backoff.delay());
        delays.push(backoff.delay().as_millis());
    }
    delays
}

/// Only an attempt that is under way is up: not one that was dropped, nor the time after it.
#[test]
fn a_dropped_attempt_is_not_up() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING).healthy_after(MINUTE).clock(&clock);
    backoff.failed();
    clock.advance(MINUTE);
    clock.block_on(async {
        tokio::select! {
            never = backoff.run(async |_| std::future::pending::<Result<(), &str>>().await) => never.unwrap(),
            () = clock.sleep(SEC) => {}
        }
    });
    clock.advance(MINUTE);
    assert_eq!(backoff.failure_count(), 1);
    backoff.failed();
    assert_eq!((backoff.failure_count(), backoff.delay()), (2, 2 * SEC));
}

/// Field case 113: a crash a day never climbs, whether the outcomes are reported or the child is run.
#[test]
fn a_crash_a_day_waits_the_first_delay() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING).healthy_after(5 * MINUTE).clock(&clock);
    for _ in 0..10 {
        backoff.succeeded();
        clock.advance(DAY);
        backoff.failed();
        assert_eq!((backoff.delay(), backoff.failure_count()), (SEC, 1));
    }

    let clock = VirtualClock::new();
    let mut started = Vec::new();
    let child = |attempt: Attempt| {
        started.push(clock.now());
        let clock = &clock;
        async move {
            clock.sleep(DAY).await;
            Err::<(), _>(attempt.number())
        }
    };
    let mut backoff = Backoff::new(DOUBLING).healthy_after(5 * MINUTE).clock(&clock);
    clock.block_on(async {
        tokio::select! {
            ended = backoff.run(child) => panic!("{ended:?}"),
            () = clock.sleep(10 * DAY) => {}
        }
    });
    let expected = (0..10).map(|day| day * (DAY + SEC)).collect::<Vec<_>>();
    assert_eq!(started, expected);
}

/// Field case 115: a stream that opens before each failure is no healthy stream.
#[test]
fn a_start_before_each_failure_resets_nothing() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING.max_delay(MINUTE)).healthy_after(MINUTE).clock(&clock);
    let mut waits = Vec::new();
    for _ in 0..8 {
        backoff.succeeded();
        backoff.failed();
        clock.block_on(backoff.attempt().unwrap());
        waits.push(backoff.delay().as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
}

/// Field case 116: the time that passes in an outage is no health, though the last success was long ago.
#[test]
fn an_outage_does_not_count_as_health() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING.max_delay(DAY)).healthy_after(MINUTE).clock(&clock);
    backoff.failed();
    backoff.succeeded();
    clock.advance(5 * MINUTE);
    let outage = clock.now();
    let mut waits = Vec::new();
    while clock.now() < outage + 10 * MINUTE {
        backoff.failed();
        waits.push(backoff.delay().as_secs());
        clock.block_on(backoff.attempt().unwrap());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
}

/// Field case 118: a child that dies at once is slowed down to the cap, then given up, with one signal.
#[test]
fn a_child_that_dies_at_once_is_slowed_down_and_given_up() {
    let clock = VirtualClock::new();
    let mut signals = Vec::new();
    let policy = DOUBLING.max_delay(30 * SEC).max_attempts(9);
    let mut backoff = Backoff::new(policy).clock(&clock).on_give_up(|exhausted| signals.push(*exhausted));
    let mut waits = Vec::new();
    for _ in 0..100 {
        backoff.failed();
        match backoff.attempt() {
            Ok(wait) => {
                waits.push(wait.delay().as_secs());
                clock.block_on(wait);
            }
            Err(exhausted) => {
                assert_eq!((exhausted.reason(), exhausted.failures()), (StopReason::Exhausted, 9));
            }
        }
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(backoff.failure_count(), 9);
    drop(backoff);
    assert_eq!(signals.len(), 1);
}

/// What comes up and dies again before it is healthy is slowed down and given up as if it had never been up.
#[test]
fn a_flapping_child_is_given_up() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING.max_attempts(5)).healthy_after(MINUTE).clock(&clock);
    let crash = async |_| {
        clock.sleep(59 * SEC).await;
        Err::<(), _>("crashed")
    };
    assert_eq!(clock.block_on(backoff.run(crash)), Err("crashed"));
    assert_eq!(clock.now(), 5 * 59 * SEC + 15 * SEC);

    let mut backoff = Backoff::new(DOUBLING.max_attempts(5)).clock(&clock);
    assert_eq!(clock.block_on(backoff.run(async |_| Err::<(), _>("crashed"))), Err("crashed"));
    assert_eq!(backoff.failure_count(), 5);
}

/// Without `healthy_after` a success counts at once; with it, from exactly that uptime on.
#[test]
fn a_success_counts_once_it_has_lasted() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING).clock(&clock);
    backoff.failed();
    backoff.succeeded();
    assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));
    assert_eq!(backoff.attempt().unwrap().delay(), Duration::ZERO);

    for (uptime, delay) in [(59_999 * MS, 2 * SEC), (MINUTE, SEC)] {
        let mut backoff = Backoff::new(DOUBLING).healthy_after(MINUTE).clock(&clock);
        backoff.failed();
        backoff.succeeded();
        clock.advance(uptime);
        backoff.failed();
        assert_eq!(backoff.delay(), delay);
    }
}

/// The uptime begins with the first of several successes, and ends with a failure.
#[test]
fn uptime_is_measured_from_the_first_success() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING).healthy_after(MINUTE).clock(&clock);
    backoff.failed();
    backoff.succeeded();
    clock.advance(40 * SEC);
    backoff.succeeded();
    clock.advance(19 * SEC);
    assert_eq!(backoff.failure_count(), 1);
    clock.advance(SEC);
    assert_eq!(backoff.failure_count(), 0);

    backoff.failed();
    backoff.succeeded();
    clock.advance(40 * SEC);
    backoff.failed();
    backoff.succeeded();
    clock.advance(40 * SEC);
    assert_eq!(backoff.failure_count(), 2);
}

/// All that can be read agrees that a series is over, though nothing was reported since.
#[test]
fn health_shows_without_a_report() {
    let clock = VirtualClock::new();
    let delays = RefCell::new(Vec::new());
    let levels = [Level::new(1).delay(SEC), Level::new(1).delay(5 * SEC)];
    let mut backoff = Backoff::new(Levels::try_from(levels).unwrap()).healthy_after(MINUTE).clock(&clock);
    let observer = |delay| delays.borrow_mut().push(delay);
    for _ in 0..3 {
        backoff.failed();
    }
    backoff.succeeded();
    assert!(backoff.exhausted());
    assert_eq!((backoff.level(), backoff.delay()), (1, 5 * SEC));
    clock.advance(MINUTE);
    assert!(!backoff.exhausted());
    assert_eq!((backoff.level(), backoff.level_failure_count(), backoff.failure_count()), (0, 0, 0));
    assert_eq!(backoff.delay(), Duration::ZERO);
    assert_eq!(backoff.attempt().unwrap().delay(), Duration::ZERO);

    let mut backoff = Backoff::new([SEC]).healthy_after(MINUTE).clock(&clock).on_delay_change(observer);
    backoff.failed();
    backoff.succeeded();
    clock.advance(MINUTE);
    assert_eq!(*delays.borrow(), [SEC]);
    drop(backoff.attempt());
    assert_eq!(*delays.borrow(), [SEC, Duration::ZERO]);
}

/// Once given up, failures change nothing and draw nothing; a success or a reset begins anew.
#[test]
fn a_failure_after_the_end_does_nothing() {
    let draws = Cell::new(0);
    let rng = rng_fn(|| {
        draws.set(draws.get() + 1);
        0.5
    });
    let policy = Policy::exponential(SEC).max_attempts(3);
    let mut backoff = Backoff::new(policy).clock(VirtualClock::new()).rng(rng);
    for _ in 0..10 {
        backoff.failed();
    }
    assert_eq!((backoff.failure_count(), backoff.delay(), draws.get()), (3, 1500 * MS, 2));
    assert!(backoff.exhausted());

    backoff.succeeded();
    assert!(!backoff.exhausted());
    assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));

    for _ in 0..10 {
        backoff.failed();
    }
    backoff.reset();
    assert!(!backoff.exhausted());
    assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));
    backoff.failed();
    assert_eq!(backoff.delay(), 750 * MS);
}

/// Each failure takes one draw, however many attempts are asked for after it.
#[test]
fn asking_for_an_attempt_draws_nothing() {
    let draws = Cell::new(0);
    let rng = rng_fn(|| {
        draws.set(draws.get() + 1);
        f64::from(draws.get()) / 8.0
    });
    let mut backoff = Backoff::new(Policy::fixed(8 * SEC).jitter(Jitter::Full)).clock(VirtualClock::new()).rng(rng);
    backoff.failed();
    let lengths = [(); 3].map(|()| backoff.attempt().unwrap().delay());
    assert_eq!((lengths, draws.get()), ([SEC; 3], 1));
    backoff.failed();
    assert_eq!((backoff.attempt().unwrap().delay(), draws.get()), (2 * SEC, 2));
}

/// The worked sequences of levels, waited through.
#[test]
fn levels_are_waited_through() {
    let restart = [
        Level::new(1).delay(Duration::ZERO),
        Level::new(5).delay(100 * MS).increment_ms(250),
        Level::unbounded().delay(30 * SEC),
    ];
    assert_eq!(delays(Levels::try_from(restart).unwrap(), 8), [0, 100, 350, 600, 850, 1100, 30_000, 30_000]);

    let reconnect =
        [Level::new(3).delay(SEC).factor(2.0), Level::unbounded().factor(1.5).max_delay(Duration::from_secs(120))];
    assert_eq!(
        delays(Levels::try_from(reconnect).unwrap(), 13),
        [1000, 2000, 4000, 6000, 9000, 13_500, 20_250, 30_375, 45_563, 68_344, 102_516, 120_000, 120_000]
    );

    assert_eq!(delays(Levels::DEFAULT, 100), [0, 987, 1597, 2584, 4181, 6765, 10_946, 17_711, 28_657]);
}

/// The level and the failures on it can be read after every failure, and are gone after a success.
#[test]
fn levels_are_visible() {
    let levels = [Level::new(1).delay(Duration::ZERO), Level::new(3).delay(SEC), Level::unbounded().delay(MINUTE)];
    let mut backoff = Backoff::new(Levels::try_from(levels).unwrap()).clock(VirtualClock::new());
    let mut seen = vec![(backoff.level(), backoff.level_failure_count())];
    for _ in 0..6 {
        backoff.failed();
        seen.push((backoff.level(), backoff.level_failure_count()));
    }
    assert_eq!(seen, [(0, 0), (0, 1), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]);
    assert_eq!(backoff.failure_count(), 6);
    backoff.succeeded();
    assert_eq!((backoff.level(), backoff.level_failure_count()), (0, 0));
}

/// A change of the delay is told once, its repetition is not; several observers hear the same.
#[test]
fn a_changed_delay_is_told_once() {
    let (first, second) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut backoff = Backoff::new([Duration::ZERO, SEC, SEC, 2 * SEC])
        .clock(VirtualClock::new())
        .on_delay_change(|delay| first.borrow_mut().push(delay))
        .on_delay_change(|delay| second.borrow_mut().push(delay));
    for _ in 0..9 {
        backoff.failed();
    }
    backoff.reset();
    backoff.reset();
    assert_eq!(*first.borrow(), [SEC, 2 * SEC, Duration::ZERO]);
    assert_eq!(first, second);
}

/// Giving up is told once for each series, with its reason, to each observer.
#[test]
fn giving_up_is_told_once() {
    let (first, second) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut backoff = Backoff::new(Policy::fixed(SEC).max_attempts(2))
        .clock(VirtualClock::new())
        .on_give_up(|exhausted| first.borrow_mut().push((exhausted.reason(), exhausted.failures())))
        .on_give_up(|exhausted| second.borrow_mut().push((exhausted.reason(), exhausted.failures())));
    for _ in 0..5 {
        backoff.failed();
    }
    backoff.succeeded();
    for _ in 0..5 {
        backoff.failed();
    }
    assert_eq!(*first.borrow(), [(StopReason::Exhausted, 2); 2]);
    assert_eq!(first, second);
}

/// Hours of good service are no failing time: the deadline runs from the first failure of each series.
#[test]
fn the_deadline_measures_failing_time() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(Policy::fixed(6 * SEC).unbounded().max_elapsed(12 * SEC)).clock(&clock);
    for _ in 0..2 {
        clock.advance(DAY);
        for _ in 0..2 {
            backoff.failed();
            clock.block_on(backoff.attempt().unwrap()); // the second wait ends exactly at the deadline
        }
        backoff.failed();
        assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::Deadline);
        backoff.succeeded();
    }
}

/// In a run, an attempt knows its number, the wait before it and the time left, once failing time is counted.
#[test]
fn an_attempt_of_a_run_knows_its_place() {
    let clock = VirtualClock::new();
    let seen = RefCell::new(Vec::new());
    let op = async |attempt: Attempt| {
        seen.borrow_mut().push((attempt.number(), attempt.previous_delay(), attempt.remaining(), attempt.is_final()));
        Err::<(), _>("E")
    };
    let mut backoff = Backoff::new(Policy::linear(SEC).max_elapsed(MINUTE)).clock(&clock);
    let expected =
        [(1, Duration::ZERO, None, false), (2, SEC, Some(59 * SEC), false), (3, 2 * SEC, Some(57 * SEC), true)];
    for _ in 0..2 {
        clock.block_on(backoff.run(op)).unwrap_err();
        assert_eq!(seen.take(), expected);
        backoff.reset();
    }
}

/// A run ends with the first success, which ends the series too.
#[test]
fn a_run_ends_with_success() {
    let script = Script::new([Err("E"), Err("E"), Ok(7)]);
    let mut backoff = Backoff::new(DOUBLING).clock(&script.clock);
    assert_eq!(script.clock.block_on(backoff.run(|_| script.call())), Ok(7));
    assert_eq!(script.calls(), [Duration::ZERO, SEC, 3 * SEC]);
    assert_eq!((backoff.failure_count(), backoff.delay()), (0, Duration::ZERO));
}

/// A run goes on with the series it finds: it waits what is left, and calls once even where nothing may follow.
#[test]
fn a_run_goes_on_with_the_series_it_finds() {
    let script = always_fails();
    let mut backoff = Backoff::new(Policy::fixed(10 * SEC).max_attempts(2)).clock(&script.clock);
    backoff.failed();
    script.clock.advance(4 * SEC);
    assert_eq!(script.clock.block_on(backoff.run(|_| script.call())), Err("E"));
    assert_eq!(script.calls(), [10 * SEC]);
    assert_eq!(script.clock.block_on(backoff.run(|_| script.call())), Err("E"));
    assert_eq!((script.count(), backoff.failure_count()), (2, 2));
}

/// A child that was healthy before it failed begins a new series, even after the backoff had given up.
#[test]
fn health_in_a_run_begins_a_new_series() {
    let clock = VirtualClock::new();
    let lifetimes = RefCell::new(vec![SEC, SEC, MINUTE, SEC, 2 * MINUTE, SEC, SEC, SEC].into_iter());
    let mut started = Vec::new();
    let child = |attempt: Attempt| {
        started.push(attempt.number());
        let lifetime = lifetimes.borrow_mut().next().unwrap();
        let clock = &clock;
        async move {
            clock.sleep(lifetime).await;
            Err::<(), _>("crashed")
        }
    };
    let mut backoff = Backoff::new(Policy::fixed(SEC).max_attempts(4)).healthy_after(MINUTE).clock(&clock);
    assert_eq!(clock.block_on(backoff.run(child)), Err("crashed"));
    assert_eq!(started, [1, 2, 3, 2, 3, 2, 3, 4]);
}

/// What a backoff shows of itself is numbers.
#[test]
fn debug_shows_where_it_stands() {
    let mut backoff = Backoff::new([SEC]).clock(VirtualClock::new()).on_give_up(|_: &Exhausted| ());
    backoff.failed();
    assert_eq!(format!("{backoff:?}"), "Backoff { failures: 1, delay: 1s, given_up: None, .. }");
    assert_eq!(format!("{:?}", backoff.attempt().unwrap()), "Wait { delay: 1s, .. }");
}
