//! The loop form, the waits that a backoff hands out, and what is left of them: nothing.

mod common;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::{Future, ready};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use common::{MS, SEC};
use proptest::prelude::*;
use relent::backoff::{Backoff, Wait};
use relent::clock::{Clock, InstantClock, SystemSleep, VirtualClock, clock_fn};
use relent::error::{CircuitOpen, RetryAfterError};
use relent::levels::Levels;
use relent::retry::StopReason;
use relent::{Jitter, NonRetryableError, Policy, retry};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const DOUBLING: Policy = Policy::exponential(SEC).jitter(Jitter::None).unbounded();

/// A query that fails a few times, on a connection that needs `&mut`.
struct Connection {
    failures: u32,
    queries: u32,
}

impl Connection {
    async fn query(&mut self, transaction: &mut String) -> io::Result<u32> {
        self.queries += 1;
        transaction.push('q');
        tokio::task::yield_now().await;
        if self.queries <= self.failures { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(42) }
    }
}

async fn query_in_a_loop(connection: &mut Connection, clock: &VirtualClock) -> Result<u32, Box<dyn Error>> {
    let mut transaction = String::new();
    let mut backoff = Backoff::new(Policy::fixed(SEC)).clock(clock);
    let row = loop {
        match connection.query(&mut transaction).await {
            Ok(row) => break row,
            Err(e) => backoff.retry_or(e).await?,
        }
    };
    assert_eq!(transaction.len(), 3);
    Ok(row)
}

#[test]
fn the_loop_form_waits_or_hands_the_error_back() {
    let clock = VirtualClock::new();
    let mut connection = Connection { failures: 2, queries: 0 };
    assert_eq!(clock.block_on(query_in_a_loop(&mut connection, &clock)).unwrap(), 42);
    assert_eq!((connection.queries, clock.now()), (3, 2 * SEC));

    let mut connection = Connection { failures: 3, queries: 0 };
    let error = clock.block_on(query_in_a_loop(&mut connection, &clock)).unwrap_err();
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!((connection.queries, clock.now()), (3, 4 * SEC));
}

/// What one failure does to a backoff that waits a second: the wait, or why there is none.
fn verdict<E: relent::error::AsError<K>, K>(error: E) -> Result<Duration, StopReason> {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(Policy::fixed(SEC)).clock(&clock);
    match clock.block_on(backoff.retry_or(error)) {
        Ok(()) => Ok(clock.now()),
        Err(_) => Err(backoff.attempt().unwrap_err().reason()),
    }
}

/// Markers and hints are heard wherever they stand in the chain, in every kind of error.
#[test]
fn markers_and_hints_are_heard() {
    assert_eq!(verdict("plain"), Ok(SEC));
    assert_eq!(verdict(io::Error::other("typed")), Ok(SEC));
    assert_eq!(verdict(NonRetryableError::new("bad")), Err(StopReason::NotRetryable));
    assert_eq!(verdict(io::Error::other(NonRetryableError::new("bad"))), Err(StopReason::NotRetryable));
    assert_eq!(verdict(Box::<dyn Error>::from(NonRetryableError::new("bad"))), Err(StopReason::NotRetryable));
    assert_eq!(verdict(RetryAfterError::new("busy", 7 * SEC)), Ok(7 * SEC));
    assert_eq!(verdict(RetryAfterError::new("busy", MS)), Ok(SEC));
    assert_eq!(verdict(CircuitOpen::new("payments", 3 * SEC)), Ok(3 * SEC));
    let hour = 60 * MINUTE;
    assert_eq!(verdict(RetryAfterError::new("busy", hour)), Err(StopReason::RetryAfterTooLong(hour)));
}

/// The ceiling on hints can be set, clamped to, or lifted with the hints.
#[test]
fn hints_have_a_ceiling() {
    let clock = VirtualClock::new();
    let asked = || RetryAfterError::new("busy", 60 * MINUTE);
    let backoff = || Backoff::new(Policy::fixed(SEC)).clock(&clock);
    let delay_of = |mut backoff: Backoff<_, _>| {
        clock.block_on(backoff.retry_or(asked())).ok();
        (backoff.delay(), backoff.exhausted())
    };
    assert_eq!(delay_of(backoff().max_retry_after(60 * MINUTE)), (60 * MINUTE, false));
    assert_eq!(delay_of(backoff().max_retry_after(59 * MINUTE)), (Duration::ZERO, true));
    assert_eq!(delay_of(backoff().clamp_retry_after(MINUTE)), (MINUTE, false));
    assert_eq!(delay_of(backoff().respect_retry_after(false)), (SEC, false));
    assert_eq!(delay_of(backoff().max_retry_after(DAY).respect_retry_after(true)), (Duration::ZERO, true));
}

/// A permanent error ends the series though attempts are left; nothing is waited for it.
#[test]
fn a_permanent_error_gives_up() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(Policy::fixed(SEC)).clock(&clock);
    clock.block_on(async {
        backoff.retry_or("busy").await.unwrap();
        backoff.retry_or(NonRetryableError::new("no such table")).await.unwrap_err();
        backoff.retry_or("busy").await.unwrap_err();
    });
    assert_eq!(clock.now(), SEC);
    assert_eq!(backoff.attempt().unwrap_err().reason(), StopReason::NotRetryable);
    assert_eq!(backoff.failure_count(), 2);
}

/// Any error can be handed over unmarked: it is not searched, and comes back as it went in.
#[test]
fn unmarked_errors_are_taken_as_they_are() {
    #[derive(Debug, PartialEq)]
    struct Borrowing<'a>(&'a str);

    let clock = VirtualClock::new();
    let text = String::from("foreign");
    let mut backoff = Backoff::new(Policy::fixed(SEC).max_attempts(2)).unmarked().clock(&clock);
    assert_eq!(clock.block_on(backoff.retry_or(Borrowing(&text))), Ok(()));
    assert_eq!(clock.block_on(backoff.retry_or(Borrowing(&text))), Err(Borrowing("foreign")));

    backoff.reset();
    assert!(clock.block_on(backoff.retry_or(NonRetryableError::new("marked"))).is_ok());
}

/// Outcomes reported while a wait is pending change the next one, not this one.
#[test]
fn a_wait_is_owned() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new(DOUBLING).clock(&clock);
    backoff.failed();
    let mut first = pin!(backoff.attempt().unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    backoff.failed();
    let second = backoff.attempt().unwrap();
    backoff.succeeded();
    drop(backoff);
    clock.advance(SEC);
    assert!(first.poll(&mut context).is_ready());
    clock.block_on(second);
    assert_eq!(clock.now(), 2 * SEC);
}

/// A wait ends when the delay after the failure is over, whenever it was asked for.
#[test]
fn a_wait_counts_from_the_failure() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new([10 * SEC]).clock(&clock);
    assert_eq!(backoff.attempt().unwrap().delay(), Duration::ZERO);
    backoff.failed();
    clock.advance(4 * SEC);
    clock.block_on(backoff.attempt().unwrap());
    assert_eq!(clock.now(), 10 * SEC);
    clock.advance(SEC);
    clock.block_on(backoff.attempt().unwrap());
    assert_eq!(clock.now(), 11 * SEC);
}

/// A wait that is over its limit is refused at once; one that takes exactly that long is not.
/// Field case 61: a clock that steps back makes no wait longer than its delay, and no success last longer to be health.
#[test]
fn a_clock_that_steps_back_lengthens_no_wait() {
    let now = Cell::new(100 * SEC);
    let clock = clock_fn(|| now.get(), |_| ready(()));
    let mut backoff = Backoff::new(Policy::fixed(SEC).unbounded()).healthy_after(MINUTE).clock(&clock);
    let left = |backoff: &mut Backoff<_, _, _, _, _>| backoff.attempt().unwrap().delay();
    backoff.failed();
    assert_eq!((backoff.delay(), left(&mut backoff)), (SEC, SEC));
    now.set(70 * SEC);
    assert_eq!(left(&mut backoff), SEC);
    now.set(70 * SEC + 300 * MS);
    assert_eq!(left(&mut backoff), 700 * MS, "it runs on from there");
    now.set(71 * SEC);
    assert_eq!(left(&mut backoff), Duration::ZERO);

    backoff.succeeded();
    now.set(41 * SEC);
    backoff.succeeded();
    now.set(100 * SEC);
    assert_eq!(backoff.failure_count(), 1);
    now.set(101 * SEC);
    assert_eq!(backoff.failure_count(), 0);

    let mut backoff = Backoff::new(Policy::fixed(SEC).unbounded().max_elapsed(5 * SEC)).clock(&clock);
    now.set(3600 * SEC);
    backoff.failed();
    let failures = (0..10).take_while(|&second| {
        now.set(second * SEC);
        backoff.failed();
        !backoff.exhausted()
    });
    assert_eq!(failures.count(), 5, "the limit holds from where the clock has stepped back to");
}

#[test]
fn a_wait_has_a_limit() {
    let clock = VirtualClock::new();
    let mut backoff = Backoff::new([10 * SEC]).clock(&clock);
    backoff.failed();
    let error = backoff.attempt().unwrap().within(9999 * MS).unwrap_err();
    assert_eq!((error.delay(), error.limit()), (10 * SEC, 9999 * MS));
    clock.block_on(backoff.attempt().unwrap().within(10 * SEC).unwrap());
    assert_eq!(clock.now(), 10 * SEC);
}

/// A wait, a loop form and a run that are dropped after any of their polls leave no sleeper; the failure stays counted.
#[test]
fn nothing_outlives_a_dropped_wait() {
    let clock = VirtualClock::new();
    let mut context = Context::from_waker(Waker::noop());
    for polls in 0..4 {
        let mut backoff = Backoff::new(DOUBLING).clock(&clock);
        backoff.failed();
        let mut wait = Box::pin(backoff.attempt().unwrap());
        let mut retry = Box::pin(backoff.retry_or("E"));
        for _ in 0..polls {
            assert!(wait.as_mut().poll(&mut context).is_pending());
            assert!(retry.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(clock.sleepers(), if polls == 0 { 0 } else { 2 });
        drop((wait, retry));
        assert_eq!(clock.sleepers(), 0);
        assert_eq!(backoff.failure_count(), if polls == 0 { 1 } else { 2 });

        let mut run = Box::pin(backoff.run(async |_| {
            clock.sleep(SEC).await;
            Err::<(), _>("E")
        }));
        for _ in 0..polls {
            assert!(run.as_mut().poll(&mut context).is_pending());
            clock.advance(SEC);
        }
        drop(run);
        assert_eq!(clock.sleepers(), 0);
    }
}

/// A wait of zero asks its clock for no sleep.
#[test]
fn a_zero_wait_touches_no_timer() {
    let clock = clock_fn(|| Duration::ZERO, |wait| -> SystemSleep { unreachable!("a timer of {wait:?}") });
    let executor = VirtualClock::new();
    let mut backoff = Backoff::new(Policy::immediate().max_attempts(5)).clock(&clock);
    executor.block_on(backoff.attempt().unwrap());
    backoff.failed();
    executor.block_on(backoff.attempt().unwrap());
    assert_eq!(executor.block_on(backoff.retry_or("E")), Ok(()));
    assert_eq!(executor.block_on(backoff.run(async |_| Err::<(), _>("E"))), Err("E"));
}

/// Loops whose waits are over at once let the executor have its turn, so they can be dropped.
#[test]
fn a_loop_without_waits_yields() {
    let mut context = Context::from_waker(Waker::noop());
    let mut calls = 0;
    let mut backoff = Backoff::new(Policy::immediate().unbounded()).clock(VirtualClock::new());
    {
        let mut run = pin!(backoff.run(|_| {
            calls += 1;
            async { Err::<(), _>("E") }
        }));
        for _ in 0..10 {
            assert!(run.as_mut().poll(&mut context).is_pending());
        }
    }
    assert_eq!(calls, 9);

    let clock = InstantClock::new();
    let mut backoff = Backoff::new(Policy::fixed(SEC).unbounded()).clock(&clock);
    let mut spinning = pin!(async { while backoff.retry_or("E").await.is_ok() {} });
    for _ in 0..10 {
        assert!(spinning.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(clock.waits().len(), 10);
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

/// A backoff and its futures are `Send` when their parts are, whatever the error of a run is.
#[tokio::test]
async fn the_futures_are_send() {
    struct Supervisor<C: Clock> {
        restarts: Backoff<Policy, C>,
        reconnects: Backoff<&'static Levels>,
        pending: Option<Wait<SystemSleep>>,
    }
    static LEVELS: Levels = Levels::DEFAULT;

    let clock = VirtualClock::new();
    let mut supervisor = assert_send(Supervisor {
        restarts: Backoff::new(Policy::immediate()).clock(clock.clone()),
        reconnects: Backoff::new(&LEVELS),
        pending: None,
    });
    supervisor.restarts.failed();
    assert_send(supervisor.restarts.attempt().unwrap()).await;
    supervisor.pending = supervisor.reconnects.attempt().ok();
    assert_send(supervisor.pending.unwrap()).await;

    let mut backoff = Backoff::new(Policy::immediate()).unmarked();
    assert!(assert_send(backoff.run(async |_| Err::<(), _>(Rc::new(())))).await.is_err());

    let mut connection = Connection { failures: 2, queries: 0 };
    let task = tokio::spawn(async move {
        let mut transaction = String::new();
        let mut backoff = Backoff::new(Policy::immediate());
        loop {
            match connection.query(&mut transaction).await {
                Ok(row) => break Ok::<_, io::Error>((row, transaction)),
                Err(e) => backoff.retry_or(e).await?,
            }
        }
    });
    assert_eq!(task.await.unwrap().unwrap(), (42, "qqq".to_owned()));

    let task = tokio::spawn(async {
        let mut backoff = Backoff::new(Policy::immediate());
        let name = String::from("child");
        backoff.run(async |attempt| if attempt.number() < 3 { Err("E") } else { Ok(name.len()) }).await
    });
    assert_eq!(task.await.unwrap(), Ok(5));
}

/// Field case 130: nested runs multiply, 27 calls for three levels of three attempts; a marker stops them all.
#[test]
fn nested_runs_multiply() {
    let clock = VirtualClock::new();
    let policy = Policy::fixed(SEC);
    let calls = Cell::new(0);
    let inner = async |_| {
        calls.set(calls.get() + 1);
        if calls.get() == 28 {
            Err::<(), _>(io::Error::other(NonRetryableError::new("bad")))
        } else {
            Err(io::Error::other("E"))
        }
    };
    let middle = async |_| Backoff::new(policy).clock(&clock).run(inner).await;
    let outer = async |_| retry(middle, policy).clock(&clock).await;
    clock.block_on(Backoff::new(policy).clock(&clock).run(outer)).unwrap_err();
    assert_eq!((calls.get(), clock.now()), (27, 26 * SEC));

    clock.block_on(Backoff::new(policy).clock(&clock).run(outer)).unwrap_err();
    assert_eq!((calls.get(), clock.now()), (28, 26 * SEC));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// The loop form and a supervised run make the calls of `retry`, at the same times and with the same end, where the
    /// attempts take no time.
    #[test]
    fn the_loop_form_decides_as_a_run_does(
        waits in proptest::collection::vec(0_u32..5, 0..5),
        hints in proptest::collection::vec(proptest::option::of(0_u32..9), 6),
        successes in proptest::collection::vec(proptest::bool::weighted(0.1), 6),
        max_attempts in 0_u32..6,
        max_elapsed in 0_u32..12,
    ) {
        let waits = waits.into_iter().map(|s| s * SEC).collect::<Vec<_>>();
        let (max_elapsed, ceiling) = (max_elapsed * SEC, 7 * SEC);
        let op = |calls: &RefCell<Vec<Duration>>, clock: &VirtualClock| {
            let n = calls.borrow().len();
            calls.borrow_mut().push(clock.now());
            let hint = hints[n].unwrap_or(0) * SEC;
            std::future::ready(if successes[n] { Ok(n) } else { Err(RetryAfterError::new("E", hint)) })
        };
        let backoff = |clock: VirtualClock| {
            let backoff = Backoff::new(&waits).max_retry_after(ceiling).clock(clock);
            backoff.max_attempts(max_attempts).max_elapsed(max_elapsed)
        };

        let (calls, clock) = (RefCell::default(), VirtualClock::new());
        let run = retry(|_| op(&calls, &clock), &waits).max_attempts(max_attempts).max_elapsed(max_elapsed);
        let expected = clock.block_on(run.max_retry_after(ceiling).clock(&clock).report());

        let (looped, clock) = (RefCell::default(), VirtualClock::new());
        let mut by_loop = backoff(clock.clone());
        let result = clock.block_on(async {
            loop {
                match op(&looped, &clock).await {
                    Ok(n) => break Ok(n),
                    Err(e) => if let Err(e) = by_loop.retry_or(e).await { break Err(e) },
                }
            }
        });
        prop_assert_eq!(&looped, &calls);
        prop_assert_eq!(result.ok(), expected.result.as_ref().ok().copied());
        let stop = by_loop.attempt().err().map(|exhausted| exhausted.reason());
        prop_assert_eq!(stop, expected.stop);

        let (supervised, clock) = (RefCell::default(), VirtualClock::new());
        let mut by_run = backoff(clock.clone());
        let result = clock.block_on(by_run.run(|_| op(&supervised, &clock)));
        prop_assert_eq!(&supervised, &calls);
        prop_assert_eq!(result.ok(), expected.result.ok());
        prop_assert_eq!(by_run.attempt().err().map(|exhausted| exhausted.reason()), expected.stop);
    }
}
