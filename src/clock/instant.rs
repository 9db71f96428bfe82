//! A clock on which nothing takes time but what is waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec::Vec;

use super::Clock;

/// For the test of one run, on any executor: a sleep is ready at its first poll, and moves this clock by its length.
///
/// Clones share one time and one list of waits: give a clone, or a reference, to the run, and ask the one you kept.
///
/// Nothing runs beside a sleep, so whichever is polled wins: an attempt that is pending under a timeout is timed out at
/// once, and two sleeps take the sum of both, for each begins when it is polled. Use a
/// [`VirtualClock`](super::VirtualClock) there.
///
/// ```
/// use std::time::Duration;
/// use relent::clock::{Clock, InstantClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = InstantClock::new();
/// clock.sleep(Duration::from_secs(2)).await;
/// clock.advance(Duration::from_millis(10)); // the operation took a while
/// clock.sleep(Duration::from_secs(4)).await;
///
/// assert_eq!(clock.waits(), [Duration::from_secs(2), Duration::from_secs(4)]);
/// assert_eq!(clock.now(), Duration::from_millis(6_010));
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct InstantClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    now: Duration,
    waits: Vec<Duration>,
}

impl InstantClock {
    /// A clock that reads zero and has not been waited on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the time without a wait, as an operation does that takes this long. Saturates at [`Duration::MAX`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relent::clock::{Clock, InstantClock};
    /// let clock = InstantClock::new();
    /// clock.advance(Duration::from_secs(3));
    /// assert_eq!(clock.now(), Duration::from_secs(3));
    /// assert!(clock.waits().is_empty());
    /// ```
    pub fn advance(&self, duration: Duration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(duration);
    }

    /// The length of each sleep that was polled, in the order of their first polls.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().waits.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under this lock with the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for InstantClock {
    type Sleep = InstantSleep;

    fn now(&self) -> Duration {
        self.lock().now
    }

    fn sleep(&self, duration: Duration) -> InstantSleep {
        InstantSleep { clock: self.clone(), duration, done: false }
    }
}

/// A sleep on an [`InstantClock`]: ready at its first poll, or never if its end cannot be represented.
#[derive(Debug)]
#[must_use = "a sleep does nothing unless polled"]
pub struct InstantSleep {
    clock: InstantClock,
    duration: Duration,
    done: bool,
}

impl Future for InstantSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if !self.done {
            let mut state = self.clock.lock();
            let Some(end) = state.now.checked_add(self.duration).filter(|end| *end < Duration::MAX) else {
                return Poll::Pending;
            };
            state.now = end;
            state.waits.push(self.duration);
            drop(state);
            self.done = true;
        }
        Poll::Ready(())
    }
}
