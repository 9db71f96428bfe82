//! A run that tells what it did.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use super::operation::{Attempts, InFlight};
use super::{Retry, StopReason};
use crate::env::{Env, Environment, Signal, Time};
use crate::error::Marking;
use crate::hooks::Hooks;
use crate::rng::Rng;
use crate::schedule::Schedule;

/// A run that resolves to a [`Report`] of itself.
///
/// ```
/// use relent::{Policy, retry};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let reported = retry(async |_| Ok::<_, &str>(42), Policy::DEFAULT).report();
/// assert_eq!(reported.await.result, Ok(42));
/// # });
/// ```
#[must_use = "a retry makes no attempt until it is awaited, or called if it is blocking"]
pub struct Reported<F: InFlight<X::Clock>, S, H, X: Environment> {
    retry: Retry<F, S, H, X>,
    started: Option<Duration>,
}

impl<F: InFlight<X::Clock>, S, H, X: Environment> Reported<F, S, H, X> {
    pub(super) const fn new(retry: Retry<F, S, H, X>) -> Self {
        Self { retry, started: None }
    }

    #[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
    pub(crate) fn into_retry(self) -> Retry<F, S, H, X> {
        self.retry
    }
}

/// What a run did.
///
/// ```
/// use core::time::Duration;
/// use relent::{Policy, clock::InstantClock, retry, retry::StopReason};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let policy = Policy::fixed(Duration::from_secs(1));
/// let run = retry(async |_| Err::<(), _>("busy"), policy).clock(InstantClock::new());
/// let report = run.report().await;
/// assert_eq!(report.result, Err("busy"));
/// assert_eq!((report.attempts, report.elapsed), (3, Duration::from_secs(2)));
/// assert_eq!(report.stop, Some(StopReason::Exhausted));
/// # });
/// ```
///
/// `Debug` prints no error text.
#[must_use = "the report holds the run's result"]
#[non_exhaustive]
pub struct Report<T, E> {
    /// The caller's own result.
    pub result: Result<T, E>,
    /// How many attempts were made.
    pub attempts: u32,
    /// From the first poll to the end, on the run's clock.
    pub elapsed: Duration,
    /// Why the run stopped, if it did not succeed.
    pub stop: Option<StopReason>,
}

impl<T, E> fmt::Debug for Report<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("succeeded", &self.result.is_ok())
            .field("attempts", &self.attempts)
            .field("elapsed", &self.elapsed)
            .field("stop", &self.stop)
            .finish()
    }
}

impl<F, S, H, C, R, M, G> Future for Reported<F, S, H, Env<C, R, M, G>>
where
    F: Attempts<C>,
    S: Schedule,
    H: Hooks<F::Error>,
    C: Time,
    R: Rng,
    M: Marking<F::Error>,
    G: Signal,
{
    type Output = Report<F::Output, F::Error>;

    #[allow(unsafe_code, reason = "pin projection")]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `retry` is only ever handed out pinned, and `Reported` has no `Drop` of its own.
        let (mut retry, started) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.retry), &mut this.started)
        };
        let started = match *started {
            Some(started) => started,
            None => *started.insert(retry.as_mut().start()),
        };
        let (result, stop) = ready!(retry.as_mut().drive(cx));
        let run = &retry.run;
        let attempts = run.progress.failures().saturating_add(u32::from(result.is_ok()));
        Poll::Ready(Report { result, attempts, elapsed: run.clock.now().saturating_sub(started), stop })
    }
}

impl<F: InFlight<X::Clock>, S, H, X: Environment> fmt::Debug for Reported<F, S, H, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reported").field(&self.retry).finish()
    }
}
