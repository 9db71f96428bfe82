//! The code of the guide that needs other crates, as a library that compiles.
//!
//! The files stand beside the guide, which shows them, so that they are in the package too.

#[path = "../../../src/_guide/migrating/backoff_after.rs"]
pub mod backoff_after;
#[path = "../../../src/_guide/migrating/backoff_before.rs"]
pub mod backoff_before;
#[path = "../../../src/_guide/migrating/backon_after.rs"]
pub mod backon_after;
#[path = "../../../src/_guide/migrating/backon_before.rs"]
pub mod backon_before;
#[path = "../../../src/_guide/recipes/http.rs"]
pub mod http;
#[path = "../../../src/_guide/recipes/postgres.rs"]
pub mod postgres;
#[path = "../../../src/_guide/migrating/tokio_retry_after.rs"]
pub mod tokio_retry_after;
#[path = "../../../src/_guide/migrating/tokio_retry_before.rs"]
pub mod tokio_retry_before;
#[path = "../../../src/_guide/migrating/tower_after.rs"]
pub mod tower_after;
#[path = "../../../src/_guide/migrating/tower_before.rs"]
pub mod tower_before;

/// What a service answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// As in HTTP.
    pub status: u16,
}
