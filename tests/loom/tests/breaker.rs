//! The circuit breaker under every interleaving of two or three threads; the largest models, which say so, under those
//! with at most four preemptions.
//!
//! `cargo test -p relent-loom --release`

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loom::thread::{self, JoinHandle};
use relent_loom::Policy;
use relent_loom::breaker::{CircuitBreaker, Permit, State};
use relent_loom::clock::Clock;

const COOLDOWN: Duration = Duration::from_secs(10);

/// A clock that a model sets, in seconds, from one of its threads. Reading it is no step of the model.
#[derive(Clone, Copy)]
struct Hand(&'static AtomicU64);

impl Hand {
    fn set(self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    type Sleep = Ready<()>;

    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Ready<()> {
        ready(())
    }
}

type Breaker = CircuitBreaker<Hand>;
type Admitted = Permit<'static, Hand>;

/// A breaker with a cooldown of 10 s, leaked so that the threads of a model can borrow it.
fn leak(breaker: CircuitBreaker) -> (&'static Breaker, Hand) {
    let clock = Hand(Box::leak(Box::default()));
    (Box::leak(Box::new(breaker.cooldown(Policy::fixed(COOLDOWN)).with_clock(clock))), clock)
}

/// Opened by one failure at 0 s; it is 10 s.
fn at_the_end_of_the_cooldown(breaker: CircuitBreaker) -> (&'static Breaker, Hand) {
    let (breaker, clock) = leak(breaker.failure_threshold(1));
    admit(breaker).failure();
    clock.set(10);
    (breaker, clock)
}

fn admit(breaker: &'static Breaker) -> Admitted {
    breaker.acquire().expect("admitted")
}

/// Asks on a thread of its own. The permit is held until it is joined.
fn ask(breaker: &'static Breaker) -> JoinHandle<Option<Admitted>> {
    thread::spawn(|| breaker.acquire().ok())
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("no panic")
}

/// How many more probes a half-open breaker admits.
fn free_slots(breaker: &'static Breaker) -> usize {
    std::iter::from_fn(|| breaker.acquire().ok()).collect::<Vec<_>>().len()
}

/// `RELENT_PREEMPTIONS` says otherwise.
fn preemptions(usual: usize) -> usize {
    std::env::var("RELENT_PREEMPTIONS").map_or(usual, |bound| bound.parse().expect("RELENT_PREEMPTIONS is a number"))
}

/// A model that is too large for every interleaving: at most four preemptions.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions(4));
    builder.check(model);
}

fn exactly_so_many_are_admitted(probes: u8) {
    let (breaker, _) = at_the_end_of_the_cooldown(CircuitBreaker::new().probes(probes));
    let threads = [ask(breaker), ask(breaker)];
    let mine = breaker.acquire().ok();
    let permits: Vec<_> = threads.into_iter().map(join).chain([mine]).flatten().collect();
    assert_eq!(permits.len(), usize::from(probes));
    assert_eq!(breaker.state(), State::HalfOpen);
    assert_eq!(breaker.acquire().unwrap_err().retry_after(), COOLDOWN);
}

#[test]
fn three_threads_at_the_end_of_the_cooldown_and_one_probe() {
    bounded(|| exactly_so_many_are_admitted(1));
}

#[test]
fn three_threads_at_the_end_of_the_cooldown_and_two_probes() {
    bounded(|| exactly_so_many_are_admitted(2));
}

/// Two failures that trip it together, and a call that may see the trip before its time is written.
#[test]
fn a_trip_happens_once_and_has_its_time() {
    loom::model(|| {
        let (breaker, clock) = leak(CircuitBreaker::new().failure_threshold(2));
        clock.set(100);
        let threads = [admit(breaker), admit(breaker)].map(|permit| thread::spawn(|| permit.failure()));
        let refused = breaker.acquire().err();
        let trips = threads.into_iter().filter_map(join).count();
        assert_eq!(trips, 1);
        assert!(refused.is_none_or(|refused| refused.retry_after() == COOLDOWN));
        assert_eq!(breaker.state(), State::Open);
        assert_eq!(breaker.acquire().unwrap_err().retry_after(), COOLDOWN);
    });
}

#[test]
fn a_success_that_clears_a_failure_does_not_overwrite_a_trip() {
    loom::model(|| {
        let (breaker, _) = leak(CircuitBreaker::new().failure_threshold(2));
        admit(breaker).failure();
        let (good, bad) = (admit(breaker), admit(breaker));
        let success = thread::spawn(|| good.success());
        let tripped = bad.failure().is_some();
        assert_eq!(join(success), None);
        assert_eq!(breaker.state() == State::Open, tripped);
        if !tripped {
            assert!(admit(breaker).failure().is_some(), "the failure came after the success and counts");
        }
    });
}

/// Three results at once: the success may come before, between or after the failures.
#[test]
fn a_success_between_two_failures() {
    loom::model(|| {
        let (breaker, _) = leak(CircuitBreaker::new().failure_threshold(2));
        let [good, bad, worse] = [(); 3].map(|()| admit(breaker));
        let threads = [thread::spawn(|| good.success()), thread::spawn(|| bad.failure())];
        let trips = worse.failure().into_iter().chain(threads.into_iter().filter_map(join)).count();
        assert_eq!(breaker.state() == State::Open, trips == 1);
        if trips == 0 {
            assert!(admit(breaker).failure().is_some(), "one of the failures came after the success");
        }
    });
}

/// A probe whose lease has ended is dropped while two calls ask for its slot.
#[test]
fn a_dropped_probe_and_the_end_of_its_lease_free_one_slot() {
    loom::model(|| {
        let (breaker, clock) = at_the_end_of_the_cooldown(CircuitBreaker::new());
        let probe = admit(breaker);
        clock.set(20);
        let dropped = thread::spawn(|| drop(probe));
        let other = ask(breaker);
        let mine = breaker.acquire().ok();
        join(dropped);
        let permits: Vec<_> = [mine, join(other)].into_iter().flatten().collect();
        assert_eq!(permits.len(), 1);
        assert!(breaker.acquire().is_err());
        drop(permits);
        assert_eq!(free_slots(breaker), 1);
    });
}

/// The result of a probe whose lease has ended counts, or frees its slot for another: never both.
#[test]
fn a_late_success_counts_or_loses_its_slot() {
    loom::model(|| {
        let (breaker, clock) = at_the_end_of_the_cooldown(CircuitBreaker::new());
        let probe = admit(breaker);
        clock.set(20);
        let late = thread::spawn(|| probe.success());
        let other = ask(breaker);
        let mine = breaker.acquire().ok();
        let closed = join(late).is_some();
        let permits: Vec<_> = [mine, join(other)].into_iter().flatten().collect();
        if closed {
            assert_eq!(breaker.state(), State::Closed);
            assert_eq!(permits.len(), 2);
        } else {
            assert_eq!(breaker.state(), State::HalfOpen);
            assert_eq!(permits.len(), 1);
        }
    });
}

#[test]
fn a_late_failure_counts_or_loses_its_slot() {
    bounded(|| {
        let (breaker, clock) = at_the_end_of_the_cooldown(CircuitBreaker::new());
        let probe = admit(breaker);
        clock.set(20);
        let late = thread::spawn(|| probe.failure());
        let other = ask(breaker);
        let mine = breaker.acquire().ok();
        let reopened = join(late).is_some();
        let permits: Vec<_> = [mine, join(other)].into_iter().flatten().collect();
        if reopened {
            assert_eq!(breaker.acquire().unwrap_err().retry_after(), COOLDOWN);
            assert_eq!(breaker.state(), State::Open);
            assert!(permits.is_empty());
        } else {
            assert_eq!(breaker.state(), State::HalfOpen);
            assert_eq!(permits.len(), 1);
        }
    });
}

/// One of two probes hangs, and the other is dropped while two calls ask at the end of their lease.
#[test]
fn a_hung_probe_and_a_dropped_one_free_two_slots() {
    bounded(|| {
        let (breaker, clock) = at_the_end_of_the_cooldown(CircuitBreaker::new().probes(2));
        let hung = admit(breaker);
        clock.set(19);
        let cancelled = admit(breaker);
        clock.set(20);
        let dropped = thread::spawn(|| drop(cancelled));
        let other = ask(breaker);
        let mine = breaker.acquire().ok();
        join(dropped);
        let permits: Vec<_> = [mine, join(other)].into_iter().flatten().collect();
        assert_eq!(permits.len(), 2);
        assert_eq!(breaker.acquire().unwrap_err().retry_after(), COOLDOWN);
        assert_eq!(hung.failure(), None);
        drop(permits);
        assert_eq!(free_slots(breaker), 2);
    });
}

/// One of two probes succeeds and one is dropped while a call asks.
#[test]
fn two_probes_that_end_together_free_two_slots() {
    loom::model(|| {
        let (breaker, _) = at_the_end_of_the_cooldown(CircuitBreaker::new().probes(2).success_threshold(2));
        let (good, cancelled) = (admit(breaker), admit(breaker));
        let threads = [thread::spawn(|| _ = good.success()), thread::spawn(|| drop(cancelled))];
        let third = breaker.acquire();
        for thread in threads {
            join(thread);
        }
        assert_eq!(breaker.state(), State::HalfOpen);
        assert_eq!(free_slots(breaker), if third.is_ok() { 1 } else { 2 });
        drop(third);
        assert!(admit(breaker).success().is_some(), "the first success was counted");
    });
}

#[test]
fn two_probes_that_succeed_together_close_it_once() {
    loom::model(|| {
        let (breaker, _) = at_the_end_of_the_cooldown(CircuitBreaker::new().probes(2).success_threshold(2));
        let threads = [admit(breaker), admit(breaker)].map(|permit| thread::spawn(|| permit.success()));
        assert_eq!(threads.into_iter().filter_map(join).count(), 1);
        assert_eq!(breaker.state(), State::Closed);
    });
}

/// Forced open while a probe is admitted and another fails.
#[test]
fn a_forced_state_stands_whatever_ends_meanwhile() {
    bounded(|| {
        let (breaker, _) = at_the_end_of_the_cooldown(CircuitBreaker::new().probes(2));
        let probe = admit(breaker);
        let threads = [thread::spawn(|| _ = probe.failure()), thread::spawn(|| drop(breaker.acquire()))];
        breaker.force_open();
        for thread in threads {
            join(thread);
        }
        assert_eq!(breaker.state(), State::ForcedOpen);
    });
}

/// A reset between two trips, so that the time of the first may be written after that of the second.
#[test]
fn a_late_writer_does_not_overwrite_a_later_time() {
    loom::model(|| {
        let (breaker, clock) = leak(CircuitBreaker::new().failure_threshold(1));
        clock.set(100);
        let first = admit(breaker);
        let trip = thread::spawn(|| first.failure());
        breaker.reset();
        let second = admit(breaker);
        clock.set(107);
        assert!(second.failure().is_some());
        clock.set(110);
        join(trip);
        assert_eq!(breaker.acquire().unwrap_err().retry_after(), Duration::from_secs(7));
    });
}
