//! A stop signal that any thread can give.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A flag that is raised once and stays up; raising it ends the waits of every run that listens.
///
/// Clones are the same flag. A run listens by `.cancel_on(&flag)`, a blocking one as well as an async one; a loop of your
/// own reads [`is_stopped`](Self::is_stopped), and async code awaits [`stopped`](Self::stopped).
///
/// [`stop`](Self::stop) takes a lock: call it from a thread that waits for the process's signals, not inside a signal
/// handler, which may run while its own thread holds that lock.
///
/// ```
/// use std::{thread, time::Duration};
/// use relent::{Policy, blocking, blocking::StopFlag, retry::StopReason};
///
/// let flag = StopFlag::new();
/// let worker = thread::spawn({
///     let flag = flag.clone();
///     let hour = Policy::fixed(Duration::from_secs(3600));
///     move || blocking::retry(|_| Err::<(), _>("refused"), hour).cancel_on(&flag).report().call()
/// });
/// flag.stop();
/// let report = worker.join().unwrap(); // at once
/// assert_eq!(report.result, Err("refused"));
/// assert_eq!((report.attempts, report.stop), (1, Some(StopReason::Cancelled)));
/// assert!(flag.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    /// Who waits for the flag, by the number of the registration; nobody once it is up.
    waiting: BTreeMap<u64, Waker>,
    registrations: u64,
}

impl StopFlag {
    /// A flag that is down.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag and wakes whoever waits for it; has no effect a second time.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let waiting = mem::take(&mut state.waiting);
        // A waker is code of others, which may look at this flag, and whose panic must not cost the next one its wake.
        drop(state);
        let wake = |waker: Waker| catch_unwind(AssertUnwindSafe(|| waker.wake()));
        if let Err(panic) = waiting.into_values().map(wake).fold(Ok(()), Result::and) {
            resume_unwind(panic);
        }
    }

    /// Whether the flag is up.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// A future that is ready once the flag is up.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// # use relent::blocking::StopFlag;
    /// let flag = StopFlag::new();
    /// let mut stopped = pin!(flag.stopped());
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(stopped.as_mut().poll(&mut context), Poll::Pending);
    /// flag.stop();
    /// assert_eq!(stopped.as_mut().poll(&mut context), Poll::Ready(()));
    /// ```
    pub fn stopped(&self) -> Stopped {
        Stopped { flag: self.clone(), registration: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under this lock, so no panic leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IntoFuture for &StopFlag {
    type Output = ();
    type IntoFuture = Stopped;

    fn into_future(self) -> Stopped {
        self.stopped()
    }
}

/// The future of [`StopFlag::stopped`]. Once dropped, the flag knows nothing of it.
#[derive(Debug)]
#[must_use = "a future does nothing unless polled"]
pub struct Stopped {
    flag: StopFlag,
    registration: Option<u64>,
}

impl Future for Stopped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { flag, registration } = self.get_mut();
        // Cloned before the lock and dropped after it, as a waker is code of others.
        let waker = cx.waker().clone();
        let mut state = flag.lock();
        if state.is_stopped {
            return Poll::Ready(());
        }
        let key = *registration.get_or_insert_with(|| {
            state.registrations += 1;
            state.registrations
        });
        let replaced = state.waiting.insert(key, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(key) = self.registration {
            let waker = self.flag.lock().waiting.remove(&key);
            // The lock is free again.
            drop(waker);
        }
    }
}
