#![no_std]
// Of two definitions of a link the first one counts: these hold the pictures that the README's would look for in files.
#![cfg_attr(all(doc, feature = "std"), doc = include_str!("_guide/pictures.md"))]
#![cfg_attr(feature = "std", doc = include_str!("../README.md"))]
#![cfg_attr(feature = "std", doc = "\n# The guide\n\n[Twelve chapters](_guide): what to retry, how often, and why.")]
#![cfg_attr(not(feature = "std"), doc = "Retry that knows when to relent.")]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(any(doc, doctest), feature = "std"))]
pub mod _guide;
mod attempt;
pub mod backoff;
#[cfg(target_has_atomic = "64")]
pub mod breaker;
#[cfg(target_has_atomic = "64")]
pub mod budget;
pub mod clock;
mod decision;
mod env;
pub mod error;
pub mod fleet;
mod hooks;
pub mod levels;
mod ms;
pub mod policy;
pub mod queue;
pub mod retry;
pub mod rng;
mod run;
pub mod schedule;
#[cfg(target_has_atomic = "64")]
mod sync;
pub mod transient;

// Last, as its `call` is to stand last among the methods of a run, which rustdoc shows in the order of the source.
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub mod blocking;

pub use attempt::{Attempt, is_final_attempt, is_final_attempt_from_attempts_made};
#[cfg(feature = "alloc")]
#[doc(inline)]
pub use error::NonRetryableError;
#[cfg(feature = "alloc")]
#[doc(inline)]
pub use policy::backoff_sequence;
#[doc(inline)]
pub use policy::{Jitter, Policy};
#[doc(inline)]
pub use retry::retry;
