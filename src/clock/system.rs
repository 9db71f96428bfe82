//! The system's clock, and waits that need no runtime.

mod queue;
mod timer;

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use self::queue::Key;
use self::timer::Timer;
use super::Clock;

const READY: u64 = 0;
const NEVER: u64 = u64::MAX;

/// How long a poll blocks at most when no thread can wake it.
const SLICE: Duration = Duration::from_millis(1);

/// The default clock: [`Instant`] for the time, and for the waits one thread that serves any executor.
///
/// # Time
///
/// [`now`](Clock::now) counts from the first use of the clock in this process, and [`Instant`] says what passes: on
/// Linux and macOS it stands still while the machine is suspended, so a wait of one hour takes one hour of waking time.
///
/// # Waits
///
/// A wait counts from the call of [`sleep`](Clock::sleep). It never ends early; it ends at the next tick of the timer,
/// of which there is one every half millisecond, as soon as the system runs the thread. A zero wait is ready at once, and
/// one that would end more than 584 years after the clock's origin never ends; neither touches the timer. Whoever polled
/// last is woken.
///
/// The timer's thread, `relent-timer`, starts when a pending wait is first polled, and ends one to two seconds after the
/// last one. It does not keep the process alive. A dropped wait leaves nothing behind, and nothing is allocated for a
/// wait that finds room in the table, which grows to the most waits there ever were at once and is freed with the
/// thread. A waker that panics harms no other wait; one that blocks delays them all.
///
/// - If the thread cannot start, each poll of a wait blocks for up to a millisecond and wakes itself: slow and wasteful,
///   but it ends.
/// - After a `fork`, waits in the child end, those that the parent began included. The child has a thread of its own.
///
/// ```
/// use std::time::Duration;
/// use relent::clock::{Clock, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")] // without a timer of its own
/// # async fn main() {
/// let wait = Duration::from_millis(5);
/// let before = SystemClock.now();
/// SystemClock.sleep(wait).await;
/// assert!(SystemClock.now() >= before + wait);
/// assert_eq!(SystemClock::pending(), 0);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// How many waits of this process the timer holds now: a gauge for operators.
    #[must_use]
    pub fn pending() -> usize {
        Timer::current().pending()
    }
}

impl Clock for SystemClock {
    type Sleep = SystemSleep;

    fn now(&self) -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        ORIGIN.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> SystemSleep {
        let deadline = if duration.is_zero() { READY } else { nanos(self.now().saturating_add(duration)) };
        SystemSleep { deadline, entry: None }
    }
}

/// The time since the clock's origin, in nanoseconds.
fn now() -> u64 {
    nanos(SystemClock.now())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

/// A wait of [`SystemClock`]. Once over, it is ready at every poll.
#[must_use = "a sleep waits only while it is polled"]
pub struct SystemSleep {
    /// In nanoseconds since the clock's origin.
    deadline: u64,
    /// Where the waker of the last poll lies, unless the timer has taken it since.
    entry: Option<(&'static Timer, Key)>,
}

impl SystemSleep {
    /// The key of this sleep on `timer`. One that was left on the timer of a parent process is of no use.
    fn key(&self, timer: &Timer) -> Option<Key> {
        self.entry.filter(|(owner, _)| ptr::eq(*owner, timer)).map(|(_, key)| key)
    }

    fn leave(&mut self) {
        // Asked first because it takes neither the lock nor the process id, and is so for every sleep that was woken.
        if self.entry.is_some_and(|(owner, _)| !owner.has_swept(self.deadline)) {
            let timer = Timer::current();
            if let Some(key) = self.key(timer) {
                timer.remove(key);
            }
        }
        self.entry = None;
    }
}

impl Future for SystemSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.deadline == NEVER {
            return Poll::Pending;
        }
        if self.deadline == READY || self.deadline <= now() {
            self.leave();
            self.deadline = READY;
            return Poll::Ready(());
        }
        let timer = Timer::current();
        self.entry = timer.register(self.key(timer), self.deadline, cx.waker().clone()).map(|key| (timer, key));
        if self.entry.is_none() {
            let left = Duration::from_nanos(self.deadline.saturating_sub(now()));
            thread::sleep(left.min(SLICE));
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for SystemSleep {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for SystemSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sleep = f.debug_struct("SystemSleep");
        match self.deadline {
            NEVER => sleep.field("until", &"never"),
            deadline => sleep.field("until", &Duration::from_nanos(deadline)),
        };
        sleep.finish_non_exhaustive()
    }
}
