//! What holds for every public type: it can be moved between threads and shared by them, moved after it was pinned, and
//! printed, unless it stands in a list of exceptions with its reason.
//!
//! The member `tests/surface` finds the types that are missing here.

use std::fmt::Debug;
use std::future::{Future, Ready, ready};
use std::time::Duration;

use relent::backoff::{self, Backoff};
use relent::blocking::{self, StopFlag};
use relent::breaker::{self, CircuitBreaker};
use relent::budget::{self, RetryBudget};
use relent::levels::{self, Level, Levels};
use relent::retry::{self, Event, Report, Retrying, StopReason, retry_with};
use relent::{Attempt, Jitter, NonRetryableError, Policy, clock, error, fleet, policy, queue, rng, schedule};

fn is_shared<T: Send + Sync + Unpin + Debug>() {}
fn is_shared_run(_: &(impl Future + Send + Sync + Unpin + Debug)) {}
fn is_shared_but_pinned(_: &(impl Future + Send + Sync + Debug)) {}

macro_rules! shared {
    ($($type:ty),* $(,)?) => { $(is_shared::<$type>();)* };
}

#[test]
fn values() {
    shared!(Attempt, Jitter, Policy, StopReason);
    shared!(policy::Growth, policy::PolicyConfig, policy::PolicyError, policy::StatefulJitter);
    shared!(policy::Table, policy::Row, policy::Rows, policy::Delays<rng::SeededRng>);
    shared!(Level, Levels, levels::LevelsError);
    shared!(schedule::Progress, schedule::ScheduleFn<fn(u32) -> Option<Duration>>);
    shared!(schedule::MaxAttempts<Policy>, schedule::MaxElapsed<Policy>);
    shared!(queue::Verdict, queue::Disposition, queue::DeadLetterReason, queue::BullMqBackoffStrategy);
    shared!(fleet::Site, fleet::SiteSchedule, fleet::Migration);
    shared!(rng::DefaultRng, rng::FixedRng, rng::SeededRng, rng::RngFn<fn() -> f64>);
}

#[test]
fn errors() {
    shared!(NonRetryableError, error::RetryAfterError, error::NotExecuted, error::CircuitOpen, error::Signs);
    shared!(error::Auto<()>, error::Undecided, error::Unmarked);
    shared!(error::Typed, error::Dynamic, error::Boxed, error::Erased, error::Plain);
}

#[test]
fn clocks() {
    shared!(clock::SystemClock, clock::SystemSleep, clock::VirtualClock, clock::VirtualSleep);
    shared!(clock::InstantClock, clock::InstantSleep);
    shared!(clock::ClockFn<fn() -> Duration, fn(Duration) -> Ready<()>>);
}

#[test]
fn guards() {
    shared!(RetryBudget, budget::BudgetConfig, budget::BudgetError);
    shared!(CircuitBreaker, breaker::Permit<'_, clock::SystemClock>, breaker::CallError<&str>);
    shared!(breaker::State, breaker::Transition, breaker::BreakerConfig, breaker::BreakerError);
}

#[test]
fn drivers() {
    shared!(Report<(), &str>, Event<'_, &str>, Retrying<'_, &str>, retry::AttemptTimeout);
    shared!(Backoff<Policy>, backoff::Exhausted, backoff::Wait<clock::SystemSleep>, backoff::WaitTooLong);
    shared!(StopFlag, blocking::Stopped, blocking::Blocking<fn()>, blocking::Parked, blocking::ParkedSleep);
}

/// The types `Retry` and `Reported`. Like any future of another, they are pinned with what they hold.
#[test]
fn runs() {
    is_shared_run(&retry::retry(|_| ready(Err::<(), _>("E")), Policy::DEFAULT));
    is_shared_run(&retry::retry(|_| ready(Err::<(), _>("E")), Policy::DEFAULT).report());
    is_shared_but_pinned(&retry::retry(async |_| Err::<(), _>("E"), Policy::DEFAULT));
    is_shared_but_pinned(&retry::retry(async |_| Err::<(), _>("E"), Policy::DEFAULT).report());
}

/// The type `With`, which a run of `retry_with` holds, names a future of the compiler's.
#[test]
fn runs_with_state() {
    is_shared_but_pinned(&retry_with(&mut 0, async |_: &mut i32, _| Err::<(), _>("E"), Policy::DEFAULT));
}

/// A run is `Send` when what it is made of is; it need not be `Sync`.
#[test]
fn a_run_asks_for_no_more_than_it_holds() {
    fn is_send(_: &(impl Future + Send)) {}
    let calls = std::cell::Cell::new(0); // `Send`, not `Sync`
    let run = retry::retry(
        move |_| {
            calls.set(calls.get() + 1);
            ready(Err::<(), _>("E"))
        },
        Policy::DEFAULT,
    );
    is_send(&run);
}
