//! What the tests of the drivers share.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::cell::RefCell;
use std::future::{Ready, ready};
use std::time::Duration;

use relent::clock::{Clock, VirtualClock};

pub const MS: Duration = Duration::from_millis(1);
pub const SEC: Duration = Duration::from_secs(1);

/// An operation that follows a script and records when it was called; past its end, the last entry repeats.
pub struct Script<T, E> {
    pub clock: VirtualClock,
    results: Vec<Result<T, E>>,
    calls: RefCell<Vec<Duration>>,
}

impl<T: Clone, E: Clone> Script<T, E> {
    pub fn new(results: impl Into<Vec<Result<T, E>>>) -> Self {
        Self { clock: VirtualClock::new(), results: results.into(), calls: RefCell::default() }
    }

    pub fn call(&self) -> Ready<Result<T, E>> {
        let mut calls = self.calls.borrow_mut();
        calls.push(self.clock.now());
        ready(self.results[calls.len().min(self.results.len()) - 1].clone())
    }

    /// When the operation was called, on the clock of the script.
    pub fn calls(&self) -> Vec<Duration> {
        self.calls.borrow().clone()
    }

    pub fn count(&self) -> usize {
        self.calls.borrow().len()
    }
}

/// A script that always fails.
pub fn always_fails() -> Script<(), &'static str> {
    Script::new([Err("E")])
}
