//! Coming from another crate: the code before, the code after, and what changes.
//!
//! Each pair makes the same calls. A test of the member `tests/migrations` runs both on paused time and compares when
//! they call and what they return.
//!
//! # What changes in all of them
//!
//! - **Limits count attempts here**, the first call included; elsewhere they count retries. Three retries are
//!   `.max_attempts(4)`.
//! - **Three attempts, a cap of 30 s and equal jitter** are what [`Policy::exponential`](crate::Policy::exponential)
//!   starts from. The code below sets what the code before had; where nobody chose it, leave the line out.
//! - **The timer is this crate's own.** `.sleep(tokio::time::sleep)` keeps tokio's, so that paused time still works in
//!   tests; without paused time leave the line out.
//! - **The closure gets an [`Attempt`](crate::Attempt)**: `|_| get()` where it was `get`.
//!
//! # backon 1.6
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("migrating/backon_before.rs")]
//! # }
//! ```
//!
//! becomes
//!
//! ```
#![doc = include_str!("migrating/backon_after.rs")]
//! ```
//!
//! | backon | here |
//! | --- | --- |
//! | `.with_jitter()`, up to twice the delay, over the cap too | [`Jitter`](crate::Jitter), never over the cap |
//! | `.with_total_delay(d)`, the sum of the sleeps | [`max_elapsed(d)`](crate::Policy::max_elapsed), the time since the start |
//! | `.adjust(f)` for a server's hint | [`.retry_after(f)`](crate::retry::Retry::retry_after), with a ceiling and within all limits |
//! | `.notify(f)` | [`.on_retry(f)`](crate::retry::Retry::on_retry), or [`.on_event(f)`](crate::retry::Retry::on_event) |
//! | `RetryableWithContext` | [`retry_with`](crate::retry::retry_with), which lends `&mut` state |
//! | `BlockingRetryable` | [`blocking::retry`](crate::blocking::retry) |
//! | `FibonacciBuilder` | a list of waits, or [`schedule_fn`](crate::schedule::schedule_fn) |
//!
//! # tokio-retry 0.3
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("migrating/tokio_retry_before.rs")]
//! # }
//! ```
//!
//! becomes
//!
//! ```
#![doc = include_str!("migrating/tokio_retry_after.rs")]
//! ```
//!
//! | tokio-retry | here |
//! | --- | --- |
//! | `ExponentialBackoff::from_millis(b).factor(f)`, which is `b^n · f` | the base is `b · f`, the [`multiplier`](crate::Policy::multiplier) is `b` |
//! | no `.take(n)` | [`.unbounded()`](crate::Policy::unbounded) |
//! | `.map(jitter)` | [`Jitter::Full`](crate::Jitter::Full) |
//! | any iterator of waits | a list; a closure with [`schedule_fn`](crate::schedule::schedule_fn) |
//! | a policy's waits as an iterator | [`Policy::delays`](crate::Policy::delays) |
//!
//! `from_millis(100)` alone waits 100 ms, 10 s and 1000 s. If that was not meant, `Policy::exponential` with 100 ms is.
//!
//! # backoff 0.4
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("migrating/backoff_before.rs")]
//! # }
//! ```
//!
//! becomes
//!
//! ```
#![doc = include_str!("migrating/backoff_after.rs")]
//! ```
//!
//! | backoff | here |
//! | --- | --- |
//! | `Error::permanent(e)` at the place that knows | [`NonRetryableError::new(e)`](crate::NonRetryableError) there, or `.when` at the run |
//! | `Error::retry_after(e, d)`, past any limit | [`RetryAfterError::new(e, d)`](crate::error::RetryAfterError), within the limits |
//! | `randomization_factor(p)`, over `max_interval` by `p` | [`Jitter::Proportional(p)`](crate::Jitter::Proportional), clamped to the cap |
//! | `max_elapsed_time`, 15 minutes unless set | no limit of time unless set, and 3 attempts |
//! | the closure is called before the sleep | after it |
//! | `backoff.reset()` | [`Backoff`](crate::backoff::Backoff), with `.reset()`, `.succeeded()` and `.healthy_after(d)` |
//!
//! # tower 0.5
//!
//! A policy of tower is a trait to implement; here the condition, the limit and the waits are given to the run, and each
//! attempt calls a clone of the service. `Response` is the service's own.
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("migrating/tower_before.rs")]
//! # }
//! ```
//!
//! becomes
//!
//! ```
//! # #[cfg(any())] // shown here, compiled by `tests/migrations`
//! # mod shown {
#![doc = include_str!("migrating/tower_after.rs")]
//! # }
//! ```
//!
//! | tower | here |
//! | --- | --- |
//! | jitter adds up to `base · j`, then the cap cuts it off | jitter below the cap, so there is spread at the cap |
//! | `TpsBudget::new(ttl, min_per_sec, ratio)` | [`RetryBudget`](crate::budget::RetryBudget), with the exact ratio |
//! | deposit on success, in the examples | each run counts when it starts |
//! | a changed request for the next attempt | the operation sees [`Attempt::number`](crate::Attempt::number) |
