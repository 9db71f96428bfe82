//! The driver for threads: it decides as the async one does, waits by parking, and wakes for a stop.

mod common;

use std::cell::{Cell, RefCell};
use std::future::{poll_fn, ready};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{MS, SEC};
use relent::blocking::{self, StopFlag};
use relent::clock::{Clock, InstantClock, VirtualClock};
use relent::retry::{Event, StopReason};
use relent::rng::FixedRng;
use relent::{NonRetryableError, Policy};

const HOUR: Duration = Duration::from_secs(3600);

/// The whole vocabulary of the builder, on one run.
#[test]
fn it_is_built_like_an_async_run() {
    let clock = InstantClock::new();
    let (mut retries, mut events) = (Vec::new(), Vec::new());
    let mut left = Vec::new();
    let op = |attempt: relent::Attempt| {
        clock.advance(MS);
        left.push(attempt.remaining());
        Err::<(), _>("busy")
    };
    let report = blocking::retry(op, Policy::exponential(100 * MS))
        .when(|e| *e == "busy")
        .retry_after(|_| Some(SEC))
        .max_retry_after(2 * SEC)
        .max_attempts(4)
        .max_elapsed(3 * SEC)
        .idempotent(true)
        .on_retry(|r| retries.push((r.attempt, r.delay)))
        .on_event(|event| events.push(format!("{event:?}")))
        .rng(FixedRng::new(0.5))
        .clock(&clock)
        .unmarked()
        .report()
        .call();
    assert_eq!(report.result, Err("busy"));
    assert_eq!((report.attempts, report.elapsed, report.stop), (3, 2078 * MS, Some(StopReason::Deadline)));
    assert_eq!(clock.waits(), [1025 * MS, 1050 * MS]);
    assert_eq!(retries, [(1, 1025 * MS), (2, 1050 * MS)]);
    assert_eq!(left, [Some(3 * SEC), Some(1974 * MS), Some(923 * MS)]);
    assert_eq!(events.last().unwrap(), "Declined { attempt: 3, reason: Deadline, .. }");
}

/// A marker ends a blocking run too.
#[test]
fn a_marker_is_seen() {
    let calls = Cell::new(0);
    let op = |_| {
        calls.set(calls.get() + 1);
        Err::<(), _>(io::Error::other(NonRetryableError::new("no such user")))
    };
    let report = blocking::retry(op, Policy::immediate()).report().call();
    assert_eq!((calls.get(), report.stop), (1, Some(StopReason::NotRetryable)));
}

/// Without a clock the thread waits in real time, and never less than the wait.
#[test]
fn the_thread_waits() {
    let begun = Instant::now();
    let mut waits = Vec::new();
    let report =
        blocking::retry(|_| Err::<(), _>("E"), [3 * MS, 4 * MS]).on_retry(|r| waits.push(r.delay)).report().call();
    assert!(begun.elapsed() >= 7 * MS);
    assert!(report.elapsed >= 7 * MS);
    assert_eq!(waits, [3 * MS, 4 * MS]);
}

/// A thread that is unparked for another reason goes on waiting.
#[test]
fn a_stray_unpark_shortens_no_wait() {
    let this = thread::current();
    let report = blocking::retry(|_| Err::<(), _>("E"), [20 * MS]).on_retry(|_| this.unpark()).report().call();
    assert!(report.elapsed >= 20 * MS, "{:?}", report.elapsed);
}

/// A stop from another thread ends the wait at once, whatever its length; the last error is the result.
#[test]
fn a_stop_ends_the_wait() {
    let flag = StopFlag::new();
    let (failed, wait_begins) = mpsc::channel();
    let worker = thread::spawn({
        let flag = flag.clone();
        move || {
            let run = blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(HOUR)).cancel_on(&flag);
            run.on_retry(|_| failed.send(()).unwrap()).report().call()
        }
    });
    wait_begins.recv().unwrap();
    flag.stop();
    let report = worker.join().unwrap();
    assert_eq!((report.result, report.attempts, report.stop), (Err("E"), 1, Some(StopReason::Cancelled)));
    assert!(report.elapsed < HOUR);
}

/// One flag stops every run that listens, on any clock.
#[test]
fn a_stop_ends_all_waits() {
    let flag = StopFlag::new();
    let (failed, wait_begins) = mpsc::channel();
    thread::scope(|scope| {
        let workers = [0, 1, 2, 3].map(|number| {
            let (flag, failed) = (&flag, failed.clone());
            scope.spawn(move || {
                let run = blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(HOUR)).cancel_on(flag);
                let run = run.on_retry(|_| failed.send(()).unwrap());
                // A clock on which nobody moves the time: only the stop can wake its sleep.
                if number % 2 == 0 { run.report().call() } else { run.clock(VirtualClock::new()).report().call() }
            })
        });
        for _ in 0..4 {
            wait_begins.recv().unwrap();
        }
        flag.stop();
        for worker in workers {
            assert_eq!(worker.join().unwrap().stop, Some(StopReason::Cancelled));
        }
    });
}

/// A stop that came before the run still lets the first attempt be made, and its success counts.
#[test]
fn the_first_attempt_is_always_made() {
    let flag = StopFlag::new();
    flag.stop();
    assert_eq!(blocking::retry(|_| Ok::<_, &str>(7), Policy::DEFAULT).cancel_on(&flag).call(), Ok(7));
    let mut retries = 0;
    let run = blocking::retry(|_| Err::<(), _>("E"), Policy::DEFAULT).cancel_on(&flag).on_retry(|_| retries += 1);
    let report = run.report().call();
    assert_eq!((report.attempts, report.stop, retries), (1, Some(StopReason::Cancelled), 0));
}

/// A stop during an attempt lets it finish.
#[test]
fn a_running_attempt_finishes() {
    for outcome in [Ok(1), Err("E")] {
        let flag = StopFlag::new();
        let op = |_| {
            flag.stop();
            outcome
        };
        let report = blocking::retry(op, Policy::fixed(HOUR)).cancel_on(&flag).report().call();
        assert_eq!(report.result, outcome);
        assert_eq!(report.stop, outcome.is_err().then_some(StopReason::Cancelled));
    }
}

/// Any future is a stop signal, and is polled no more once it has completed.
#[test]
fn any_future_stops_a_run() {
    let polls = Cell::new(0);
    let signal = poll_fn(|_| {
        polls.set(polls.get() + 1);
        if polls.get() < 3 { Poll::Pending } else { Poll::Ready(()) }
    });
    let run = blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(MS)).cancel_on(signal).clock(InstantClock::new());
    let report = run.report().call();
    assert_eq!((report.attempts, report.stop), (1, Some(StopReason::Cancelled)));
    assert_eq!(polls.get(), 3);
}

/// The flag serves async code, wakes whoever polled last, and keeps nothing of those that were dropped.
#[test]
fn the_flag_is_a_future_too() {
    struct Count(std::sync::atomic::AtomicU32);
    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let count = || std::sync::Arc::new(Count(0.into()));
    let (first, last, dropped) = (count(), count(), count());
    let poll = |future: &mut blocking::Stopped, count: &std::sync::Arc<Count>| {
        let waker = Waker::from(std::sync::Arc::clone(count));
        std::pin::Pin::new(future).poll(&mut Context::from_waker(&waker))
    };
    let flag = StopFlag::new();
    let (mut stopped, mut abandoned) = (flag.stopped(), flag.stopped());
    assert!(poll(&mut stopped, &first).is_pending());
    assert!(poll(&mut stopped, &last).is_pending());
    assert!(poll(&mut abandoned, &dropped).is_pending());
    drop(abandoned);
    assert_eq!(std::sync::Arc::strong_count(&dropped), 1);
    assert!(!flag.is_stopped());
    flag.clone().stop();
    flag.stop();
    assert!(flag.is_stopped());
    assert_eq!([&first, &last, &dropped].map(|c| c.0.load(std::sync::atomic::Ordering::Relaxed)), [0, 1, 0]);
    assert!(poll(&mut stopped, &first).is_ready());
    assert_eq!([&first, &last].map(std::sync::Arc::strong_count), [1, 1]);
}

/// The wait is injectable: by a clock that another thread moves, and by a function that blocks.
#[test]
fn the_wait_is_injectable() {
    let clock = VirtualClock::new();
    thread::scope(|scope| {
        let run = blocking::retry(|_| Err::<(), _>("E"), [SEC, 2 * SEC]).clock(clock.clone()).report();
        let worker = scope.spawn(|| run.call());
        for wait in [SEC, 2 * SEC] {
            while clock.sleepers() == 0 {
                thread::yield_now();
            }
            clock.advance(wait);
        }
        assert_eq!(worker.join().unwrap().elapsed, 3 * SEC);
    });

    let waits = RefCell::new(Vec::new());
    let sleep = |wait| {
        waits.borrow_mut().push(wait);
        ready(())
    };
    let report = blocking::retry(|_| Err::<(), _>("E"), Policy::linear(HOUR)).sleep(sleep).report().call();
    assert_eq!(waits.take(), [HOUR, 2 * HOUR]);
    assert_eq!((report.attempts, report.elapsed), (3, 3 * HOUR));

    let begun = Instant::now();
    let run = blocking::retry(|_| Err::<(), _>("E"), [5 * MS]).sleep(async |wait| thread::sleep(wait));
    run.call().unwrap_err();
    assert!(begun.elapsed() >= 5 * MS);
}

/// A run whose waits are zero goes on by itself past the turn that the async driver gives to others.
#[test]
fn a_run_without_waits_needs_no_waking() {
    let report = blocking::retry(|_| Err::<(), _>("E"), Policy::immediate().max_attempts(1000)).report().call();
    assert_eq!(report.attempts, 1000);
}

/// Runs nest, on one thread.
#[test]
fn runs_nest() {
    let clock = InstantClock::new();
    let inner = || blocking::retry(|_| Err::<(), _>("E"), Policy::fixed(MS)).clock(&clock).call();
    assert_eq!(blocking::retry(|_| inner(), Policy::fixed(SEC)).clock(&clock).call(), Err("E"));
    assert_eq!(clock.now(), 2 * SEC + 6 * MS);
}

/// A waker is code of others: its panic reaches whoever raises the flag, once all have been woken.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_waker_keeps_the_flag_from_no_other() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("bug");
        }
    }
    struct Good(AtomicBool);
    impl Wake for Good {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flag = StopFlag::new();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Box::pin(flag.stopped()));
    let good = Arc::new(Good(AtomicBool::new(false)));
    for (stopped, waker) in
        [(&mut first, Arc::new(Bad).into()), (&mut second, good.clone().into()), (&mut third, Arc::new(Bad).into())]
    {
        assert!(stopped.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let panic = catch_unwind(|| flag.stop()).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"bug"));
    assert!(flag.is_stopped() && good.0.load(Ordering::Relaxed));
}

/// A panic of the operation reaches the caller, and no observer hears of an end.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panic_unwinds_through_the_run() {
    let flag = StopFlag::new();
    let mut events = 0;
    let run = blocking::retry(|_| -> Result<(), &str> { panic!("bug") }, Policy::DEFAULT).cancel_on(&flag);
    let run = run.on_event(|_: &Event<'_, _>| events += 1);
    let panic = catch_unwind(AssertUnwindSafe(|| run.call())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"bug"));
    assert_eq!(events, 0);
    flag.stop();
}

/// On the real clock too; ten seconds, should the limit go unheard.
#[test]
fn a_limit_on_time_ends_a_run_of_real_waits() {
    let run = blocking::retry(|_| Err::<(), _>("down"), Policy::fixed(10 * MS).max_attempts(1000));
    let report = run.max_elapsed(45 * MS).report().call();
    assert_eq!(report.stop, Some(StopReason::Deadline));
    assert!(report.attempts <= 5, "{}", report.attempts);
}

/// With a sleep of one's own the clock stays the real one, which sees what the attempts take.
#[test]
fn attempts_count_as_elapsed_beside_an_injected_sleep() {
    let slow = |_| {
        thread::sleep(30 * MS);
        Err::<(), _>("down")
    };
    let run = blocking::retry(slow, Policy::fixed(MS).max_attempts(100)).sleep(|_| ready(()));
    let report = run.max_elapsed(45 * MS).report().call();
    assert_eq!(report.stop, Some(StopReason::Deadline));
    assert!(report.attempts <= 2, "{}", report.attempts);
}
