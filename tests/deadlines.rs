//! Limits on time: the deadline of a run, the time limit of an attempt, and clocks that misbehave.

#![allow(clippy::unchecked_time_subtraction, reason = "a panic fails the test, as it should")]

mod common;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use common::{MS, SEC, Script, always_fails};
use relent::backoff::Backoff;
use relent::breaker::CircuitBreaker;
use relent::budget::RetryBudget;
use relent::clock::{Clock, VirtualClock, clock_fn};
use relent::error::{NotExecuted, RetryAfterError};
use relent::retry::{AttemptTimeout, StopReason};
use relent::{NonRetryableError, Policy, blocking, retry};

/// Field case 50: no attempt begins after the limit, and the run does not wait for one that cannot begin.
#[test]
fn no_wait_for_an_attempt_that_cannot_begin() {
    let script = always_fails();
    let policy = Policy::exponential(SEC).max_delay(5 * SEC).jitter(relent::Jitter::None).unbounded();
    let run = retry(|_| script.call(), policy.max_elapsed(15 * SEC)).clock(&script.clock);
    let report = script.clock.block_on(run.report());
    assert_eq!(script.calls(), [0, 1, 3, 7, 12].map(|s| s * SEC));
    assert_eq!((report.elapsed, report.stop), (12 * SEC, Some(StopReason::Deadline)));
}

/// An attempt that would begin exactly at the deadline is made; one a nanosecond later is not.
#[test]
fn the_deadline_itself_is_still_in_time() {
    for (limit, calls) in [(2 * SEC, 3), (2 * SEC - Duration::from_nanos(1), 2)] {
        let script = always_fails();
        let run = retry(|_| script.call(), Policy::fixed(SEC).unbounded().max_elapsed(limit)).clock(&script.clock);
        let report = script.clock.block_on(run.report());
        assert_eq!((script.count(), report.stop), (calls, Some(StopReason::Deadline)));
    }
}

/// Field case 52: there is no hidden limit; the ceiling on hints says by its name what stopped the run, and at which
/// hint it begins.
#[test]
fn a_long_hint_is_refused_by_name() {
    let half_hour = Duration::from_secs(1800);
    let ask = |hint: Duration, ceiling: Duration| {
        let script = Script::new([Err("busy"), Ok(())]);
        let run = retry(|_| script.call(), Policy::fixed(SEC)).retry_after(|_| Some(hint)).clock(&script.clock);
        let report = script.clock.block_on(run.max_retry_after(ceiling).report());
        (report.attempts, report.elapsed, report.stop)
    };
    assert_eq!(ask(half_hour, half_hour), (2, half_hour, None));
    let longer = half_hour + Duration::from_nanos(1);
    assert_eq!(ask(longer, half_hour), (1, Duration::ZERO, Some(StopReason::RetryAfterTooLong(longer))));
    let five_minutes = Duration::from_secs(300);
    let half_hour = Duration::from_secs(1800);
    let by_default = |hint: Duration| {
        let script = Script::new([Err("busy"), Ok(())]);
        let run = retry(|_| script.call(), Policy::fixed(SEC)).retry_after(|_| Some(hint)).clock(&script.clock);
        script.clock.block_on(run.report()).stop
    };
    assert_eq!(by_default(five_minutes), None);
    assert_eq!(by_default(five_minutes + MS), Some(StopReason::RetryAfterTooLong(five_minutes + MS)));
    assert_eq!(by_default(half_hour), Some(StopReason::RetryAfterTooLong(half_hour)));
}

/// Field case 53: the limit runs from the first poll, so a long first attempt uses it.
#[test]
fn a_long_first_attempt_uses_the_limit() {
    for (first, calls, stop) in [(2 * SEC, 1, Some(StopReason::Deadline)), (100 * MS, 2, None)] {
        let clock = VirtualClock::new();
        let made = Cell::new(0);
        let op = async |attempt: relent::Attempt| {
            made.set(made.get() + 1);
            if attempt.is_first() {
                clock.sleep(first).await;
                return Err("E");
            }
            Ok(())
        };
        let run = retry(op, Policy::fixed(500 * MS).max_elapsed(SEC)).clock(&clock);
        let report = clock.block_on(run.report());
        assert_eq!((made.get(), report.stop), (calls, stop));
    }
}

/// Field case 55: with sleeping switched off, the limits behave as in production.
#[test]
fn a_no_op_sleep_meets_the_same_limits() {
    let limit = 5 * SEC;
    let calls = |policy: Policy, switched_off: bool| {
        let (clock, mut calls) = (VirtualClock::new(), Vec::new());
        let op = |attempt: relent::Attempt| {
            calls.push(limit - attempt.remaining().unwrap());
            std::future::ready(Err::<(), _>("E"))
        };
        let run = retry(op, policy.max_elapsed(limit)).clock(&clock);
        let report = if switched_off {
            clock.block_on(run.sleep(|_| std::future::ready(())).report())
        } else {
            clock.block_on(run.report())
        };
        assert_eq!(report.stop, Some(StopReason::Deadline));
        assert_eq!(clock.now().is_zero(), switched_off || report.attempts == 1);
        calls
    };
    let doubling = Policy::exponential(SEC).jitter(relent::Jitter::None).max_attempts(9);
    for switched_off in [true, false] {
        assert_eq!(calls(Policy::fixed(10 * SEC), switched_off), [Duration::ZERO]);
        assert_eq!(calls(doubling, switched_off), [Duration::ZERO, SEC, 3 * SEC]);
    }
}

/// Field case 56: the run's own time limit on an attempt is a failure like any other, and is retried.
#[test]
fn a_timed_out_attempt_is_retried() {
    let clock = VirtualClock::new();
    let calls = Cell::new(0);
    let op = async |_| {
        calls.set(calls.get() + 1);
        pending::<Result<(), AttemptTimeout>>().await
    };
    let run = retry(op, Policy::fixed(SEC).max_attempts(4)).attempt_timeout(SEC, |timeout| timeout);
    let report = clock.block_on(run.when(|_| false).clock(&clock).report());
    assert_eq!(report.result, Err(AttemptTimeout::new(SEC)));
    assert_eq!((calls.get(), report.elapsed, report.stop), (4, 7 * SEC, Some(StopReason::Exhausted)));
}

/// Counts the attempts in flight.
struct Alive<'a>(&'a Cell<u32>);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Field case 58: a timed-out attempt is dropped before the next begins, and waits are not charged to the limit.
#[test]
fn no_two_attempts_are_alive() {
    let clock = VirtualClock::new();
    let (alive, most, begun) = (Cell::new(0), Cell::new(0), RefCell::new(Vec::new()));
    let op = async |_| {
        alive.set(alive.get() + 1);
        most.set(most.get().max(alive.get()));
        let _alive = Alive(&alive);
        begun.borrow_mut().push(clock.now());
        clock.sleep(10 * SEC).await;
        Err::<(), _>("too slow")
    };
    let run = retry(op, Policy::fixed(5 * SEC)).attempt_timeout(SEC, |_| "timed out").clock(&clock);
    assert_eq!(clock.block_on(run), Err("timed out"));
    assert_eq!(most.get(), 1);
    assert_eq!(alive.get(), 0);
    assert_eq!(begun.take(), [0, 6, 12].map(|s| s * SEC));
    assert_eq!(clock.sleepers(), 0);
}

/// The limit of an attempt is cut to the time that remains.
#[test]
fn an_attempt_is_given_no_more_than_remains() {
    let clock = VirtualClock::new();
    let mut limits = Vec::new();
    let run = retry(async |_| pending::<Result<(), Duration>>().await, Policy::fixed(SEC).max_elapsed(4 * SEC));
    let run = run.attempt_timeout(2 * SEC, |timeout| timeout.limit()).unmarked().on_event(|event| {
        if let relent::retry::Event::Scheduled { error, .. } = event {
            limits.push(**error);
        }
    });
    let report = clock.block_on(run.clock(&clock).report());
    assert_eq!(limits, [2 * SEC]);
    assert_eq!(report.result, Err(SEC));
    assert_eq!((report.elapsed, report.stop), (4 * SEC, Some(StopReason::Deadline)));
}

/// An attempt that the deadline cut short is the last, or attempts without any time would follow each other for ever.
#[test]
fn an_attempt_cut_by_the_deadline_is_the_last() {
    let clock = VirtualClock::new();
    let policy = Policy::immediate().unbounded().max_elapsed(5 * SEC);
    let run = retry(async |_| pending::<Result<(), &str>>().await, policy).attempt_timeout(2 * SEC, |_| "timed out");
    let report = clock.block_on(run.clock(&clock).report());
    assert_eq!((report.attempts, report.elapsed, report.stop), (3, 5 * SEC, Some(StopReason::Deadline)));
}

/// An attempt's time limit counts as time that passed, with a sleep that is paused or does nothing too.
#[test]
fn a_no_op_sleep_counts_timed_out_attempts() {
    let run = retry(async |_| pending::<Result<(), &str>>().await, Policy::fixed(SEC).unbounded());
    let run = run.max_elapsed(10 * SEC).attempt_timeout(4 * SEC, |_| "timed out").clock(VirtualClock::new());
    let report = VirtualClock::new().block_on(run.sleep(|_| std::future::ready(())).report());
    assert_eq!((report.attempts, report.elapsed, report.stop), (3, 10 * SEC, Some(StopReason::Deadline)));
}

/// With `.sleep`, what the real clock says counts too where it is the larger.
#[test]
fn a_no_op_sleep_does_not_hide_the_clock() {
    let clock = VirtualClock::new();
    let op = |_| {
        clock.advance(3 * SEC);
        std::future::ready(Err::<(), _>("E"))
    };
    let run = retry(op, Policy::fixed(SEC).unbounded().max_elapsed(10 * SEC)).clock(&clock);
    let report = VirtualClock::new().block_on(run.sleep(|_| std::future::ready(())).report());
    assert_eq!((report.attempts, report.elapsed, report.stop), (4, 12 * SEC, Some(StopReason::Deadline)));
}

/// A timeout is no marker and not shown to `.when`, and in all else its error is read like any other.
#[test]
fn the_error_of_a_timeout_is_heard() {
    let clock = VirtualClock::new();
    let hang = async |_| pending::<Result<(), Box<dyn std::error::Error + Send + Sync>>>().await;
    let marked = retry(hang, Policy::fixed(SEC)).attempt_timeout(SEC, |t| NonRetryableError::new(t).into());
    assert_eq!(clock.block_on(marked.clock(&clock).report()).stop, Some(StopReason::Exhausted));
    let hint = retry(hang, Policy::fixed(SEC)).attempt_timeout(SEC, |t| RetryAfterError::new(t, 60 * SEC).into());
    assert_eq!(clock.block_on(hint.clock(&clock).report()).elapsed, (3 + 2 * 60) * SEC);
    let may_have_run = retry(hang, Policy::fixed(SEC)).attempt_timeout(SEC, Into::into).idempotent(false);
    assert_eq!(clock.block_on(may_have_run.clock(&clock).report()).stop, Some(StopReason::NotIdempotent));
    let has_not = retry(hang, Policy::fixed(SEC)).attempt_timeout(SEC, |t| NotExecuted::new(t).into());
    let report = clock.block_on(has_not.idempotent(false).clock(&clock).report());
    assert_eq!((report.attempts, report.stop), (3, Some(StopReason::Exhausted)));
}

/// A result that is ready together with the time limit counts.
#[test]
fn a_result_at_the_limit_counts() {
    let clock = VirtualClock::new();
    let op = async |_| {
        clock.sleep(SEC).await;
        Ok::<_, &str>("done")
    };
    let run = retry(op, Policy::fixed(SEC)).attempt_timeout(SEC, |_| "timed out").clock(&clock);
    assert_eq!(clock.block_on(run), Ok("done"));
}

/// A wait that ended late is still followed by its attempt, which is told that nothing remains.
#[test]
fn a_late_wake_is_followed_by_its_attempt() {
    let clock = VirtualClock::new();
    let mut remaining = Vec::new();
    let op = |attempt: relent::Attempt| {
        remaining.push(attempt.remaining());
        std::future::ready(Err::<(), _>("E"))
    };
    let mut run = pin!(retry(op, Policy::fixed(SEC).max_elapsed(2 * SEC)).clock(&clock).report());
    let mut context = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut context).is_pending());
    clock.advance(60 * SEC);
    assert!(run.as_mut().poll(&mut context).is_ready());
    assert_eq!(remaining, [Some(2 * SEC), Some(Duration::ZERO)]);
}

/// Field case 59: a run with an injected clock touches no other, and one without limits does not even read it.
#[test]
fn only_the_injected_clock_is_touched() {
    let reads = Cell::new(0);
    let clock = clock_fn(
        || {
            reads.set(reads.get() + 1);
            Duration::ZERO
        },
        |_| std::future::ready(()),
    );
    let executor = VirtualClock::new();
    executor.block_on(retry(async |_| Err::<(), _>("E"), Policy::fixed(SEC)).clock(&clock)).unwrap_err();
    assert_eq!(reads.get(), 0);
    let limited = retry(async |_| Err::<(), _>("E"), Policy::fixed(SEC).max_elapsed(SEC)).clock(&clock);
    executor.block_on(limited).unwrap_err();
    assert!(reads.get() > 0);
}

/// Field case 59: the same for all else that has a clock. On one that stands still no time passes, and what is left is
/// exact; building reads none.
#[test]
fn guards_and_other_drivers_touch_only_the_injected_clock() {
    let (now, reads, sleeps) = (Cell::new(1_000_000 * SEC), Cell::new(0), RefCell::new(Vec::new()));
    let clock = clock_fn(
        || {
            reads.set(reads.get() + 1);
            now.get()
        },
        |wait| {
            sleeps.borrow_mut().push(wait);
            now.set(now.get() + wait);
            std::future::ready(())
        },
    );
    let budget = RetryBudget::new(0.0).min_per_second(1).window(SEC).with_clock(&clock);
    let breaker = CircuitBreaker::new().failure_threshold(1).with_clock(&clock);
    let mut backoff = Backoff::new(Policy::fixed(SEC)).healthy_after(60 * SEC).clock(&clock);
    let unlimited = blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(SEC)).clock(&clock);
    assert_eq!(reads.get(), 0);

    assert_eq!(unlimited.call(), Err("E"));
    assert_eq!((reads.get(), sleeps.take()), (0, vec![SEC, SEC]));
    let limited = blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(SEC)).max_elapsed(SEC).clock(&clock);
    assert_eq!(limited.report().call().elapsed, SEC);
    assert!(reads.take() > 0);

    assert!(budget.try_retry() && !budget.try_retry());
    assert!(reads.take() > 0);
    assert!(breaker.acquire().unwrap().failure().is_some());
    assert_eq!(breaker.acquire().unwrap_err().retry_after(), 30 * SEC);
    assert!(reads.take() > 0);
    backoff.failed();
    assert_eq!(backoff.attempt().unwrap().delay(), SEC);
    assert!(reads.take() > 0);

    now.set(now.get() + 30 * SEC);
    assert!(budget.try_retry() && breaker.acquire().is_ok());
    assert_eq!(backoff.attempt().unwrap().delay(), Duration::ZERO);
    backoff.succeeded();
    now.set(now.get() + 60 * SEC);
    assert_eq!(backoff.failure_count(), 0);
}

/// Field case 61: a clock that steps back neither panics nor keeps the run from ending.
#[test]
fn a_clock_that_steps_back_does_no_harm() {
    let readings = RefCell::new([100, 70, 71, 72, 73, 74].map(Duration::from_secs).into_iter());
    let clock = clock_fn(|| readings.borrow_mut().next().unwrap_or(75 * SEC), |_| std::future::ready(()));
    let mut remaining = Vec::new();
    let op = |attempt: relent::Attempt| {
        remaining.push(attempt.remaining());
        std::future::ready(Err::<(), _>("E"))
    };
    let run = retry(op, Policy::fixed(SEC).max_elapsed(10 * SEC)).clock(&clock);
    let report = VirtualClock::new().block_on(run.report());
    assert_eq!((report.attempts, report.elapsed, report.stop), (3, Duration::ZERO, Some(StopReason::Exhausted)));
    assert!(remaining.iter().all(|left| left.is_some_and(|left| left <= 10 * SEC)), "{remaining:?}");
}

/// Field case 61: the limit then runs anew, once; it does not grow by the step.
#[test]
fn a_step_back_gives_no_more_than_the_limit_once_more() {
    let clock = Cell::new(100 * SEC);
    let stepping = clock_fn(
        || clock.get(),
        |wait| {
            clock.set(clock.get() + wait);
            std::future::ready(())
        },
    );
    let op = |attempt: relent::Attempt| {
        if attempt.number() == 2 {
            clock.set(clock.get() - 30 * SEC);
        }
        std::future::ready(Err::<(), _>("E"))
    };
    let run = retry(op, Policy::fixed(SEC).unbounded()).max_elapsed(10 * SEC).clock(&stepping);
    let report = VirtualClock::new().block_on(run.report());
    // At 100 and 101 s, then from 72 to 81 s: the failure at 71 s sees the step.
    assert_eq!((report.attempts, report.stop), (12, Some(StopReason::Deadline)));
}

/// The decision sees the nearer deadline, not only the attempt after it.
#[test]
fn no_wait_is_begun_that_a_step_back_has_made_too_long() {
    let clock = Cell::new(100 * SEC);
    let stepping = clock_fn(|| clock.get(), |_| std::future::ready(()));
    let step_back = |_| {
        clock.set(70 * SEC);
        Err::<(), _>("E")
    };
    let run = || Policy::fixed(25 * SEC).max_elapsed(10 * SEC);
    let report = VirtualClock::new().block_on(retry(async |n| step_back(n), run()).clock(&stepping).report());
    assert_eq!((report.attempts, report.stop), (1, Some(StopReason::Deadline)));
    clock.set(100 * SEC);
    let report = blocking::retry(step_back, run()).clock(&stepping).report().call();
    assert_eq!((report.attempts, report.stop), (1, Some(StopReason::Deadline)));
}

/// What the operation does before it returns its future is part of the attempt.
#[test]
fn a_time_limit_counts_the_call_of_the_operation() {
    for (limit, max_elapsed, ended) in [(2, 100, 5), (20, 10, 10), (20, 100, 20)] {
        let clock = VirtualClock::new();
        let slow = |_| {
            clock.advance(5 * SEC);
            pending::<Result<(), &str>>()
        };
        let run = retry(slow, Policy::fixed(SEC).max_attempts(1).max_elapsed(max_elapsed * SEC)).clock(&clock);
        let report = clock.block_on(run.attempt_timeout(limit * SEC, |_| "timed out").report());
        assert_eq!((report.result, report.elapsed), (Err("timed out"), ended * SEC));
    }
}

/// A limit, a wait and a clock at the far end of `Duration` saturate.
#[test]
fn huge_times_saturate() {
    let clock = clock_fn(|| Duration::MAX - SEC, |_| std::future::ready(()));
    let run = retry(async |_| Err::<(), _>("E"), [2 * SEC, SEC]).max_elapsed(Duration::MAX).clock(&clock);
    let report = VirtualClock::new().block_on(run.report());
    assert_eq!((report.attempts, report.stop), (3, Some(StopReason::Exhausted)));
}
