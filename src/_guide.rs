//! A guide to retrying: what there is to decide, and what the numbers say.
//!
//! The pages of the items say how each of them works. These pages say which to take and why, and refer to the items for
//! the rest. Each can be read on its own.
//!
//! | chapter | it answers |
//! | --- | --- |
//! | [choosing a policy](choosing_a_policy) | how long to wait, how often to try, when to give up |
//! | [what to retry](what_to_retry) | which failures may pass, and which calls may be repeated |
//! | [amplification] | what retries do to the service that fails, and in which layer they belong |
//! | [budgets and breakers](budgets_and_breakers) | how to bound that load, and where the guards go |
//! | [supervising] | how to restart and reconnect what should stay up |
//! | [queues] | who holds the wait, and which attempt is the last |
//! | [testing] | how to test your own retry code without waiting |
//! | [devices and browsers](devices_and_browsers) | what to bring where std has no clock |
//! | [recipes] | an HTTP client, a database transaction, a tower service, events |
//! | [migrating] | how to come from backon, tokio-retry, backoff and tower |
//! | [comparison] | facts about other crates, each with its test |
//! | [design] | why this crate is as it is |
//!
//! All code here is compiled and tested: by `cargo test` of this crate, or where it needs other crates, by the member
//! `tests/migrations` of its repository.

#[doc = include_str!("_guide/amplification.md")]
pub mod amplification {}

#[doc = include_str!("_guide/budgets_and_breakers.md")]
pub mod budgets_and_breakers {}

#[doc = include_str!("_guide/choosing_a_policy.md")]
pub mod choosing_a_policy {}

#[doc = include_str!("_guide/comparison.md")]
pub mod comparison {}

#[doc = include_str!("_guide/design.md")]
pub mod design {}

#[doc = include_str!("_guide/devices_and_browsers.md")]
pub mod devices_and_browsers {}

pub mod migrating;

#[doc = include_str!("_guide/queues.md")]
pub mod queues {}

pub mod recipes;

#[doc = include_str!("_guide/supervising.md")]
pub mod supervising {}

#[doc = include_str!("_guide/testing.md")]
pub mod testing {}

#[doc = include_str!("_guide/what_to_retry.md")]
pub mod what_to_retry {}
