//! A circuit breaker opens, waits, probes and closes; case numbers are those of failures that people met elsewhere.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::error::Error;
use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use relent::breaker::{BreakerConfig, BreakerError, CallError, CircuitBreaker, Permit, State, Transition};
use relent::clock::{Clock, VirtualClock, clock_fn};
use relent::error::{AsError, Auto, CircuitOpen, Marking, Signs};
use relent::retry::StopReason;
use relent::{Jitter, NonRetryableError, Policy, retry};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A breaker that opens at the `failures`-th failure in a row, for a fixed time.
fn breaker(clock: &VirtualClock, failures: u16, cooldown: Duration) -> CircuitBreaker<&VirtualClock> {
    CircuitBreaker::new().named("db").failure_threshold(failures).cooldown(Policy::fixed(cooldown)).with_clock(clock)
}

fn succeed<C: Clock>(breaker: &CircuitBreaker<C>) -> Option<Transition> {
    breaker.acquire().expect("admitted").success()
}

fn fail<C: Clock>(breaker: &CircuitBreaker<C>) -> Option<Transition> {
    breaker.acquire().expect("admitted").failure()
}

fn step(transition: Option<Transition>) -> Option<(State, State)> {
    transition.map(|transition| (transition.from(), transition.to()))
}

fn retry_after<C: Clock>(breaker: &CircuitBreaker<C>) -> Duration {
    breaker.acquire().expect_err("refused").retry_after()
}

/// Consecutive sequences: `S` is a success, `F` a failure.
#[test]
fn the_fifth_failure_in_a_row_opens() {
    for (results, opens_at) in
        [("FFFFF", Some(5)), ("FFFFSFFFF", None), ("FFFFSFFFFF", Some(10)), ("SSSSS", None), ("FFFFNF", Some(6))]
    {
        let clock = VirtualClock::new();
        let breaker = CircuitBreaker::new().with_clock(&clock);
        let mut opened_at = None;
        for (index, result) in results.chars().enumerate() {
            let permit = breaker.acquire().expect("admitted");
            let transition = match result {
                'S' => permit.success(),
                'F' => permit.failure(),
                _ => {
                    permit.neutral();
                    None
                }
            };
            if step(transition) == Some((State::Closed, State::Open)) {
                opened_at = Some(index + 1);
            }
        }
        assert_eq!(opened_at, opens_at, "{results}");
    }
}

#[test]
fn the_defaults_are_five_failures_and_thirty_seconds_and_one_probe() {
    let clock = VirtualClock::new();
    let breaker = CircuitBreaker::default().with_clock(&clock);
    for _ in 0..4 {
        assert_eq!(fail(&breaker), None);
    }
    assert_eq!(step(fail(&breaker)), Some((State::Closed, State::Open)));
    assert_eq!(breaker.acquire().unwrap_err(), CircuitOpen::new("", secs(30)));

    clock.advance(Duration::from_micros(29_999_999));
    assert_eq!(retry_after(&breaker), Duration::from_micros(1));
    clock.advance(Duration::from_micros(1));
    let probe = breaker.acquire().expect("admitted");
    assert_eq!(retry_after(&breaker), secs(30), "one probe at a time");
    assert_eq!(step(probe.success()), Some((State::HalfOpen, State::Closed)));
}

#[test]
fn a_static_breaker_serves_a_program() {
    static DB: CircuitBreaker = CircuitBreaker::new().named("db").failure_threshold(1);
    assert_eq!(succeed(&DB), None);
    let transition = fail(&DB).expect("a transition");
    assert_eq!((transition.name(), transition.from(), transition.to()), ("db", State::Closed, State::Open));
    assert_eq!(DB.acquire().unwrap_err().name(), "db");
}

/// Field case 86.
#[test]
fn an_ignored_error_of_a_probe_gives_its_slot_back() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    clock.advance(secs(10));
    breaker.acquire().expect("admitted").neutral();
    clock.advance(ms(100));
    assert_eq!(step(succeed(&breaker)), Some((State::HalfOpen, State::Closed)));
}

/// Field case 88.
#[test]
fn dropped_calls_do_not_count() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 5, secs(10));
    for _ in 0..20 {
        drop(breaker.acquire().expect("admitted"));
    }
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(succeed(&breaker), None);
}

/// Field case 88.
#[test]
fn a_dropped_probe_frees_its_slot_at_once() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    clock.advance(secs(10));

    let mut call = Box::pin(breaker.call(pending::<Result<(), &str>>()));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(breaker.acquire().is_err());
    drop(call);
    assert_eq!(breaker.state(), State::HalfOpen);
    assert!(breaker.acquire().is_ok());
}

/// Field case 89.
#[test]
fn a_probe_that_never_ends_loses_its_lease_after_one_cooldown() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(30));
    fail(&breaker);
    clock.advance(secs(30));
    let first = breaker.acquire().expect("admitted");
    clock.advance(ms(29_999));
    assert_eq!(retry_after(&breaker), ms(1));
    clock.advance(ms(1));
    let second = breaker.acquire().expect("the lease of the first has ended");
    clock.advance(secs(60));
    let third = breaker.acquire().expect("the lease of the second has ended");

    assert_eq!(first.failure(), None);
    assert_eq!(second.success(), None);
    assert_eq!(breaker.state(), State::HalfOpen);
    assert!(breaker.acquire().is_err(), "the late results freed no slot");
    assert_eq!(step(third.success()), Some((State::HalfOpen, State::Closed)));
}

/// A probe that outlives its lease counts like one that failed, so that calls slower than the first cooldown are in the
/// end waited for.
#[test]
fn a_growing_cooldown_outgrows_slow_calls() {
    // Leases of 1, 2, 4 and 8 s, and after the failure in the last of them a cooldown of 16 s.
    for (is_well, calls, ends) in [(true, 4, State::Closed), (false, 5, State::Open)] {
        let clock = VirtualClock::new();
        let cooldown = Policy::exponential(secs(1)).jitter(Jitter::None);
        let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown).with_clock(&clock);
        fail(&breaker);
        let (mut made, mut running) = (0, Vec::new());
        // A caller every 100 ms for a minute, and calls of 5 s.
        for _ in 0..600 {
            if breaker.state() != State::Closed {
                let admitted = breaker.acquire().ok();
                made += u32::from(admitted.is_some());
                running.extend(admitted.map(|permit| (clock.now() + secs(5), permit)));
            }
            clock.advance(ms(100));
            if running.first().is_some_and(|(end, _)| *end <= clock.now()) {
                let (_, permit) = running.remove(0);
                if is_well {
                    permit.success()
                } else {
                    permit.failure()
                };
            }
        }
        assert_eq!((made, breaker.state()), (calls, ends));
    }
}

#[test]
fn a_slow_probe_keeps_its_slot_until_another_call_comes() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    clock.advance(secs(10));
    let slow = breaker.acquire().expect("admitted");
    clock.advance(secs(100));
    assert_eq!(step(slow.success()), Some((State::HalfOpen, State::Closed)));
}

#[test]
fn a_lease_runs_from_the_first_slot_that_is_taken() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10)).probes(2).success_threshold(2);
    fail(&breaker);
    clock.advance(secs(10));
    let first = breaker.acquire().expect("admitted");
    clock.advance(secs(9));
    let second = breaker.acquire().expect("admitted");
    assert_eq!(retry_after(&breaker), secs(1), "the second has begun no lease");
    first.neutral();
    second.neutral();

    let third = breaker.acquire().expect("admitted");
    let fourth = breaker.acquire().expect("admitted");
    assert_eq!(retry_after(&breaker), secs(10), "all slots were free");
    clock.advance(secs(10));
    third.neutral();
    let [fifth, sixth] = [(); 2].map(|()| breaker.acquire().expect("all slots were taken back"));
    assert_eq!(retry_after(&breaker), secs(10), "both count, and no third beside them");
    assert_eq!(fourth.failure(), None);
    assert_eq!(fifth.success(), None);
    assert_eq!(step(sixth.success()), Some((State::HalfOpen, State::Closed)));
}

/// Field case 89: one probe hangs while the other slots come and go.
#[test]
fn a_probe_that_never_ends_loses_its_lease_whatever_the_other_slots_do() {
    for probes in 2..=5 {
        let clock = VirtualClock::new();
        let breaker = breaker(&clock, 1, secs(10)).probes(probes).success_threshold(3);
        fail(&breaker);
        clock.advance(secs(10));
        let _hung = breaker.acquire().expect("admitted");
        let mut granted = Vec::new();
        for _ in 0..100 {
            let admitted: Vec<_> = std::iter::from_fn(|| breaker.acquire().ok()).collect();
            granted.push(admitted.len());
            clock.advance(secs(9)); // and all of them end without a verdict
        }
        let all = usize::from(probes);
        assert_eq!(granted[..2], [all - 1, all - 1], "at 0 and 9 s");
        assert_eq!(granted[2..], [all; 98], "from 18 s on its slot is granted with the others");
        assert_eq!(breaker.state(), State::HalfOpen);
    }
}

/// What is taken back for a probe that hangs is never all that the others do.
#[test]
fn a_breaker_with_a_hung_probe_closes() {
    for lasts in 1..=9 {
        let clock = VirtualClock::new();
        let breaker = breaker(&clock, 1, secs(10)).probes(2).success_threshold(3);
        fail(&breaker);
        clock.advance(secs(10));
        let _hung = breaker.acquire().expect("admitted");
        let mut in_flight: Vec<(u32, Permit<_>)> = Vec::new();
        let mut seconds = 0;
        while breaker.state() != State::Closed {
            in_flight.extend(std::iter::from_fn(|| breaker.acquire().ok()).map(|permit| (seconds, permit)));
            clock.advance(secs(1));
            seconds += 1;
            while in_flight.first().is_some_and(|(since, _)| *since + lasts <= seconds) {
                in_flight.remove(0).1.success();
            }
            assert!(seconds <= 40, "{lasts}");
        }
    }
}

/// Field case 92.
#[test]
fn the_first_probe_counts() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10)).probes(2).success_threshold(2);
    fail(&breaker);
    clock.advance(secs(10));
    let admitted: Vec<Permit<_>> = (0..5).filter_map(|_| breaker.acquire().ok()).collect();
    assert_eq!(admitted.len(), 2);
    let transitions: Vec<_> = admitted.into_iter().map(|permit| step(permit.success())).collect();
    assert_eq!(transitions, [None, Some((State::HalfOpen, State::Closed))]);
}

#[test]
fn more_successes_than_probes_may_be_asked_for() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10)).success_threshold(3);
    fail(&breaker);
    clock.advance(secs(10));
    assert_eq!(succeed(&breaker), None);
    breaker.acquire().expect("admitted").neutral();
    assert_eq!(succeed(&breaker), None);
    assert_eq!(step(succeed(&breaker)), Some((State::HalfOpen, State::Closed)));
}

#[test]
fn one_failed_probe_reopens_whatever_succeeded_before() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 3, secs(10)).success_threshold(2);
    for _ in 0..3 {
        fail(&breaker);
    }
    clock.advance(secs(10));
    succeed(&breaker);
    assert_eq!(step(fail(&breaker)), Some((State::HalfOpen, State::Open)));
    clock.advance(secs(10));
    assert_eq!(succeed(&breaker), None, "the successes are counted anew");
}

/// Field case 94.
#[test]
fn results_from_before_the_trip_are_ignored() {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    fn count(transition: &Transition) {
        if transition.to() == State::Open {
            OPENED.fetch_add(1, Ordering::Relaxed);
        }
    }

    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 2, secs(5)).on_transition(count);
    let [first, second, third] = [(); 3].map(|()| breaker.acquire().expect("admitted"));
    clock.advance(secs(1));
    fail(&breaker);
    fail(&breaker);
    assert_eq!(second.failure(), None, "while open");
    clock.advance(secs(5));
    let probe = breaker.acquire().expect("admitted");
    clock.advance(secs(6));
    assert_eq!(first.success(), None);
    assert_eq!(third.failure(), None);
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(OPENED.load(Ordering::Relaxed), 1);
    assert_eq!(step(probe.success()), Some((State::HalfOpen, State::Closed)));
}

/// Field case 95.
#[test]
fn failures_reported_while_open_do_not_push_the_recovery() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    let late: Vec<Permit<_>> = (0..9).map(|_| breaker.acquire().expect("admitted")).collect();
    fail(&breaker);
    for permit in late {
        clock.advance(secs(1));
        assert_eq!(permit.failure(), None);
        assert!(breaker.acquire().is_err());
    }
    clock.advance(secs(1));
    assert!(breaker.acquire().is_ok());
}

/// Field case 97.
#[test]
fn a_success_starts_the_count_anew() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 5, secs(10));
    for _ in 0..5 {
        fail(&breaker);
        succeed(&breaker);
    }
    for _day in 0..5 {
        fail(&breaker);
        clock.advance(secs(12 * 3600));
        succeed(&breaker);
        clock.advance(secs(12 * 3600));
    }
    assert_eq!(breaker.state(), State::Closed);
}

/// Field case 98.
#[test]
fn a_successful_probe_closes_with_nothing_counted() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 3, secs(10));
    for _ in 0..3 {
        fail(&breaker);
    }
    clock.advance(secs(10));
    succeed(&breaker);
    assert_eq!(fail(&breaker), None);
    assert_eq!(fail(&breaker), None);
    assert_eq!(breaker.state(), State::Closed);
}

/// Field case 100: forced open lasts until it is reset.
#[test]
fn an_earlier_cooldown_does_not_end_a_forced_state() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    clock.advance(secs(8));
    assert_eq!(step(breaker.force_open()), Some((State::Open, State::ForcedOpen)));
    assert_eq!(breaker.force_open(), None);
    clock.advance(secs(2));
    assert_eq!(retry_after(&breaker), Duration::MAX);
    clock.advance(secs(8));
    assert_eq!(retry_after(&breaker), Duration::MAX);
    assert_eq!(step(breaker.reset()), Some((State::ForcedOpen, State::Closed)));
    assert_eq!(breaker.reset(), None);
    assert_eq!(succeed(&breaker), None);
}

/// Field case 100: a newer trip cancels the older cooldown.
#[test]
fn an_earlier_cooldown_does_not_end_a_later_trip() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    breaker.reset();
    clock.advance(secs(8));
    fail(&breaker);
    clock.advance(secs(2));
    assert_eq!(retry_after(&breaker), secs(8));
    clock.advance(secs(8));
    assert!(breaker.acquire().is_ok());
}

/// Field case 101, the breaker's side: attempts of a run, each of them a call.
/// Values from outside are refused by their names where a literal would not compile.
#[test]
fn a_configuration_makes_the_breaker_that_the_setters_make() {
    let cooldown = Policy::exponential(secs(7));
    let config = BreakerConfig { failure_threshold: 2, success_threshold: 3, probes: 4, cooldown };
    let by_setters = CircuitBreaker::new().failure_threshold(2).success_threshold(3).probes(4).cooldown(cooldown);
    let made = |config| CircuitBreaker::try_from(config).map(|breaker| format!("{breaker:?}"));
    assert_eq!(made(config), Ok(format!("{by_setters:?}")));
    assert_eq!(made(BreakerConfig::default()), Ok(format!("{:?}", CircuitBreaker::default())));

    let stateful = cooldown.jitter(Jitter::Decorrelated);
    for (config, error, text) in [
        (
            BreakerConfig { failure_threshold: 0, ..config },
            BreakerError::FailureThreshold,
            "failure_threshold must be at least 1, not 0",
        ),
        (
            BreakerConfig { success_threshold: 0, ..config },
            BreakerError::SuccessThreshold,
            "success_threshold must be at least 1, not 0",
        ),
        (BreakerConfig { probes: 0, ..config }, BreakerError::Probes, "probes must be at least 1, not 0"),
        (
            BreakerConfig { cooldown: stateful, ..config },
            BreakerError::Cooldown(stateful),
            "cooldown must not have decorrelated jitter, as \"exponential 7s decorrelated\" has",
        ),
    ] {
        assert_eq!((made(config), error.to_string()), (Err(error), text.to_owned()));
    }
}

#[test]
fn three_failing_attempts_open_and_the_refusal_is_no_failure() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 3, secs(10));
    let mut calls = 0;
    let results: Vec<_> = (0..5)
        .map(|_| {
            let result = breaker.call_blocking(|| {
                calls += 1;
                Err::<(), _>("down")
            });
            clock.advance(ms(100));
            result.unwrap_err()
        })
        .collect();
    assert_eq!(calls, 3);
    let open = |wait| CallError::Open(CircuitOpen::new("db", wait));
    let down = CallError::Inner("down");
    assert_eq!(results, [down, down, down, open(ms(9_900)), open(ms(9_800))]);

    clock.advance(ms(9_700));
    assert_eq!(step(succeed(&breaker)), Some((State::HalfOpen, State::Closed)), "refusals moved nothing");
}

/// Field case 101, each attempt a call: the refused attempt waits until the cooldown has passed.
#[test]
fn a_run_of_attempts_through_a_breaker_comes_back_when_it_may() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 3, secs(10));
    let calls = RefCell::new(Vec::new());
    let run = retry(
        |_| {
            breaker.call(async {
                calls.borrow_mut().push(clock.now());
                Err::<(), _>("down")
            })
        },
        Policy::fixed(ms(100)).max_attempts(5),
    );
    let report = clock.block_on(run.clock(&clock).report());
    assert_eq!(*calls.borrow(), [0, 100, 200, 10_200].map(ms));
    assert_eq!(report.result, Err(CallError::Inner("down")));
    assert_eq!((report.attempts, report.elapsed), (5, ms(10_200)));
}

/// Field case 101: where the wait does not fit the run, it ends with the refusal.
#[test]
fn a_run_of_attempts_through_an_open_breaker_ends_at_once_when_it_cannot_wait() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    let report = |max_elapsed| {
        let policy = Policy::fixed(ms(100)).max_elapsed(max_elapsed);
        clock.block_on(retry(|_| breaker.call(ready(Ok::<_, &str>(7))), policy).clock(&clock).report())
    };
    let refused = report(secs(9));
    assert_eq!(refused.result, Err(CallError::Open(CircuitOpen::new("db", secs(10)))));
    assert_eq!((refused.stop, refused.elapsed), (Some(StopReason::Deadline), Duration::ZERO));
    assert_eq!(report(secs(10)).result, Ok(7));

    breaker.force_open();
    let forced = report(Duration::MAX);
    assert_eq!((forced.attempts, forced.elapsed), (1, Duration::ZERO));
}

/// Field case 101, a run as one call: it counts once, and a refused run does not wait.
#[test]
fn a_run_through_a_breaker_counts_once() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 3, secs(10));
    let calls = Cell::new(0);
    let run = || {
        let attempt = |_| {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("down"))
        };
        clock.block_on(breaker.call(retry(attempt, Policy::immediate().max_attempts(5)).clock(&clock)))
    };
    for runs in 1..=3 {
        assert_eq!(run(), Err(CallError::Inner("down")));
        assert_eq!(calls.get(), 5 * runs);
    }
    assert_eq!(run(), Err(CallError::Open(CircuitOpen::new("db", secs(10)))));
    assert_eq!((calls.get(), clock.now()), (15, Duration::ZERO));
}

/// A refusal says that the operation did not run, so it is tried again where a failure is not.
#[test]
fn a_refusal_is_retried_where_the_operation_is_not_idempotent() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    let run = retry(|_| breaker.call(ready(Err::<(), _>("down"))), Policy::fixed(ms(100))).idempotent(false);
    let report = clock.block_on(run.clock(&clock).report());
    assert_eq!(report.result, Err(CallError::Inner("down")));
    assert_eq!((report.attempts, report.elapsed), (2, secs(10)));
}

/// Field case 61.
#[test]
fn a_clock_that_steps_back_opens_for_no_longer_than_asked() {
    let now = Cell::new(secs(100));
    let clock = clock_fn(|| now.get(), |_| ready(()));
    let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(Policy::fixed(secs(10))).with_clock(&clock);
    fail(&breaker);
    now.set(secs(70));
    assert_eq!(retry_after(&breaker), secs(10));
    now.set(secs(71));
    assert_eq!(retry_after(&breaker), secs(9));
    now.set(secs(80));
    let probe = breaker.acquire().expect("admitted");

    now.set(secs(50));
    assert_eq!(retry_after(&breaker), secs(10), "the lease too");
    now.set(secs(60));
    let next = breaker.acquire().expect("admitted");
    assert_eq!(probe.success(), None);
    assert_eq!(step(next.success()), Some((State::HalfOpen, State::Closed)));
}

#[test]
fn a_clock_may_have_any_origin_and_pass_the_width_of_the_stamp() {
    for origin in
        [Duration::ZERO, secs(1_700_000_000), Duration::from_micros((1 << 51) - 5_000_000), secs(u64::MAX - 60)]
    {
        let now = Cell::new(origin);
        let clock = clock_fn(|| now.get(), |_| ready(()));
        let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(Policy::fixed(secs(10))).with_clock(&clock);
        fail(&breaker);
        now.set(origin + secs(9));
        assert_eq!(retry_after(&breaker), secs(1), "{origin:?}");
        now.set(origin + secs(10));
        assert!(breaker.acquire().is_ok(), "{origin:?}");
    }
}

#[test]
fn repeated_trips_back_off_until_a_close() {
    let clock = VirtualClock::new();
    let cooldown = Policy::exponential(secs(1)).jitter(Jitter::None).max_delay(secs(5));
    let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown).with_clock(&clock);
    let mut cooldowns = Vec::new();
    for _ in 0..5 {
        fail(&breaker);
        cooldowns.push(retry_after(&breaker));
        clock.advance(retry_after(&breaker));
    }
    assert_eq!(cooldowns, [1, 2, 4, 5, 5].map(secs));
    succeed(&breaker);
    fail(&breaker);
    assert_eq!(retry_after(&breaker), secs(1));
}

#[test]
fn trips_stop_counting_at_255() {
    let clock = VirtualClock::new();
    let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(Policy::linear(secs(1))).with_clock(&clock);
    for trip in 1..=300 {
        fail(&breaker);
        assert_eq!(retry_after(&breaker), secs(trip.min(255)));
        clock.advance(retry_after(&breaker));
    }
}

/// Each trip draws anew, whatever bits the seed has.
#[test]
fn no_seed_hides_which_trip_it_is() {
    for seed in [0, 1, u64::MAX] {
        let clock = VirtualClock::new();
        let cooldown = Policy::fixed(secs(1000)).jitter(Jitter::Full);
        let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown).seed(seed).with_clock(&clock);
        let waits: HashSet<_> = (0..10)
            .map(|_| {
                fail(&breaker);
                let wait = retry_after(&breaker);
                clock.advance(wait);
                wait
            })
            .collect();
        assert_eq!(waits.len(), 10, "seed {seed}");
    }
}

#[test]
fn a_cooldown_is_drawn_once_per_trip() {
    let trips = |seed: Option<u64>| -> Vec<Duration> {
        let clock = VirtualClock::new();
        let cooldown = Policy::fixed(secs(10)).jitter(Jitter::Equal);
        let mut breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown);
        if let Some(seed) = seed {
            breaker = breaker.seed(seed);
        }
        let breaker = breaker.with_clock(&clock);
        (0..200)
            .map(|_| {
                fail(&breaker);
                let drawn = retry_after(&breaker);
                clock.advance(secs(1));
                assert_eq!(retry_after(&breaker) + secs(1), drawn, "asking again draws nothing");
                clock.advance(drawn);
                drawn
            })
            .collect()
    };
    let drawn = trips(Some(7));
    assert_eq!(drawn, trips(Some(7)), "a seed makes it reproducible");
    assert_ne!(drawn, trips(Some(8)));
    assert_ne!(drawn, trips(None));
    assert!(drawn.iter().all(|wait| (secs(5)..=secs(10)).contains(wait)));
    assert!(drawn.iter().any(|wait| *wait < ms(5_500)) && drawn.iter().any(|wait| *wait > ms(9_500)));
    let mean = drawn.iter().sum::<Duration>() / 200;
    assert!((ms(7_200)..ms(7_800)).contains(&mean), "{mean:?}");
}

#[test]
fn breakers_that_trip_together_come_back_apart() {
    let distinct = |seed: Option<u64>| {
        let clock = VirtualClock::new();
        let breakers = [(); 100].map(|()| {
            let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
            let breaker = breaker.cooldown(Policy::fixed(secs(30)).jitter(Jitter::Full));
            if let Some(seed) = seed { breaker.seed(seed) } else { breaker }
        });
        for breaker in &breakers {
            let _ = fail(breaker);
        }
        let waits: Vec<_> = breakers.iter().map(retry_after).collect();
        assert_eq!(waits, breakers.iter().map(retry_after).collect::<Vec<_>>());
        waits.into_iter().collect::<HashSet<_>>().len()
    };
    assert!(distinct(None) > 90);
    assert_eq!(distinct(Some(7)), 1, "a seed makes it reproducible");
}

#[test]
fn a_lease_is_not_shortened_by_a_short_draw() {
    let clock = VirtualClock::new();
    let cooldown = Policy::fixed(secs(10)).jitter(Jitter::Full);
    let breaker = CircuitBreaker::new().failure_threshold(1).cooldown(cooldown).seed(1).with_clock(&clock);
    for _ in 0..20 {
        fail(&breaker);
        clock.advance(secs(10));
        let probe = breaker.acquire().expect("admitted");
        assert_eq!(retry_after(&breaker), secs(10));
        probe.neutral();
    }
}

#[test]
fn a_closed_breaker_reads_no_clock() {
    let clock = clock_fn(|| -> Duration { unreachable!("read") }, |_| ready(()));
    let breaker = CircuitBreaker::new().with_clock(clock);
    for _ in 0..4 {
        fail(&breaker);
    }
    succeed(&breaker);
    drop(breaker.acquire().expect("admitted"));
}

#[test]
fn forced_closed_admits_all_and_counts_nothing() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    assert_eq!(step(breaker.force_closed()), Some((State::Closed, State::ForcedClosed)));
    for _ in 0..10 {
        assert_eq!(fail(&breaker), None);
    }
    let late = breaker.acquire().expect("admitted");
    assert_eq!(step(breaker.reset()), Some((State::ForcedClosed, State::Closed)));
    assert_eq!(late.failure(), None);
    assert_eq!(step(fail(&breaker)), Some((State::Closed, State::Open)));
    assert_eq!(step(breaker.force_closed()), Some((State::Open, State::ForcedClosed)));
    assert!(breaker.acquire().is_ok());
}

#[test]
fn a_reset_forgets_the_failures_and_the_calls_in_flight() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 2, secs(10));
    let in_flight = breaker.acquire().expect("admitted");
    fail(&breaker);
    assert_eq!(breaker.reset(), None);
    assert_eq!(in_flight.failure(), None);
    assert_eq!(fail(&breaker), None);
    assert_eq!(step(fail(&breaker)), Some((State::Closed, State::Open)));
}

#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_call_is_neutral() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    let panicking = || breaker.call_blocking(|| -> Result<(), &str> { panic!("a bug") });
    assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
    assert_eq!(breaker.state(), State::Closed);
    fail(&breaker);
    clock.advance(secs(10));
    assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
    assert!(breaker.acquire().is_ok(), "the slot of the probe is free");
}

#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_hook_leaves_no_slot_taken() {
    fn hook(transition: &Transition) {
        assert_ne!(transition.to(), State::HalfOpen);
    }
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10)).on_transition(hook);
    fail(&breaker);
    clock.advance(secs(10));
    assert!(catch_unwind(AssertUnwindSafe(|| breaker.acquire().is_ok())).is_err());
    assert!(breaker.acquire().is_ok());
}

#[test]
fn permanent_errors_are_neutral_however_they_are_wrapped() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    let permanent = || NonRetryableError::new("no such user");
    clock.block_on(async {
        assert!(breaker.call(async { Err::<(), _>(permanent()) }).await.is_err());
        assert!(breaker.call(async { Err::<(), _>(std::io::Error::other(permanent())) }).await.is_err());
        assert!(breaker.call(async { Err::<(), Box<dyn Error + Send + Sync>>(permanent().into()) }).await.is_err());
        assert!(breaker.call_blocking(|| Err::<(), Box<dyn Error>>(permanent().into())).is_err());
        assert_eq!(breaker.state(), State::Closed);
        assert!(breaker.call(async { Err::<(), Box<dyn Error + Send + Sync>>("down".into()) }).await.is_err());
        assert_eq!(breaker.state(), State::Open);
    });
}

#[test]
fn a_refused_call_never_begins() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, secs(10));
    fail(&breaker);
    let called = Cell::new(false);
    let refused = clock.block_on(breaker.call(async {
        called.set(true);
        Ok::<_, &str>(())
    }));
    assert_eq!(refused, Err(CallError::Open(CircuitOpen::new("db", secs(10)))));
    let refused = breaker.call_blocking(|| {
        called.set(true);
        Ok::<_, &str>(())
    });
    assert!(refused.is_err());
    assert!(!called.get());
}

#[test]
fn a_run_around_a_call_reads_the_refusal_and_the_markers() {
    fn signs<E: AsError<K>, K>(error: &CallError<E>) -> Signs
    where
        CallError<E>: AsError<K>,
    {
        Auto::<K>::signs(error)
    }

    let open = CircuitOpen::new("db", secs(7));
    let hint = signs::<std::io::Error, _>(&open.into());
    assert!(hint.not_executed());
    assert_eq!(hint.retry_after(), Some(secs(7)));
    assert_eq!(signs::<Box<dyn Error + Send + Sync>, _>(&open.into()), hint);
    assert_eq!(signs::<Box<dyn Error>, _>(&open.into()), hint);
    assert_eq!(signs::<&str, _>(&open.into()), hint);

    let permanent = || NonRetryableError::new("no such user");
    assert!(signs(&CallError::Inner(permanent())).not_retryable());
    assert!(signs(&CallError::Inner(Box::<dyn Error>::from(permanent()))).not_retryable());
    assert_eq!(signs(&CallError::Inner("down")), Signs::NONE);
}

#[test]
fn a_call_error_shows_what_it_holds() {
    let open = CircuitOpen::new("db", secs(7));
    let refused: CallError<std::fmt::Error> = open.into();
    assert_eq!(refused.to_string(), open.to_string());
    assert_eq!(CallError::Inner("down").to_string(), "down");
    assert_eq!(refused.source().map(ToString::to_string), open.source().map(ToString::to_string));
}

#[test]
fn a_call_may_be_spawned() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    static DB: CircuitBreaker = CircuitBreaker::new();
    let name = String::from("borrowed");
    let call = sendable(DB.call(async { Ok::<_, &str>(name.len()) }));
    let mut call = pin!(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn states_and_transitions_name_themselves() {
    let clock = VirtualClock::new();
    let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
    assert_eq!(breaker.force_open().unwrap().to_string(), "circuit breaker: closed -> forced open");
    assert_eq!(breaker.force_closed().unwrap().to_string(), "circuit breaker: forced open -> forced closed");
    assert_eq!(State::HalfOpen.to_string(), "half-open");
    let debug = format!("{breaker:?}");
    assert!(debug.contains("state: ForcedClosed") && debug.contains("failure_threshold: 1"), "{debug}");
    assert!(format!("{:?}", breaker.acquire()).contains("Permit"));
}

#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn limits_of_zero_and_a_stateful_cooldown_are_refused() {
    for refused in [
        catch_unwind(|| CircuitBreaker::new().failure_threshold(0)),
        catch_unwind(|| CircuitBreaker::new().probes(0)),
        catch_unwind(|| CircuitBreaker::new().success_threshold(0)),
    ] {
        let message = *refused.expect_err("refused").downcast::<String>().expect("a message");
        assert!(message.ends_with("must be at least 1"), "{message}");
    }
    let stateful = Policy::DEFAULT.jitter(Jitter::Decorrelated);
    let refused = catch_unwind(|| CircuitBreaker::new().cooldown(stateful)).expect_err("refused");
    assert_eq!(*refused.downcast::<String>().expect("a message"), "cooldown must not have decorrelated jitter");
}
