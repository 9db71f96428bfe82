//! Budget, breaker and the drivers together: every entry point, both ways to combine them, nested runs, drops, panics.

mod common;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::future::{Future, Ready, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{MS, SEC};
use relent::backoff::Backoff;
use relent::breaker::{CallError, CircuitBreaker, State};
use relent::budget::RetryBudget;
use relent::clock::{Clock, VirtualClock};
use relent::error::{NotExecuted, RetryAfterError};
use relent::retry::{Event, StopReason, retry_with};
use relent::schedule::schedule_fn;
use relent::{Attempt, NonRetryableError, Policy, blocking, retry};

type Failure = CallError<&'static str>;
type Outcome = Result<(), Failure>;
type Operation<'a> = dyn FnMut() -> Outcome + 'a;
type Budget<'a> = RetryBudget<&'a VirtualClock>;
type Breaker<'a> = CircuitBreaker<&'a VirtualClock>;

const FAILED: Outcome = Err(CallError::Inner("E"));

/// How a run ended, and why if it did not succeed.
type Ended = (Outcome, Option<StopReason>);
type Driver = fn(&VirtualClock, Policy, &Budget<'_>, &mut Operation<'_>) -> Ended;

/// Every public way to make a run with a budget.
const DRIVERS: [(&str, Driver); 5] = [
    ("retry", |clock, policy, budget, op| {
        let report = clock.block_on(retry(|_| ready(op()), policy).budget(budget).clock(clock).report());
        (report.result, report.stop)
    }),
    ("retry_with", |clock, policy, budget, op| {
        let (mut calls, op) = (0, RefCell::new(op));
        let call = async |calls: &mut u32, attempt: Attempt| {
            *calls += 1;
            assert_eq!(*calls, attempt.number());
            (op.borrow_mut())()
        };
        let report = clock.block_on(retry_with(&mut calls, call, policy).budget(budget).clock(clock).report());
        (report.result, report.stop)
    }),
    ("blocking::retry", |clock, policy, budget, op| {
        let wait = |wait| {
            clock.advance(wait);
            ready(())
        };
        let report = blocking::retry(|_| op(), policy).budget(budget).clock(clock).sleep(wait).report().call();
        (report.result, report.stop)
    }),
    ("Backoff::run", |clock, policy, budget, op| {
        let mut backoff = Backoff::new(policy).budget(budget).clock(clock);
        let result = clock.block_on(backoff.run(|_| ready(op())));
        (result, backoff.attempt().err().map(|exhausted| exhausted.reason()))
    }),
    ("Backoff::retry_or", |clock, policy, budget, op| {
        let mut backoff = Backoff::new(policy).budget(budget).clock(clock);
        let result = clock.block_on(async {
            while let Err(error) = op() {
                backoff.retry_or(error).await?;
            }
            backoff.succeeded();
            Ok(())
        });
        (result, backoff.attempt().err().map(|exhausted| exhausted.reason()))
    }),
];

/// A budget that runs alone pay for.
fn by_ratio(clock: &VirtualClock, ratio: f64) -> Budget<'_> {
    RetryBudget::new(ratio).min_per_second(0).with_clock(clock)
}

/// A budget of so many retries in a second, however many runs there are.
fn by_reserve(clock: &VirtualClock, retries: u32) -> Budget<'_> {
    RetryBudget::new(0.0).min_per_second(retries).window(SEC).with_clock(clock)
}

/// A breaker that opens at the `failures`-th failure in a row, for a fixed time.
fn breaker(clock: &VirtualClock, failures: u16, cooldown: Duration) -> Breaker<'_> {
    CircuitBreaker::new().named("db").failure_threshold(failures).cooldown(Policy::fixed(cooldown)).with_clock(clock)
}

fn open(breaker: &Breaker<'_>) {
    while breaker.acquire().is_ok_and(|permit| permit.failure().is_none()) {}
    assert_eq!(breaker.state(), State::Open);
}

/// A run counts once, each retry asks, and the refusal is the reason that the run ends with.
#[test]
fn a_drained_budget_ends_the_run_with_its_reason() {
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        for (ratio, calls_expected) in [(0.0, 1), (1.0, 2)] {
            let budget = by_ratio(&clock, ratio);
            let mut calls = 0;
            let ended = run(&clock, Policy::fixed(MS).max_attempts(9), &budget, &mut || {
                calls += 1;
                FAILED
            });
            assert_eq!(ended, (FAILED, Some(StopReason::Budget)), "{driver}");
            assert_eq!((calls, budget.balance()), (calls_expected, 0), "{driver}");
        }
    }
}

/// The budget is asked last: the attempt after which there is none costs nothing.
#[test]
fn a_retry_that_would_not_happen_costs_nothing() {
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        let budget = by_reserve(&clock, 9);
        let ended = run(&clock, Policy::fixed(MS), &budget, &mut || FAILED);
        assert_eq!((ended.1, budget.balance()), (Some(StopReason::Exhausted), 7), "{driver}");
        let late = Policy::fixed(2 * MS).max_elapsed(MS);
        let ended = run(&clock, late, &budget, &mut || FAILED);
        assert_eq!((ended.1, budget.balance()), (Some(StopReason::Deadline), 7), "{driver}");
    }
}

/// Whatever else ends a run is asked before the budget, and observers of retries are told after it.
#[test]
fn the_budget_is_asked_last_and_before_the_hooks() {
    let (clock, retries) = (VirtualClock::new(), Cell::new(0));
    let (full, empty) = (by_reserve(&clock, 9), by_reserve(&clock, 0));
    let fails = |_| ready(Err::<(), _>(RetryAfterError::new("busy", SEC)));
    macro_rules! stop {
        ($run:expr, $budget:expr) => {{
            let run = $run.budget($budget).on_retry(|_| retries.set(retries.get() + 1)).clock(&clock);
            clock.block_on(run.report()).stop
        }};
    }
    let marked = |_| ready(Err::<(), _>(NonRetryableError::new("gone")));
    let (wait, ended) = (Policy::fixed(MS), schedule_fn(|_| None));
    for budget in [&full, &empty] {
        assert_eq!(stop!(retry(marked, wait), budget), Some(StopReason::NotRetryable));
        assert_eq!(stop!(retry(fails, wait).when(|_| false), budget), Some(StopReason::Declined));
        assert_eq!(stop!(retry(fails, wait).idempotent(false), budget), Some(StopReason::NotIdempotent));
        assert_eq!(stop!(retry(fails, wait).max_attempts(1), budget), Some(StopReason::Exhausted));
        assert_eq!(stop!(retry(fails, &ended), budget), Some(StopReason::ScheduleEnded));
        let asked = Some(StopReason::RetryAfterTooLong(SEC));
        assert_eq!(stop!(retry(fails, wait).max_retry_after(MS), budget), asked);
        assert_eq!(stop!(retry(fails, wait).max_elapsed(MS), budget), Some(StopReason::Deadline));
        assert_eq!(stop!(retry(fails, wait).cancel_on(ready(())), budget), Some(StopReason::Cancelled));
    }
    assert_eq!((full.balance(), clock.now()), (9, Duration::ZERO));
    assert_eq!(stop!(retry(fails, wait), &empty), Some(StopReason::Budget));
    assert_eq!(retries.get(), 0, "no retry was announced");
    assert_eq!(stop!(retry(fails, &[MS, MS]).respect_retry_after(false), &full), Some(StopReason::Exhausted));
    assert_eq!((full.balance(), retries.get()), (7, 2));

    for budget in [&full, &empty] {
        let balance = budget.balance();
        let mut backoff = Backoff::new(wait).max_retry_after(MS).budget(budget).clock(&clock);
        clock.block_on(backoff.retry_or(RetryAfterError::new("busy", SEC))).unwrap_err();
        assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::RetryAfterTooLong(SEC));
        let mut backoff = Backoff::new(&ended).budget(budget).clock(&clock);
        backoff.failed();
        assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::ScheduleEnded);
        assert_eq!(budget.balance(), balance);
    }
}

#[test]
fn a_refusal_is_an_event() {
    let clock = VirtualClock::new();
    let budget = by_ratio(&clock, 1.0);
    let mut events = Vec::new();
    let run = retry(async |_| Err::<(), _>("E"), Policy::fixed(MS)).budget(&budget).clock(&clock);
    clock.block_on(run.on_event(|event| events.push(format!("{event:?}")))).unwrap_err();
    let scheduled = "Scheduled { attempt: 1, delay: 1ms, .. }";
    assert_eq!(events, [scheduled, "Declined { attempt: 2, reason: Budget, .. }"]);
}

/// Field case 103.
#[test]
fn plain_successes_refill_a_drained_budget_through_every_entry_point() {
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        let budget = by_ratio(&clock, 0.1);
        (0..10).for_each(|_| budget.record_run());
        assert!(budget.try_retry() && !budget.try_retry());
        for _ in 0..1000 {
            assert_eq!(run(&clock, Policy::fixed(MS), &budget, &mut || Ok(())).0, Ok(()));
        }
        assert_eq!(budget.balance(), 100, "{driver}");
        assert_eq!(run(&clock, Policy::fixed(MS), &budget, &mut || FAILED).1, Some(StopReason::Exhausted), "{driver}");
        assert_eq!(budget.balance(), 98, "{driver}");
    }
}

/// Field case 104.
#[test]
fn a_trickle_of_retried_runs_never_drains_a_ratio_of_one() {
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        let budget = by_ratio(&clock, 1.0);
        for number in 0..1000 {
            let mut results = [FAILED, Ok(())].into_iter();
            let ended = run(&clock, Policy::fixed(MS), &budget, &mut || results.next().unwrap());
            assert_eq!(ended, (Ok(()), None), "{driver}, run {number}");
            clock.advance(99 * MS);
        }
    }
}

/// Field case 109. A backoff is counted with its first failure, so the first of them to fail finds the fewest runs.
#[test]
fn runs_that_fail_together_share_what_all_of_them_pay_for() {
    for (ratio, retries) in [(1.0, 6), (0.5, 3)] {
        for supervised in [false, true] {
            for reverse in [false, true] {
                let clock = VirtualClock::new();
                let budget = by_ratio(&clock, ratio);
                let calls = Cell::new(0);
                let run = |index: u32| {
                    let (clock, budget, calls) = (&clock, &budget, &calls);
                    let op = async move |_| {
                        calls.set(calls.get() + 1);
                        clock.sleep(SEC).await;
                        Err::<(), _>("E")
                    };
                    async move {
                        // In this order they are registered with the clock, and so fail.
                        clock.sleep(MS * if reverse { 6 - index } else { index }).await;
                        clock.sleep(SEC.saturating_sub(clock.now())).await;
                        if supervised {
                            Backoff::new(Policy::fixed(MS)).budget(budget).clock(clock).run(op).await
                        } else {
                            retry(op, Policy::fixed(MS)).budget(budget).clock(clock).await
                        }
                    }
                };
                assert_eq!(clock.block_on_all((0..6).map(run)), [Err("E"); 6]);
                assert_eq!(calls.get(), 6 + retries, "{ratio} {supervised} {reverse}");
            }
        }
    }
}

/// Field case 112: what shares a budget says so; runs that share a policy, or a copy of one, do not.
#[test]
fn a_failing_service_spends_only_the_budget_that_its_runs_name() {
    const POLICY: Policy = Policy::fixed(MS);
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        let successes_of_b = |of_a: &Budget<'_>, of_b: &Budget<'_>| {
            let serve = |_| {
                let _ = run(&clock, POLICY, of_a, &mut || FAILED);
                let mut results = [FAILED, Ok(())].into_iter();
                run(&clock, POLICY, of_b, &mut || results.next().unwrap()).0.is_ok()
            };
            (0..100).map(serve).filter(|succeeded| *succeeded).count()
        };
        assert_eq!(successes_of_b(&by_ratio(&clock, 1.0), &by_ratio(&clock, 1.0)), 100, "{driver}");
        // Of two runs one may retry. The first time there is one run yet, so the first service is refused, and the second
        // gets what it left.
        let shared = by_ratio(&clock, 0.5);
        assert_eq!(successes_of_b(&shared, &shared), 100, "{driver}");
        let shared = by_ratio(&clock, 0.5);
        shared.record_run();
        assert_eq!(successes_of_b(&shared, &shared), 0, "{driver}");
    }
}

/// A child that crashes once a day is a run each time, though its start has long left the window.
#[test]
fn a_series_of_failures_is_one_run_whenever_its_child_was_started() {
    const DAY: Duration = Duration::from_secs(86_400);
    let clock = VirtualClock::new();
    let budget = by_ratio(&clock, 1.0);
    let mut backoff =
        Backoff::new(Policy::fixed(SEC).unbounded()).healthy_after(60 * SEC).budget(&budget).clock(&clock);
    let mut starts = 0;
    let result = clock.block_on(backoff.run(|_| {
        starts += 1;
        let uptime = if starts <= 10 { DAY } else { SEC };
        let clock = &clock;
        async move {
            clock.sleep(uptime).await;
            Err::<(), _>("crashed")
        }
    }));
    // Ten crashes after a day and one restart each, of which the last starts the child that dies after a second.
    assert_eq!((result, starts), (Err("crashed"), 11));
    assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::Budget);
    assert_eq!(budget.balance(), 0);

    backoff.reset();
    let result = clock.block_on(backoff.run(async |attempt: Attempt| Err::<(), _>(attempt.number())));
    assert_eq!(result, Err(2), "a new series is a new run, and the start of its child is none");
}

/// What flaps is one series, and counts once; what is healthy again begins anew.
#[test]
fn successes_that_do_not_last_are_no_runs() {
    let clock = VirtualClock::new();
    let budget = by_ratio(&clock, 1.0);
    let mut backoff = Backoff::new(Policy::fixed(MS).unbounded()).healthy_after(SEC).budget(&budget).clock(&clock);
    backoff.failed();
    assert_eq!(budget.balance(), 0, "one run and its retry");
    for _ in 0..9 {
        backoff.succeeded();
    }
    assert_eq!(budget.balance(), 0, "the series goes on");
    clock.advance(SEC);
    backoff.succeeded();
    assert_eq!(budget.balance(), 1, "its end lies before this success");
}

/// A budget of one's own, and one that all share: each must grant.
#[test]
fn of_two_budgets_both_must_grant() {
    let clock = VirtualClock::new();
    let (own, shared) = (by_reserve(&clock, 5), by_reserve(&clock, 1));
    let mut backoff = Backoff::new(Policy::immediate()).budget(&own).budget(&shared).clock(&clock);
    backoff.failed();
    backoff.failed();
    assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::Budget);
    assert_eq!((own.balance(), shared.balance()), (3, 0), "what the first has granted stays spent");
    clock.advance(2 * SEC);
    assert_eq!(shared.balance(), 1);
    assert!(backoff.exhausted(), "though there is budget again");
}

/// Field case 101: each attempt a call. Three calls fail and open it, and the refusal's hint is the next wait.
#[test]
fn an_open_breaker_bounds_the_next_wait_through_every_entry_point() {
    for (driver, run) in DRIVERS {
        let clock = VirtualClock::new();
        let (breaker, budget) = (breaker(&clock, 3, 10 * SEC), RetryBudget::new(0.0).with_clock(&clock));
        let mut calls = Vec::new();
        let ended = run(&clock, Policy::fixed(100 * MS).max_attempts(5), &budget, &mut || {
            let call = || {
                calls.push(clock.now());
                Err("E")
            };
            breaker.call_blocking(call)
        });
        assert_eq!(ended, (FAILED, Some(StopReason::Exhausted)), "{driver}");
        assert_eq!(calls, [0, 100, 200, 10_200].map(|ms| ms * MS), "{driver}: the fourth attempt was refused");
        assert_eq!(budget.balance(), 100 - 4, "{driver}: the retry of the refused attempt costs as any other");
    }
}

/// Field case 101: a run as one call. A refused run is not begun, so the budget does not count it.
#[test]
fn a_refused_run_costs_nothing() {
    let clock = VirtualClock::new();
    let (breaker, budget) = (breaker(&clock, 1, SEC), by_ratio(&clock, 1.0));
    let calls = Cell::new(0);
    let run = || {
        let op = |_| {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("E"))
        };
        clock.block_on(breaker.call(retry(op, Policy::immediate()).budget(&budget).clock(&clock)))
    };
    assert_eq!(run(), FAILED);
    assert_eq!((calls.get(), budget.balance()), (2, 0));
    for _ in 0..100 {
        assert!(matches!(run(), Err(CallError::Open(_))));
    }
    assert_eq!((calls.get(), budget.balance(), clock.now()), (2, 0, Duration::ZERO));
}

/// A typed error of the caller's, with a call through a breaker as one of its sources.
#[derive(Debug)]
enum LoadError {
    Call(CallError<Box<Self>>),
    Remote(NonRetryableError),
    Busy(RetryAfterError),
    Pool(NotExecuted),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("load failed")
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Call(error) => Some(error),
            Self::Remote(error) => Some(error),
            Self::Busy(error) => Some(error),
            Self::Pool(error) => Some(error),
        }
    }
}

/// The run around a call hears what the operation's error says: permanent, not yet, did not run.
#[test]
fn the_signs_of_an_error_pass_through_a_call_to_the_run_around_it() {
    let hint = 7 * SEC;
    let errors: [(fn() -> LoadError, u32, Duration, Option<StopReason>); 3] = [
        (|| LoadError::Remote(NonRetryableError::new("gone")), 1, Duration::ZERO, Some(StopReason::NotRetryable)),
        (|| LoadError::Busy(RetryAfterError::new("busy", 7 * SEC)), 1, Duration::ZERO, Some(StopReason::NotIdempotent)),
        (|| LoadError::Pool(NotExecuted::new("no connection")), 2, MS, Some(StopReason::Exhausted)),
    ];
    for (error, attempts, elapsed, stop) in errors {
        let clock = VirtualClock::new();
        let breaker = breaker(&clock, 9, SEC);
        let policy = Policy::fixed(MS).max_attempts(2);
        // The call's own error, one that wraps it, and a box.
        let plain = retry(|_| breaker.call(ready(Err::<(), _>(error()))), policy).idempotent(false).clock(&clock);
        let plain = clock.block_on(plain.report());
        assert_eq!((plain.attempts, plain.elapsed, plain.stop), (attempts, elapsed, stop));

        let call = async |_| breaker.call(ready(Err::<(), _>(Box::new(error())))).await.map_err(LoadError::Call);
        let wrapped = clock.block_on(retry(call, policy).idempotent(false).clock(&clock).report());
        assert_eq!((wrapped.attempts, wrapped.elapsed, wrapped.stop), (attempts, elapsed, stop));

        let boxed = || Err::<(), Box<dyn Error + Send + Sync>>(error().into());
        let boxed = retry(|_| breaker.call(ready(boxed())), policy).idempotent(false).clock(&clock);
        let boxed = clock.block_on(boxed.report());
        assert_eq!((boxed.attempts, boxed.elapsed, boxed.stop), (attempts, elapsed, stop));
    }

    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 9, SEC);
    let busy = || LoadError::Busy(RetryAfterError::new("busy", hint));
    let run = retry(|_| breaker.call(ready(Err::<(), _>(busy()))), Policy::fixed(MS).max_attempts(2)).clock(&clock);
    assert_eq!(clock.block_on(run.report()).elapsed, hint);
}

/// A refusal that comes out of an inner run is a hint for the outer one too, and says that nothing ran.
#[test]
fn a_refusal_passes_through_an_inner_run() {
    let clock = VirtualClock::new();
    let breaker = breaker(&clock, 1, 10 * SEC);
    open(&breaker);
    let inner = |_| retry(|_| breaker.call(ready(Ok::<_, &str>(7))), Policy::fixed(MS).max_attempts(1)).clock(&clock);
    let outer = retry(inner, Policy::fixed(MS)).idempotent(false).clock(&clock);
    let report = clock.block_on(outer.report());
    assert_eq!((report.result, report.attempts, report.elapsed), (Ok(7), 2, 10 * SEC));
}

/// What one breaker refuses is no failure of another; what could not be executed for other reasons is one.
#[test]
fn a_refusal_is_neutral_to_the_breaker_around_it() {
    let clock = VirtualClock::new();
    let inner = breaker(&clock, 1, 10 * SEC);
    open(&inner);
    let refused = || inner.call(ready(Ok::<(), &str>(())));
    let typed = async || {
        inner.call(ready(Err::<(), _>(Box::new(LoadError::Pool(NotExecuted::new("")))))).await.map_err(LoadError::Call)
    };
    let outer = breaker(&clock, 1, SEC);
    clock.block_on(async {
        outer.call(refused()).await.unwrap_err();
        outer.call(typed()).await.unwrap_err();
        outer.call(async { typed().await.map_err(Box::<dyn Error + Send + Sync>::from) }).await.unwrap_err();
        outer.call(async { typed().await.map_err(std::io::Error::other) }).await.unwrap_err();
        outer.call(retry(|_| refused(), Policy::immediate()).max_retry_after(SEC).clock(&clock)).await.unwrap_err();
        outer.call(outer.call(refused())).await.unwrap_err();
    });
    outer.call_blocking(|| inner.call_blocking(|| Ok::<(), &str>(()))).unwrap_err();
    assert_eq!(outer.state(), State::Closed);

    outer.call_blocking(|| Err::<(), _>(LoadError::Pool(NotExecuted::new("connection refused")))).unwrap_err();
    assert_eq!(outer.state(), State::Open);
}

/// A probe that another breaker refuses says nothing either: its slot is free at once.
#[test]
fn a_refused_probe_frees_its_slot() {
    let clock = VirtualClock::new();
    let (inner, outer) = (breaker(&clock, 1, 10 * SEC), breaker(&clock, 1, SEC));
    open(&inner);
    open(&outer);
    clock.advance(SEC);
    clock.block_on(outer.call(inner.call(ready(Ok::<(), &str>(()))))).unwrap_err();
    assert_eq!(outer.state(), State::HalfOpen);
    assert!(outer.acquire().is_ok());
}

/// Field case 130: three layers of three attempts make 27 calls; one budget for all of them allows its retries and the
/// first call.
#[test]
fn nested_runs_multiply_unless_they_share_a_budget() {
    for retries in [0, 1, 5, 25, 26, 100] {
        let clock = VirtualClock::new();
        let budget = by_reserve(&clock, retries);
        let calls = Cell::new(0);
        let call = |_| {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("E"))
        };
        let low = |_| retry(call, Policy::immediate()).budget(&budget).clock(&clock);
        let middle = |_| retry(low, Policy::immediate()).budget(&budget).clock(&clock);
        let top = retry(middle, Policy::immediate()).budget(&budget).clock(&clock);
        assert_eq!(clock.block_on(top), Err("E"));
        assert_eq!(calls.get(), (retries + 1).min(27), "{retries} retries");
        assert_eq!(budget.balance(), retries.saturating_sub(26));
    }

    let clock = VirtualClock::new();
    let budget = by_ratio(&clock, 0.5);
    let (runs, calls) = (Cell::new(0), Cell::new(0));
    let count = |attempt: Attempt| runs.set(runs.get() + u32::from(attempt.is_first()));
    let call = |attempt| {
        count(attempt);
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("E"))
    };
    let low = |attempt| {
        count(attempt);
        retry(call, Policy::immediate()).budget(&budget).clock(&clock)
    };
    clock.block_on(retry(low, Policy::immediate()).budget(&budget).clock(&clock)).unwrap_err();
    assert_eq!((runs.get(), calls.get()), (2, 2), "two runs, one in each layer, pay for a retry");
    assert_eq!(budget.balance(), 0);
}

/// Makes a run, through a half-open breaker, that panics somewhere.
type Panicking = fn(&VirtualClock, &Breaker<'_>, &Budget<'_>);

const PANICKING: [(&str, u32, Panicking); 8] = [
    ("the operation of a run as one call", 0, |clock, breaker, budget| {
        let run = retry(|_| bug(), Policy::fixed(MS)).budget(budget).clock(clock);
        let _ = clock.block_on(breaker.call(run));
    }),
    ("an attempt as a call", 0, |clock, breaker, budget| {
        let run = retry(async |_| breaker.call(async { bug().await }).await, Policy::fixed(MS));
        let _ = clock.block_on(run.budget(budget).clock(clock));
    }),
    ("a predicate", 0, |clock, breaker, budget| {
        let run = retry(|_| ready(Err::<(), _>("E")), Policy::fixed(MS)).when(|_| panic!("a bug"));
        let _ = clock.block_on(breaker.call(run.budget(budget).clock(clock)));
    }),
    ("an observer of retries", 1, |clock, breaker, budget| {
        let run = retry(|_| ready(Err::<(), _>("E")), Policy::fixed(MS)).on_retry(|_| panic!("a bug"));
        let _ = clock.block_on(breaker.call(run.budget(budget).clock(clock)));
    }),
    ("an observer of the end", 2, |clock, breaker, budget| {
        let run = retry(|_| ready(Err::<(), _>("E")), Policy::fixed(MS)).budget(budget).clock(clock);
        let run = run.on_event(|event| assert!(matches!(event, Event::Scheduled { .. })));
        let _ = clock.block_on(breaker.call(run));
    }),
    ("a blocking operation", 1, |clock, breaker, budget| {
        let op = |attempt: Attempt| if attempt.is_first() { Err::<(), _>("E") } else { panic!("a bug") };
        let run = blocking::retry(op, Policy::immediate()).budget(budget).clock(clock);
        let _ = breaker.call_blocking(|| run.call());
    }),
    ("a supervised operation", 0, |clock, breaker, budget| {
        let mut backoff = Backoff::new(Policy::fixed(MS)).budget(budget).clock(clock);
        let _ = clock.block_on(breaker.call(backoff.run(|_| bug())));
    }),
    ("a watcher of a backoff", 1, |clock, breaker, budget| {
        let backoff = Backoff::new(Policy::fixed(MS)).budget(budget).clock(clock);
        let mut backoff = backoff.on_delay_change(|_| panic!("a bug"));
        let _ = clock.block_on(breaker.call(backoff.run(async |_| Err::<(), _>("E"))));
    }),
];

fn bug() -> Ready<Result<(), &'static str>> {
    panic!("a bug")
}

/// Field case 38: no slot stays taken, and just the tokens are gone that were granted.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panic_leaves_no_slot_taken_and_no_token_twice() {
    for (what, granted, run) in PANICKING {
        let clock = VirtualClock::new();
        let budget = by_reserve(&clock, 100);
        let breaker = breaker(&clock, 1, SEC);
        open(&breaker);
        clock.advance(SEC);
        assert!(catch_unwind(AssertUnwindSafe(|| run(&clock, &breaker, &budget))).is_err(), "{what}");
        assert_eq!(budget.balance(), 100 - granted, "{what}");
        assert_eq!(breaker.state(), State::HalfOpen, "{what}");
        assert!(breaker.acquire().is_ok(), "{what}");
    }
}

/// A run whose first poll panicked is over: polled again, it neither counts once more nor makes an attempt.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panic_at_the_first_poll_ends_the_run() {
    let stops: [fn() -> bool; 2] = [|| panic!("a bug in the signal"), || false];
    for stop in stops {
        let clock = VirtualClock::new();
        let budget = by_ratio(&clock, 1.0);
        let calls = Cell::new(0);
        let op = |_| {
            calls.set(calls.get() + 1);
            bug()
        };
        let signal = poll_fn(|_| if stop() { Poll::Ready(()) } else { Poll::Pending });
        let mut run = Box::pin(retry(op, Policy::fixed(MS)).budget(&budget).cancel_on(signal).clock(&clock));
        let mut poll = || {
            let mut context = Context::from_waker(Waker::noop());
            catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)))
        };
        assert!(poll().is_err());
        let made = calls.get();
        for _ in 0..3 {
            let message = *poll().unwrap_err().downcast::<&str>().unwrap();
            assert_eq!(message, "a retry was polled after it had ended");
        }
        assert_eq!((calls.get(), budget.balance()), (made, 1));
    }
}

/// Polls `run` at most so often, a millisecond apart, and drops it; whether it has ended.
fn drop_after(polls: usize, clock: &VirtualClock, run: impl Future) -> bool {
    let mut run = Box::pin(run);
    (0..polls).any(|_| {
        let ended = run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        clock.advance(MS);
        ended
    })
}

/// A run with four failures, dropped after each of its polls: no slot is held, a retry that was granted stays spent, and
/// the run counts from its first poll on.
#[test]
fn a_dropped_run_holds_no_slot_and_only_what_it_was_granted() {
    // Where each attempt is a call, each failure but the last is followed by a refusal.
    for (run_as_one_call, retries) in [(true, 4), (false, 8)] {
        for polls in 0.. {
            let clock = VirtualClock::new();
            let budget = RetryBudget::new(1.0).min_per_second(100).window(SEC).with_clock(&clock);
            let breaker = breaker(&clock, 1, 5 * MS);
            open(&breaker);
            clock.advance(5 * MS);
            let (calls, granted) = (Cell::new(0), Cell::new(0));
            let op = || async {
                clock.sleep(2 * MS).await;
                if calls.replace(calls.get() + 1) < 4 { Err("E") } else { Ok(()) }
            };
            let grant = || granted.set(granted.get() + 1);
            let policy = Policy::fixed(3 * MS).unbounded();
            let ended = if run_as_one_call {
                let run = retry(|_| op(), policy).budget(&budget).on_retry(|_| grant());
                drop_after(polls, &clock, breaker.call(run.clock(&clock)))
            } else {
                let run = retry(|_| breaker.call(op()), policy).budget(&budget).on_retry(|_| grant());
                drop_after(polls, &clock, run.clock(&clock))
            };
            assert_eq!(budget.balance(), 100 + u32::from(polls > 0) - granted.get(), "after {polls} polls");
            assert_eq!(clock.sleepers(), 0, "after {polls} polls");
            match breaker.state() {
                State::Open => clock.advance(5 * MS),
                state => assert_eq!(state == State::Closed, ended, "after {polls} polls"),
            }
            assert!(breaker.acquire().is_ok(), "after {polls} polls");
            if ended {
                assert_eq!((calls.get(), granted.get()), (5, retries));
                assert!(polls > 10, "{polls}");
                break;
            }
        }
    }
}
