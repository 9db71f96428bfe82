//! Stop signals, dropped runs, and what they leave behind: nothing.

mod common;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{MS, SEC, Script, always_fails};
use relent::clock::{Clock, VirtualClock};
use relent::retry::{Event, StopReason};
use relent::{Policy, retry};

/// Field case 62: a signal ends the wait at once, and no attempt follows.
#[test]
fn a_signal_ends_the_wait() {
    let script = always_fails();
    let mut events = Vec::new();
    let run = retry(|_| script.call(), Policy::fixed(60 * SEC)).clock(&script.clock);
    let run = run.on_event(|event| events.push(format!("{event:?}"))).cancel_on(script.clock.sleep(SEC));
    let report = script.clock.block_on(run.report());
    assert_eq!(report.result, Err("E"));
    assert_eq!((report.attempts, report.elapsed, report.stop), (1, SEC, Some(StopReason::Cancelled)));
    assert_eq!(events, ["Scheduled { attempt: 1, delay: 60s, .. }", "Cancelled"]);
    assert_eq!(script.clock.sleepers(), 0);
}

/// A signal that comes while a run without waits has yielded ends it before another attempt.
#[test]
fn a_signal_during_the_yield_ends_the_run() {
    let stop = Cell::new(false);
    let script = always_fails();
    let mut events = Vec::new();
    let signal = poll_fn(|_| if stop.get() { Poll::Ready(()) } else { Poll::Pending });
    let run = retry(|_| script.call(), Policy::immediate().unbounded()).clock(&script.clock).cancel_on(signal);
    let mut run = Box::pin(run.on_event(|event| events.push(format!("{event:?}"))).report());
    let mut context = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut context).is_pending());
    assert_eq!(script.count(), 32);
    stop.set(true);
    let Poll::Ready(report) = run.as_mut().poll(&mut context) else { panic!("still running") };
    assert_eq!((report.attempts, report.stop), (32, Some(StopReason::Cancelled)));
    drop(run);
    assert_eq!(events.last().map(String::as_str), Some("Cancelled"));
}

/// A signal that has come before the run still lets the first attempt be made, and spends no hook on a retry.
#[test]
fn the_first_attempt_is_always_made() {
    let script = always_fails();
    let (mut retries, mut events) = (0, Vec::new());
    let run = retry(|_| script.call(), Policy::fixed(SEC)).clock(&script.clock).on_retry(|_| retries += 1);
    let run = run.on_event(|event| events.push(format!("{event:?}"))).cancel_on(ready(()));
    let report = script.clock.block_on(run.report());
    assert_eq!(events, ["Cancelled"]);
    assert_eq!((report.attempts, report.elapsed, report.stop), (1, Duration::ZERO, Some(StopReason::Cancelled)));
    assert_eq!(retries, 0);

    let script = Script::new([Ok::<_, &str>(1)]);
    let run = retry(|_| script.call(), Policy::fixed(SEC)).clock(&script.clock).cancel_on(ready(()));
    assert_eq!(script.clock.block_on(run), Ok(1));
}

/// A signal during an attempt lets it finish: its success is the run's, its failure ends the run.
#[test]
fn a_running_attempt_finishes() {
    for outcome in [Ok("done"), Err("E")] {
        let clock = VirtualClock::new();
        let op = async |_| {
            clock.sleep(5 * SEC).await;
            outcome
        };
        let run = retry(op, Policy::fixed(SEC)).clock(&clock).cancel_on(clock.sleep(SEC));
        let report = clock.block_on(run.report());
        assert_eq!(report.result, outcome);
        assert_eq!((report.attempts, report.elapsed), (1, 5 * SEC));
        assert_eq!(report.stop, outcome.is_err().then_some(StopReason::Cancelled));
    }
}

/// If signal and wait are ready together the signal wins.
#[test]
fn the_signal_wins_a_tie() {
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::fixed(SEC)).clock(&script.clock).cancel_on(script.clock.sleep(SEC));
    assert_eq!(script.clock.block_on(run.report()).attempts, 1);
}

/// A signal is never polled after it completed.
#[test]
fn a_completed_signal_is_left_alone() {
    let polls = Cell::new(0);
    let signal = poll_fn(|_| {
        polls.set(polls.get() + 1);
        assert_eq!(polls.get(), 1, "polled after it completed");
        Poll::Ready(())
    });
    let script = always_fails();
    let run = retry(|_| script.call(), Policy::fixed(SEC)).clock(&script.clock).cancel_on(signal);
    script.clock.block_on(run).unwrap_err();
    assert_eq!(polls.get(), 1);
}

/// A long-lived stop signal that keeps a list of those who wait for it.
#[derive(Default)]
struct Token {
    is_cancelled: Cell<bool>,
    registered: RefCell<BTreeMap<u32, Waker>>,
    listeners: Cell<u32>,
    polls: Cell<u32>,
}

impl Token {
    fn cancelled(&self) -> Listener<'_> {
        self.listeners.set(self.listeners.get() + 1);
        Listener { token: self, number: self.listeners.get() }
    }

    fn cancel(&self) {
        self.is_cancelled.set(true);
        self.registered.borrow().values().for_each(Waker::wake_by_ref);
    }
}

struct Listener<'a> {
    token: &'a Token,
    number: u32,
}

impl Future for Listener<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.token.polls.set(self.token.polls.get() + 1);
        if self.token.is_cancelled.get() {
            return Poll::Ready(());
        }
        self.token.registered.borrow_mut().insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.token.registered.borrow_mut().remove(&self.number);
    }
}

/// Field case 64: a long-lived signal keeps nothing of the runs that listened to it.
#[test]
fn a_signal_keeps_no_listener() {
    let (token, clock) = (Token::default(), VirtualClock::new());
    let mut most = 0;
    for run in 1..=20 {
        let op = |_| {
            most = most.max(token.registered.borrow().len());
            ready(Err::<(), _>("E"))
        };
        let waiting = retry(op, Policy::fixed(SEC)).clock(&clock).cancel_on(token.cancelled());
        clock.block_on(waiting).unwrap_err();
        assert_eq!(clock.now(), 2 * SEC * run, "two waits");
        assert_eq!(token.registered.borrow().len(), 0, "after run {run}");
        assert!(token.polls.get() >= 4 * run, "at the first poll, and again in each wait");
    }
    assert_eq!(most, 1, "each had registered once");

    // One that is still waiting is reached, and nothing is left of it either.
    let stopper = async {
        clock.sleep(SEC).await;
        token.cancel();
        Ok(())
    };
    let run = async { retry(async |_| Err::<(), _>("E"), [60 * SEC]).clock(&clock).cancel_on(token.cancelled()).await };
    let both: [Pin<Box<dyn Future<Output = Result<(), &str>>>>; 2] = [Box::pin(run), Box::pin(stopper)];
    assert_eq!(clock.block_on_all(both), [Err("E"), Ok(())]);
    assert_eq!(clock.now(), 41 * SEC);
    assert_eq!(token.registered.borrow().len(), 0);
}

/// Field case 65: a cancelled or dropped run leaves no timer behind.
#[test]
fn no_timer_outlives_its_run() {
    let script = always_fails();
    let run =
        retry(|_| script.call(), Policy::fixed(3600 * SEC)).clock(&script.clock).cancel_on(script.clock.sleep(SEC));
    script.clock.block_on(run).unwrap_err();
    assert_eq!(script.clock.sleepers(), 0);

    let mut run = Box::pin(retry(|_| script.call(), Policy::fixed(3600 * SEC)).clock(&script.clock));
    assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(script.clock.sleepers(), 1);
    drop(run);
    assert_eq!(script.clock.sleepers(), 0);
}

/// Counts the attempts in flight.
struct Alive<'a>(&'a Cell<i32>);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Dropped after any of its polls, a run leaves no sleeper and no attempt, and says nothing more.
#[test]
fn a_run_can_be_dropped_after_every_poll() {
    const FAILURES: u32 = 4;
    let attempts_alive = Cell::new(0_i32);
    let polls_until = |limit: usize| {
        let clock = VirtualClock::new();
        let events = RefCell::new(Vec::new());
        let op = async |attempt: relent::Attempt| {
            attempts_alive.set(attempts_alive.get() + 1);
            let _alive = Alive(&attempts_alive);
            clock.sleep(MS).await;
            if attempt.number() > FAILURES { Ok(()) } else { Err("E") }
        };
        let run = retry(op, Policy::fixed(5 * MS).unbounded())
            .attempt_timeout(SEC, |_| "timed out")
            .on_event(|event: &Event<'_, _>| events.borrow_mut().push(matches!(event, Event::Succeeded { .. })))
            .cancel_on(clock.sleep(3600 * SEC))
            .clock(&clock);
        let mut run = Box::pin(run);
        let mut polls = 0;
        let mut context = Context::from_waker(Waker::noop());
        let ended = loop {
            if polls == limit {
                break false;
            }
            polls += 1;
            if run.as_mut().poll(&mut context).is_ready() {
                break true;
            }
            clock.advance(MS);
        };
        let seen = events.borrow().len();
        drop(run);
        assert_eq!(events.borrow().len(), seen, "an event after the drop");
        assert_eq!(events.borrow().last() == Some(&true), ended);
        assert_eq!(clock.sleepers(), 0, "after {polls} polls");
        assert_eq!(attempts_alive.get(), 0, "after {polls} polls");
        ended.then_some(polls)
    };
    let polls = polls_until(usize::MAX).unwrap();
    assert!(polls > 20, "{polls}");
    for limit in 0..polls {
        assert_eq!(polls_until(limit), None);
    }
}
