//! Retry that knows when to relent.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod attempt;
pub mod clock;
pub mod levels;
pub mod rng;
pub mod schedule;

pub use attempt::{Attempt, is_final_attempt, is_final_attempt_from_attempts_made};
