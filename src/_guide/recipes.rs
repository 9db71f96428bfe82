//! Short programs with other crates: an HTTP client, a database, a service of tower, events.
//!
//! The member `tests/migrations` compiles the first two, runs the first against a server on loopback, and tests what the
//! second retries.
//!
//! # reqwest
//!
//! What is retried is the whole unit of work: sending, the status, and reading the body. The status decides what kind of
//! error it becomes: a permanent one is marked, a server's `Retry-After` goes along with the error, all else is retried,
//! an attempt that hangs as well.
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("recipes/http.rs")]
//! # }
//! ```
//!
//! After a refused connection `post` knows that the server has seen nothing. Any other failure of it may have had its
//! effect, and ends the run.
//!
//! # sqlx and PostgreSQL
//!
//! A transaction is retried from its beginning, never a statement of it. Two failures ask for that by their code; a lost
//! connection may have lost the answer of a `COMMIT` that did happen.
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("recipes/postgres.rs")]
//! # }
//! ```
//!
//! The pool of sqlx tries a refused connection again by itself, without end, until its `acquire_timeout` (30 s unless
//! set) makes it `PoolTimedOut`. A run around it multiplies that time: five attempts at a database that is down last two
//! and a half minutes. Set a shorter one.
//!
//! ```
//! assert_eq!(5 * 30, 150);
//! ```
//!
//! # tower
//!
//! See [migrating](super::migrating#tower-05): `retry` around a clone of the service for each attempt. Where a
//! [`CircuitBreaker`](crate::breaker::CircuitBreaker) belongs, wrap the `oneshot` or the run in `.call(…)`.
//!
//! # Events and counters
//!
//! A crate for logs or metrics needs one closure. This one counts; `tracing::warn!` goes in the same place.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use relent::retry::Event;
//! use relent::{Attempt, Policy, clock::VirtualClock, retry};
//!
//! #[derive(Default)]
//! struct Counters { retries: AtomicU32, succeeded: AtomicU32, failed: AtomicU32 }
//!
//! impl Counters {
//!     fn count<E>(&self, event: &Event<'_, E>) {
//!         match event {
//!             Event::Scheduled { .. } => &self.retries,
//!             Event::Succeeded { .. } => &self.succeeded,
//!             _ => &self.failed,
//!         }
//!         .fetch_add(1, Relaxed);
//!     }
//! }
//!
//! let (clock, counters) = (VirtualClock::new(), Counters::default());
//! let run = |fails: u32| {
//!     let call = move |a: Attempt| async move {
//!         if a.number() <= fails { Err("busy") } else { Ok(()) }
//!     };
//!     retry(call, Policy::DEFAULT)
//!         .clock(&clock)
//!         .on_event(|event| counters.count(event))
//! };
//! clock.block_on_all([run(0), run(1), run(9)]);
//! let read = |counter: &AtomicU32| counter.load(Relaxed);
//! assert_eq!([&counters.retries, &counters.succeeded, &counters.failed].map(read), [3, 2, 1]);
//! ```
//!
//! A run that is dropped tells of nothing, and neither does one whose only allowed attempt failed: there is no retry to
//! tell of. Count calls where they are made. `examples/service` of the repository has both kinds of counter.
