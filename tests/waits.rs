//! What a policy says is what a run waits, and what a service answers decides whether it does.

mod common;

use std::cell::Cell;
use std::collections::HashSet;
use std::future::ready;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use common::{MS, SEC, Script, always_fails};
use relent::backoff::Backoff;
use relent::clock::VirtualClock;
use relent::retry::StopReason;
use relent::rng::{DefaultRng, rng_fn};
use relent::transient::{http_status, http_status_strict, io_error};
use relent::{Jitter, Policy, backoff_sequence, retry};

/// The waits between the calls of a run that always fails.
fn waits(policy: Policy) -> Vec<Duration> {
    let script = always_fails();
    let result = script.clock.block_on(retry(|_| script.call(), policy).clock(&script.clock));
    assert_eq!(result, Err("E"));
    script.calls().windows(2).map(|pair| pair[1].checked_sub(pair[0]).unwrap()).collect()
}

/// Field case 04.
#[test]
fn a_base_above_the_cap_waits_the_cap() {
    let calls = Cell::new(0);
    let clock = VirtualClock::new();
    let policy = Policy::exponential(SEC).max_delay(10 * MS).jitter(Jitter::None).max_attempts(101);
    let op = |_| {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>(calls.get()))
    };
    let report = clock.block_on(retry(op, policy).clock(&clock).report());
    assert_eq!((report.result, report.attempts), (Err(101), 101), "the last error");
    assert_eq!((report.elapsed, report.stop), (SEC, Some(StopReason::Exhausted)));
    assert_eq!(waits(policy), [10 * MS; 100]);
}

/// Field case 05.
#[test]
fn neither_no_base_nor_the_longest_overflows() {
    let none = Policy::exponential(Duration::ZERO).uncapped().max_attempts(34);
    assert_eq!(waits(none), [Duration::ZERO; 33]);

    // The longest wait means never, so a run does not begin it.
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::exponential(Duration::MAX).jitter(Jitter::None).max_attempts(2));
    let report = script.clock.block_on(run.clock(&script.clock).report());
    assert_eq!((report.attempts, report.elapsed), (1, Duration::ZERO));
    assert_eq!(report.stop, Some(StopReason::ScheduleEnded));

    let almost = Policy::MAX_DELAY.checked_sub(MS * 4096).unwrap();
    assert_eq!(waits(Policy::fixed(almost).max_attempts(2)), [Policy::fixed(almost).nominal_after(1)]);
}

/// Field case 19: an outage longer than the growth stays at the cap.
#[test]
fn a_long_outage_is_never_met_with_shorter_waits() {
    let policy = Policy::exponential(SEC).max_delay(10 * SEC).jitter(Jitter::None).max_attempts(13);
    assert_eq!(waits(policy), [1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 10, 10].map(Duration::from_secs));
    assert_eq!(waits(policy), backoff_sequence(policy, 12));

    let list = [1, 2, 4, 8, 10].map(Duration::from_secs);
    let script = always_fails();
    let report = script.clock.block_on(retry(|_| script.call(), list).clock(&script.clock).report());
    assert_eq!((report.attempts, report.stop), (6, Some(StopReason::Exhausted)), "it ends, and does not start again");
}

/// Field case 28. Of a million draws of 53 bits two are equal in one test of 18 000, and two pairs in one of 600 million.
#[test]
fn eight_threads_share_a_policy() {
    static POLICY: Policy = Policy::fixed(Duration::from_millis(1 << 53)).jitter(Jitter::Full);
    let drawn: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| POLICY.delays(DefaultRng).take(125_000).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(drawn.len(), 1_000_000);
    let different = drawn.iter().collect::<HashSet<_>>().len();
    assert!(different >= 999_999, "{different} different delays");
}

/// Field case 29: the time of the next retry is drawn with the failure, however often it is asked for or polled.
#[test]
fn a_wait_is_drawn_once() {
    let policy = Policy::fixed(SEC).jitter(Jitter::Proportional(0.5)).max_attempts(2);
    for draw in [0.0, 0.3, 0.9] {
        let expected = policy.delay_after(1, draw).unwrap();
        let draws = Cell::new(0);
        let counting = || {
            rng_fn(|| {
                draws.set(draws.get() + 1);
                if draws.get() == 1 { draw } else { 0.1 }
            })
        };

        let clock = VirtualClock::new();
        let mut backoff = Backoff::new(policy).clock(&clock).rng(counting());
        backoff.failed();
        for _ in 0..8 {
            assert_eq!((backoff.delay(), backoff.attempt().unwrap().delay()), (expected, expected));
        }
        assert_eq!(draws.replace(0), 1);

        let script = always_fails();
        let mut run = pin!(retry(|_| script.call(), policy).clock(&script.clock).rng(counting()));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..50 {
            assert!(run.as_mut().poll(&mut context).is_pending());
            script.clock.advance(expected / 50);
        }
        assert!(run.as_mut().poll(&mut context).is_ready());
        assert_eq!((script.calls(), draws.get()), (vec![Duration::ZERO, expected], 1));
    }
}

/// Field case 80.
#[test]
fn a_server_error_is_called_again() {
    for transient in [http_status, http_status_strict] {
        let script = Script::new([Err(500), Ok("body")]);
        let run = retry(|_| script.call(), Policy::fixed(SEC)).when(|status| transient(*status)).clock(&script.clock);
        assert_eq!(script.clock.block_on(run), Ok("body"));
        assert_eq!(script.calls(), [Duration::ZERO, SEC]);
    }
}

/// Field case 82: an end of file is ambiguous; a parser that meets one says so, and is not called again.
#[test]
fn a_parser_that_fails_is_no_storm() {
    let calls = |is_parse: bool, know_better: bool| {
        let clock = VirtualClock::new();
        let op = |_| ready(Err::<(), io::Error>(ErrorKind::UnexpectedEof.into()));
        let run = retry(op, Policy::fixed(SEC).max_attempts(5)).when(io_error).when(|_| !(know_better && is_parse));
        clock.block_on(run.clock(&clock).report()).attempts
    };
    assert_eq!(calls(false, false), 5, "transient by its kind");
    assert_eq!((calls(true, false), calls(true, true), calls(false, true)), (5, 1, 5));
}
