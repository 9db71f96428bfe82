//! Simulations of clients that fail together, run with relent's own `retry`, policies, guards and virtual clock.
//!
//! - [`contention`]: many clients update one row, and there is no limit to what its server can do.
//! - [`overload`]: many clients use a service that can do so much and no more, crashes, and comes back.
//! - [`spread`]: where the waits of those that failed together fall, and what a simulated retry costs.
//! - [`charts`]: the pictures of the last two.

pub mod charts;
pub mod contention;
pub mod overload;
pub mod spread;

use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
