//! A service that calls another one through `relent`, and a soak that holds it to its word.
//!
//! [`client`] is what a service would take over: the one place from which the other service is called. [`front`] is the
//! service itself, [`metrics`] and the [`log`] are what it shows of its calls. The rest is there to try them: an
//! [`upstream`] with [`faults`], a [`ledger`] of what became of each request, and the [`soak`].

pub mod client;
pub mod faults;
pub mod front;
pub mod ledger;
pub mod log;
pub mod metrics;
pub mod soak;
pub mod upstream;

/// For what is only reported.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
