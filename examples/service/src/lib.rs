//! A service that calls another one through `relent`.
//!
//! [`client`] is what a service would take over: the one place from which the other service is called. [`front`] is the
//! service itself, [`metrics`] what it shows of its calls, with the [`log`]. The rest is there to try them: a [`upstream`] with [`faults`],
//! and a [`ledger`] of what became of each request.

pub mod client;
pub mod faults;
pub mod front;
pub mod ledger;
pub mod log;
pub mod metrics;
pub mod upstream;

/// For what is only reported.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
