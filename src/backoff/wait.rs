//! The wait before an attempt, as a value of its own.

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// What is left of the wait before the next attempt: an owned future.
///
/// It borrows nothing from the [`Backoff`](super::Backoff) that made it, so outcomes can be reported while it is
/// pending; they do not change it. Dropping it cancels the wait, and nothing else. A wait of zero touches no timer. One
/// that is over at its first poll yields once, so that a loop of them lets other tasks, timers and cancellation live.
///
/// ```
/// # use core::time::Duration;
/// # use relent::{Policy, backoff::Backoff, clock::{Clock, VirtualClock}};
/// # const SEC: Duration = Duration::from_secs(1);
/// let clock = VirtualClock::new();
/// let mut backoff = Backoff::new(Policy::fixed(5 * SEC)).clock(&clock);
/// backoff.failed();
/// let wait = backoff.attempt().unwrap();
/// assert_eq!(wait.delay(), 5 * SEC);
/// backoff.reset(); // does not change it
/// clock.block_on(wait);
/// assert_eq!(clock.now(), 5 * SEC);
/// ```
#[must_use = "a wait does nothing until it is awaited"]
pub struct Wait<W> {
    sleep: Option<W>,
    delay: Duration,
    has_yielded: bool,
}

impl<W> Wait<W> {
    pub(super) const fn new(sleep: Option<W>, delay: Duration) -> Self {
        Self { sleep, delay, has_yielded: false }
    }

    /// How long the wait takes, counted from the call of [`attempt`](super::Backoff::attempt).
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Waits no longer than `limit`: a wait that takes longer is not begun.
    ///
    /// The length is known, so the answer comes at once. A wait of exactly `limit` is within it.
    ///
    /// # Errors
    ///
    /// [`WaitTooLong`] if the wait takes longer than `limit`.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent::{Policy, backoff::Backoff};
    ///
    /// const SEC: Duration = Duration::from_secs(1);
    ///
    /// let mut backoff = Backoff::new(Policy::fixed(60 * SEC));
    /// backoff.failed();
    /// let error = backoff.attempt().unwrap().within(2 * SEC).unwrap_err();
    /// assert_eq!(error.limit(), 2 * SEC);
    /// assert!(backoff.attempt().unwrap().within(60 * SEC).is_ok());
    /// ```
    pub fn within(self, limit: Duration) -> Result<Self, WaitTooLong> {
        if self.delay > limit { Err(WaitTooLong { delay: self.delay, limit }) } else { Ok(self) }
    }
}

impl<W: Future<Output = ()>> Future for Wait<W> {
    type Output = ();

    #[allow(unsafe_code, reason = "pin projection")]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `sleep` is only ever handed out pinned, and is dropped in place by `Pin::set`; `Wait` has no `Drop` of
        // its own.
        let (mut sleep, has_yielded) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.sleep), &mut this.has_yielded)
        };
        let is_over = sleep.as_mut().as_pin_mut().is_none_or(|sleep| sleep.poll(cx).is_ready());
        if is_over {
            sleep.set(None);
        }
        let is_first_poll = !mem::replace(has_yielded, true);
        match (is_over, is_first_poll) {
            (true, false) => Poll::Ready(()),
            (true, true) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            (false, _) => Poll::Pending,
        }
    }
}

impl<W> fmt::Debug for Wait<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("delay", &self.delay).finish_non_exhaustive()
    }
}

/// A wait would have taken longer than it may.
///
/// ```
/// # use core::time::Duration;
/// # use relent::{Policy, backoff::Backoff, clock::VirtualClock};
/// let (minute, limit) = (Duration::from_secs(60), Duration::from_secs(2));
/// let mut backoff = Backoff::new(Policy::fixed(minute)).clock(VirtualClock::new());
/// backoff.failed();
/// let error = backoff.attempt().unwrap().within(limit).unwrap_err();
/// assert_eq!((error.delay(), error.limit()), (minute, limit));
/// assert_eq!(error.to_string(), "the wait of 60s is longer than the 2s it may take");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTooLong {
    delay: Duration,
    limit: Duration,
}

impl WaitTooLong {
    /// How long the wait would have taken.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// How long it may take.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }
}

impl fmt::Display for WaitTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the wait of {:?} is longer than the {:?} it may take", self.delay, self.limit)
    }
}

impl Error for WaitTooLong {}
