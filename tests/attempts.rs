//! How many attempts a run makes, and what its observers see of them.

#![allow(clippy::unchecked_time_subtraction, reason = "a panic fails the test, as it should")]

mod common;

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use common::{MS, SEC, Script, always_fails};
use relent::clock::{Clock, InstantClock, VirtualClock};
use relent::error::RetryAfterError;
use relent::retry::{Event, StopReason};
use relent::rng::{FixedRng, SeededRng, rng_fn};
use relent::schedule::schedule_fn;
use relent::{NonRetryableError, Policy, retry};

/// Field case 14: seen through the driver, the first wait is the base and no wait exceeds the cap.
#[test]
fn the_first_wait_is_the_base() {
    for seed in 1..=50 {
        let mut waits = Vec::new();
        let script = always_fails();
        let policy = Policy::exponential(SEC).jitter(relent::Jitter::Proportional(0.2)).max_attempts(12);
        let run = retry(|_| script.call(), policy).clock(&script.clock).rng(SeededRng::new(seed));
        script.clock.block_on(run.on_retry(|r| waits.push(r.delay))).unwrap_err();
        assert!((800 * MS..=1200 * MS).contains(&waits[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= 30 * SEC), "{waits:?}");
        assert_eq!(waits.len(), 11);
    }
}

/// Field case 17: an unlimited schedule is never written out beforehand.
#[test]
fn an_unbounded_run_costs_only_the_attempts_it_makes() {
    for policy in [Policy::fixed(MS).unbounded(), Policy::fixed(MS).max_attempts(u32::MAX)] {
        let script = Script::new([Err("E"), Err("E"), Ok(7)]);
        let run = retry(|_| script.call(), policy).clock(&script.clock);
        assert_eq!(script.clock.block_on(run), Ok(7));
        assert_eq!(script.calls(), [Duration::ZERO, MS, 2 * MS]);
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Field case 20: no wait and no limit is a legal configuration; the run yields, so others get their turn, and asks to
/// be polled again.
#[test]
fn a_run_without_waits_yields() {
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::immediate().unbounded()).clock(&script.clock);
    let mut run = pin!(run);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    for turn in 1..=3 {
        assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(script.count(), 32 * turn);
        assert_eq!(woken.0.load(Ordering::Relaxed) as usize, turn);
    }
}

/// Field case 29: one draw and one wait for each failure, however often the run is polled meanwhile.
#[test]
fn polling_a_waiting_run_draws_nothing() {
    let draws = Cell::new(0);
    let counting = rng_fn(|| {
        draws.set(draws.get() + 1);
        0.5
    });
    let script = always_fails();
    let policy = Policy::exponential(SEC).max_attempts(2);
    let run = retry(|_| script.call(), policy).clock(&script.clock).rng(counting);
    let mut run = pin!(run);
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..50 {
        assert!(run.as_mut().poll(&mut context).is_pending(), "{step}");
        script.clock.advance(10 * MS);
    }
    script.clock.advance(250 * MS);
    assert!(run.as_mut().poll(&mut context).is_ready());
    assert_eq!(script.calls(), [Duration::ZERO, 750 * MS]);
    assert_eq!(draws.get(), 1);
}

/// Field cases 31 and 32: the limit counts attempts, the first included, and nothing else.
#[test]
fn the_limit_counts_attempts() {
    for (max_attempts, calls) in [(1, 1), (2, 2), (4, 4)] {
        let script = always_fails();
        let run = retry(|_| script.call(), Policy::fixed(MS).max_attempts(max_attempts)).clock(&script.clock);
        let report = script.clock.block_on(run.report());
        assert_eq!(script.count(), calls);
        assert_eq!(report.attempts, max_attempts);
        assert_eq!(report.elapsed, MS * (max_attempts - 1));
        assert_eq!(report.stop, Some(StopReason::Exhausted));
    }
}

/// Field case 34: the hook is called for retries that happen, not for those that would have been allowed.
#[test]
fn the_hook_sees_only_retries_that_happen() {
    for (max_attempts, hooks) in [(1, 0), (3, 2)] {
        let script = always_fails();
        let mut seen = 0;
        let run = retry(|_| script.call(), Policy::fixed(MS).max_attempts(max_attempts)).clock(&script.clock);
        script.clock.block_on(run.on_retry(|_| seen += 1)).unwrap_err();
        assert_eq!(seen, hooks);
    }
}

/// Field case 35: a limit of its own for one kind of error is known before the wait, not after it.
#[test]
fn a_limit_for_one_kind_of_error_costs_no_wait() {
    let script = Script::new([Err::<(), _>("X")]);
    let mut failures_with_x = 0;
    let run = retry(|_| script.call(), Policy::fixed(2 * SEC)).clock(&script.clock).when(|error| {
        failures_with_x += u32::from(*error == "X");
        failures_with_x < 2
    });
    let report = script.clock.block_on(run.report());
    assert_eq!(script.calls(), [Duration::ZERO, 2 * SEC]);
    assert_eq!((report.elapsed, report.stop), (2 * SEC, Some(StopReason::Declined)));
}

/// Field case 37: every wait is waited.
#[test]
fn a_long_fixed_wait_is_waited_each_time() {
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::fixed(5000 * SEC).max_attempts(30)).clock(&script.clock);
    script.clock.block_on(run).unwrap_err();
    let expected: Vec<_> = (0..30).map(|n| 5000 * SEC * n).collect();
    assert_eq!(script.calls(), expected);
}

/// Field case 38: a hook that panics unwinds through the run; the run is over and starts nothing more.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_hook_ends_the_run() {
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::fixed(MS)).clock(&script.clock).on_retry(|_| panic!("hook"));
    let mut run = Box::pin(run);
    let mut context = Context::from_waker(Waker::noop());
    let first = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
    assert!(first.is_err());
    let second = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
    assert_eq!(second.unwrap_err().downcast_ref::<&str>(), Some(&"a retry was polled after it had ended"));
    assert_eq!(script.count(), 1);
    assert_eq!(script.clock.sleepers(), 0);
}

/// An operation that panics when it is called again ends the run too; the wait before it is not polled once more.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_operation_ends_the_run() {
    let clock = VirtualClock::new();
    let op = |attempt: relent::Attempt| {
        assert!(attempt.is_first(), "operation");
        std::future::ready(Err::<(), _>("E"))
    };
    let mut run = Box::pin(retry(op, Policy::fixed(MS)).clock(&clock));
    let mut context = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut context).is_pending());
    clock.advance(MS);
    assert!(catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context))).is_err());
    let again = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
    assert_eq!(again.unwrap_err().downcast_ref::<&str>(), Some(&"a retry was polled after it had ended"));
    assert_eq!(clock.sleepers(), 0);
}

#[derive(Clone, Debug, PartialEq)]
struct Permanent;

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such user")
    }
}

impl Error for Permanent {}

/// Field case 40: permanent for the inner run is permanent for the outer one, unless the marker is taken off between.
#[test]
fn a_marker_outlives_the_inner_run() {
    let clock = VirtualClock::new();
    let calls = Cell::new(0);
    let op = || async {
        calls.set(calls.get() + 1);
        if calls.get() == 1 { Err(NonRetryableError::new(Permanent)) } else { Ok("ok") }
    };
    let policy = Policy::fixed(MS);

    let outer = retry(|_| retry(|_| op(), policy).clock(&clock), policy).clock(&clock);
    assert!(clock.block_on(outer).is_err());
    assert_eq!(calls.get(), 1);

    calls.set(0);
    let inner = async |_| retry(|_| op(), policy).clock(&clock).await.map_err(NonRetryableError::into_inner);
    assert_eq!(clock.block_on(retry(inner, policy).clock(&clock)).unwrap(), "ok");
    assert_eq!(calls.get(), 2);
}

/// Field case 41: the caller's own error comes back, whichever way the run ends.
#[test]
fn every_exit_gives_the_same_error_type() {
    let clock = VirtualClock::new();
    for max_attempts in [1, 3] {
        let run = retry(async |_| Err::<(), _>(NonRetryableError::new(Permanent)), Policy::fixed(MS));
        let report = clock.block_on(run.max_attempts(max_attempts).clock(&clock).report());
        assert_eq!(report.stop, Some(StopReason::NotRetryable));
        assert_eq!(report.result.unwrap_err().get_ref().downcast_ref(), Some(&Permanent));
    }
}

/// Field case 43: when the attempts run out, the error still says what failed and what the server asked.
#[test]
fn the_last_error_keeps_cause_and_hint() {
    let clock = VirtualClock::new();
    let run = retry(async |_| Err::<(), _>(RetryAfterError::new(Permanent, SEC)), Policy::immediate()).clock(&clock);
    let report = clock.block_on(run.report());
    let error = report.result.unwrap_err();
    assert_eq!((report.attempts, report.elapsed), (3, 2 * SEC));
    assert_eq!(error.retry_after(), SEC);
    assert_eq!(error.to_string(), "no such user");
}

/// Field case 44: the last error is returned, and the earlier ones can be collected.
#[test]
fn earlier_errors_can_be_collected() {
    let script = Script::new([Err::<(), _>("429"), Err("reset")]);
    let mut earlier = Vec::new();
    let run = retry(|_| script.call(), Policy::fixed(MS).max_attempts(2)).clock(&script.clock);
    let run = run.retry_after(|e| (*e == "429").then_some(7 * SEC)).on_event(|event| {
        if let Event::Scheduled { error, delay, .. } = event {
            earlier.push((**error, *delay));
        }
    });
    assert_eq!(script.clock.block_on(run), Err("reset"));
    assert_eq!(earlier, [("429", 7 * SEC)]);
}

/// Field case 46: asking for another attempt explicitly obeys the same limits.
#[test]
fn an_eager_predicate_obeys_the_limits() {
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::fixed(SEC).unbounded()).when(|_| true).max_elapsed(10 * SEC);
    let report = script.clock.block_on(run.clock(&script.clock).report());
    assert_eq!((report.attempts, report.elapsed), (11, 10 * SEC));
    assert_eq!(report.stop, Some(StopReason::Deadline));
}

/// Field case 47: nothing leaks from one run into the next that shares its policy.
#[test]
fn runs_that_share_a_policy_share_nothing_else() {
    static POLICY: Policy = Policy::fixed(MS);
    let a = always_fails();
    a.clock.block_on(retry(|_| a.call(), &POLICY).clock(&a.clock)).unwrap_err();
    assert_eq!(a.count(), 3);
    let b = Script::new([Err("E"), Ok(())]);
    b.clock.block_on(retry(|_| b.call(), &POLICY).clock(&b.clock)).unwrap();
    assert_eq!(b.count(), 2);
}

/// Field case 49: two operations side by side count their attempts apart.
#[test]
fn runs_side_by_side_count_apart() {
    let clock = VirtualClock::new();
    let calls = Cell::new(0);
    let run = |wait: Duration| {
        let (calls, clock) = (&calls, &clock);
        let op = async move |_| {
            calls.set(calls.get() + 1);
            Err::<(), _>("E")
        };
        retry(op, Policy::fixed(wait)).clock(clock)
    };
    assert_eq!(clock.block_on_all([run(MS), run(2 * MS)]), [Err("E"), Err("E")]);
    assert_eq!(calls.get(), 6);
}

/// Field case 67: each attempt has a future of its own.
#[test]
fn each_attempt_has_a_fresh_future() {
    let made = Cell::new(0);
    let clock = VirtualClock::new();
    let op = |_| {
        made.set(made.get() + 1);
        let number = made.get();
        async move { if number == 1 { Err("E") } else { Ok(number) } }
    };
    assert_eq!(clock.block_on(retry(op, Policy::fixed(MS)).clock(&clock)), Ok(2));
    assert_eq!(made.get(), 2);
}

/// The closure for an attempt is called after the wait before it, so what it reads is fresh.
#[test]
fn the_closure_is_called_after_the_wait() {
    let clock = VirtualClock::new();
    let mut called = Vec::new();
    let op = |attempt: relent::Attempt| {
        called.push((attempt.number(), attempt.previous_delay(), clock.now()));
        std::future::ready(Err::<(), _>("E"))
    };
    clock.block_on(retry(op, Policy::linear(SEC)).clock(&clock)).unwrap_err();
    assert_eq!(called, [(1, Duration::ZERO, Duration::ZERO), (2, SEC, SEC), (3, 2 * SEC, 3 * SEC)]);
}

/// What an attempt is told of itself, for every kind of limit.
#[test]
fn an_attempt_knows_its_place() {
    let clock = VirtualClock::new();
    let mut seen = Vec::new();
    let op = |a: relent::Attempt| {
        seen.push((a.number(), a.max_attempts(), a.is_first(), a.is_final(), a.remaining()));
        std::future::ready(Err::<(), _>("E"))
    };
    clock.block_on(retry(op, [SEC, SEC]).max_attempts(9).max_elapsed(5 * SEC).clock(&clock)).unwrap_err();
    let left = |seconds| Some(seconds * SEC);
    assert_eq!(seen, [(1, 3, true, false, left(5)), (2, 3, false, false, left(4)), (3, 3, false, true, left(3))]);
}

/// A list's end is exhaustion; a closure's end is the schedule's; `Duration::MAX` is never.
#[test]
fn each_kind_of_end_has_its_reason() {
    let clock = VirtualClock::new();
    let list = retry(async |_| Err::<(), _>("E"), [MS, MS]).clock(&clock).report();
    let list = clock.block_on(list);
    assert_eq!((list.attempts, list.stop), (3, Some(StopReason::Exhausted)));

    let twice = schedule_fn(|failures| (failures <= 2).then_some(MS));
    let closure = clock.block_on(retry(async |_| Err::<(), _>("E"), twice).clock(&clock).report());
    assert_eq!((closure.attempts, closure.stop), (3, Some(StopReason::ScheduleEnded)));

    let never = clock.block_on(retry(async |_| Err::<(), _>("E"), [MS, Duration::MAX]).clock(&clock).report());
    assert_eq!((never.attempts, never.stop), (2, Some(StopReason::ScheduleEnded)));
    let longest = Policy::fixed(Duration::MAX);
    let never = clock.block_on(retry(async |_| Err::<(), _>("E"), longest).clock(&clock).report());
    assert_eq!((never.attempts, never.stop), (1, Some(StopReason::ScheduleEnded)));
}

/// The events of each ending; a run that was allowed one attempt says nothing of its failure.
#[test]
fn every_ending_has_its_event() {
    fn events(results: &[Result<(), &'static str>], max_attempts: u32) -> Vec<String> {
        let script = Script::new(results);
        let mut seen = Vec::new();
        let run = retry(|_| script.call(), Policy::fixed(MS).max_attempts(max_attempts)).clock(&script.clock);
        let run = run.when(|e| *e != "P").on_event(|event| seen.push(format!("{event:?}")));
        let _ = script.clock.block_on(run);
        seen
    }
    let scheduled = "Scheduled { attempt: 1, delay: 1ms, .. }";
    assert_eq!(events(&[Ok(())], 3), ["Succeeded { attempts: 1 }"]);
    assert_eq!(events(&[Err("E"), Ok(())], 3), [scheduled, "Succeeded { attempts: 2 }"]);
    assert_eq!(events(&[Err("E")], 2), [scheduled, "Exhausted { attempts: 2, .. }"]);
    assert_eq!(events(&[Err("E")], 1), [""; 0]);
    assert_eq!(events(&[Err("E"), Err("P")], 3), [scheduled, "Declined { attempt: 2, reason: Declined, .. }"]);
}

/// `Debug` of runs, reports and events shows no text of the error, which may hold secrets.
#[test]
fn debug_prints_no_error_text() {
    let script = Script::new([Err::<(), _>("secret")]);
    let mut seen = String::new();
    let run = retry(|_| script.call(), Policy::fixed(MS)).clock(&script.clock);
    let run = run.on_retry(|r| seen = format!("{r:?}"));
    let run = run.report();
    let before = format!("{run:?}");
    let report = script.clock.block_on(run);
    let text = format!("{before}{seen}{report:?}");
    assert!(text.contains("Exhausted") && !text.contains("secret"), "{text}");
}

/// With every draw at its edge, or beyond it, the waits stay within the policy's bounds.
#[test]
fn a_faulty_random_source_bends_no_wait() {
    for draw in [0.0, 0.5, 1.0, -3.0, 7.0, f64::NAN, f64::INFINITY] {
        let script = always_fails();
        let policy = Policy::exponential(100 * MS).max_attempts(5);
        let run = retry(|_| script.call(), policy).clock(&script.clock).rng(FixedRng::new(draw));
        script.clock.block_on(run).unwrap_err();
        let calls = script.calls();
        for (failures, pair) in (1..).zip(calls.windows(2)) {
            let (low, high) = policy.bounds_after(failures);
            assert!((low..=high).contains(&(pair[1] - pair[0])), "draw {draw}: {calls:?}");
        }
    }
}

/// A wait of 2^64 - 1 ms or more is none; the next shorter one is waited.
#[test]
fn the_longest_wait_is_a_nanosecond_short_of_never() {
    let nano = Duration::from_nanos(1);
    for (wait, attempts) in [
        (Policy::MAX_DELAY - SEC, 2),
        (Policy::MAX_DELAY - nano, 2),
        (Policy::MAX_DELAY, 1),
        (Policy::MAX_DELAY + nano, 1),
        (Policy::MAX_DELAY + SEC, 1),
    ] {
        let clock = InstantClock::new();
        let report = at_once(retry(async |_| Err::<(), _>("E"), [wait]).clock(&clock).report());
        let stop = if attempts == 1 { StopReason::ScheduleEnded } else { StopReason::Exhausted };
        assert_eq!((report.attempts, report.stop), (attempts, Some(stop)), "{wait:?}");
    }
}

/// Polls once: nothing here waits.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    let std::task::Poll::Ready(output) = pin!(future).poll(&mut cx) else { panic!("it waits") };
    output
}

#[test]
fn what_a_run_and_a_retry_show_of_themselves() {
    let mut retrying = String::new();
    let run = retry(async |_| Err::<(), _>("E"), [SEC]).sleep(|_| std::future::ready(()));
    let mut run = pin!(run.on_retry(|r| retrying = format!("{r:?}")));
    assert_eq!(format!("{run:?}"), r#"Retry { failures: 0, state: "new", .. }"#);
    at_once(run.as_mut()).unwrap_err();
    assert_eq!(format!("{run:?}"), r#"Retry { failures: 2, state: "finished", .. }"#);
    assert_eq!(retrying, "Retrying { attempt: 1, max_attempts: 2, delay: 1s, .. }");

    let reported = retry(async |_| Err::<(), _>("E"), [SEC]).unmarked().report();
    assert!(format!("{reported:?}").starts_with("Reported"), "{reported:?}");
    assert_eq!(relent::retry::AttemptTimeout::new(SEC).to_string(), "the attempt took longer than 1s");
}

#[test]
fn a_reason_is_named_like_its_variant() {
    let reasons = [
        StopReason::NotRetryable,
        StopReason::Declined,
        StopReason::NotIdempotent,
        StopReason::Exhausted,
        StopReason::ScheduleEnded,
        StopReason::RetryAfterTooLong(SEC),
        StopReason::Deadline,
        StopReason::Cancelled,
        StopReason::Budget,
    ];
    for reason in reasons {
        let words = reason.name().split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        assert_eq!(format!("{reason:?}").split('(').next(), Some(&*words.collect::<String>()));
    }
}
