//! What the broker examples are drilled with: a flaky [`Sink`], [`Workers`] that can be killed and a [`Server`] that can
//! be stopped.
//!
//! A drill publishes messages through workers that are processes of their own, breaks things on the way, and counts
//! afterwards.

mod checks;
mod server;
mod sink;
mod workers;

pub use checks::Checks;
pub use server::Server;
pub use sink::{Answer, Held, Record, Sink, Try, publish};
pub use workers::Workers;

/// What went wrong, for a program that only prints it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Messages of a drill, numbered from 1.
pub const MESSAGES: u64 = 2000;

/// Whether no attempt can ever publish this message: one in a hundred.
#[must_use]
pub fn is_poison(message: u64) -> bool {
    message % 100 == 7
}

/// Whether every attempt to publish this message fails with an error that might have passed: five of all.
#[must_use]
pub fn is_hopeless(message: u64) -> bool {
    message % 400 == 3
}

/// What the sink says to a message: 15 % of all tries are told to come back, and 5 % are broken off.
///
/// The same for the same message and try in every drill.
#[must_use]
pub fn answer(message: u64, number: usize) -> Answer {
    use relent::rng::{Rng, SeededRng};

    let draw = SeededRng::new(message * 1000 + number as u64).next_f64();
    match draw {
        _ if is_poison(message) => Answer::Malformed,
        _ if is_hopeless(message) => Answer::Busy,
        ..0.15 => Answer::Busy,
        ..0.20 => Answer::HangUp,
        _ => Answer::Ok,
    }
}
