//! What must hold for any input. Each target takes bytes, and panics if it does not.
//!
//! `tests/fuzz/run SECONDS` looks for new inputs, guided by coverage; `cargo test --package relent-fuzz` replays those
//! that are kept in `corpus/`.

mod driver;
mod policy_text;
mod retry_after;

pub use driver::driver;
pub use policy_text::policy_text;
pub use retry_after::retry_after;
