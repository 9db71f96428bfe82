//! Time that moves only when it is told to, or when nothing else can happen.

use std::boxed::Box;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use std::vec;
use std::vec::Vec;

use super::Clock;

/// For tests and simulations of many runs, without a runtime.
///
/// Clones share one time. It is driven in one of two ways:
///
/// - [`block_on`](Self::block_on) and [`block_on_all`](Self::block_on_all) poll futures, and jump to the earliest
///   deadline whenever all of them are idle. A simulation of any length costs only its events.
/// - [`advance`](Self::advance) steps the time by hand, beside any executor.
///
/// Time never moves while a future is polled, unless that future calls `advance` to play work that takes a while. Sleeps
/// with equal deadlines end in the order in which they were first polled. So a simulation is the same in every run.
///
/// ```
/// use std::time::Duration;
/// use relent::clock::{Clock, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let client = async |wait| {
///     clock.sleep(Duration::from_secs(wait)).await;
///     clock.now().as_secs()
/// };
/// assert_eq!(clock.block_on_all([client(3600), client(5), client(60)]), [3600, 5, 60]);
/// assert_eq!(clock.now(), Duration::from_secs(3600));
/// ```
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    now: Duration,
    /// Who waits for what: no deadline in here has passed.
    sleepers: BTreeMap<Registration, Waker>,
    registrations: u64,
}

/// Sleepers are sorted by deadline, equal deadlines by the order of registration.
type Registration = (Duration, u64);

impl VirtualClock {
    /// A clock that reads zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the time by `duration`, and wakes every sleep whose deadline is reached, earliest first.
    ///
    /// While a sleep is being woken `now` reads its deadline; when this returns, `now` reads the end of the step. A
    /// task is polled by its executor, most often after that: then it sees the end, whichever deadline it waited for.
    /// Step from deadline to deadline where that matters, or use [`block_on`](Self::block_on), which does.
    ///
    /// The time saturates at [`Duration::MAX`].
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    /// use relent::clock::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// let mut sleep = pin!(clock.sleep(Duration::from_secs(2)));
    /// let mut context = Context::from_waker(Waker::noop());
    ///
    /// clock.advance(Duration::from_millis(1_999));
    /// assert_eq!(sleep.as_mut().poll(&mut context), Poll::Pending);
    /// assert_eq!(clock.sleepers(), 1);
    ///
    /// clock.advance(Duration::from_millis(1));
    /// assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(()));
    /// assert_eq!(clock.sleepers(), 0);
    /// ```
    pub fn advance(&self, duration: Duration) {
        let end = self.now().saturating_add(duration);
        loop {
            let mut state = self.lock();
            let Some(sleeper) = state.pop_due(end) else {
                state.now = state.now.max(end);
                return;
            };
            drop(state);
            sleeper.wake();
        }
    }

    /// How many sleeps wait for a deadline: polled, not yet ended, not dropped.
    ///
    /// One that never ends is not counted.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
    /// # use relent::clock::{Clock, VirtualClock};
    /// let clock = VirtualClock::new();
    /// {
    ///     let mut sleep = pin!(clock.sleep(Duration::from_secs(2)));
    ///     assert_eq!(clock.sleepers(), 0); // not yet polled
    ///     assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    ///     assert_eq!(clock.sleepers(), 1);
    /// }
    /// assert_eq!(clock.sleepers(), 0); // dropped
    /// ```
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// Runs `future` to its end, and jumps to the earliest deadline whenever it is idle.
    ///
    /// # Panics
    ///
    /// As [`block_on_all`](Self::block_on_all).
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::clock::{Clock, VirtualClock};
    ///
    /// let clock = VirtualClock::new();
    /// clock.block_on(clock.sleep(Duration::from_secs(86_400)));
    /// assert_eq!(clock.now(), Duration::from_secs(86_400));
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on_all([future]).remove(0)
    }

    /// Runs all `futures` side by side, and returns what they returned, in the order in which they were given.
    ///
    /// Each is first polled in that order, and later only when it was woken, so an event costs O(log n) in the number
    /// of sleepers. When all are idle the time moves to the earliest deadline. A future is dropped as soon as it ends.
    ///
    /// The futures need be neither `Send` nor `'static`: a simulated server can be a `RefCell` that all of them borrow.
    ///
    /// # Panics
    ///
    /// When a future is pending, none was woken and nobody sleeps on this clock, so that it would wait for ever. Wakes
    /// from other threads are not waited for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::clock::{Clock, VirtualClock};
    ///
    /// const SEC: Duration = Duration::from_secs(1);
    ///
    /// let clock = VirtualClock::new();
    /// let clients = [3, 1, 2].map(|seconds| {
    ///     let clock = &clock;
    ///     async move {
    ///         clock.sleep(seconds * SEC).await;
    ///         clock.now()
    ///     }
    /// });
    /// assert_eq!(clock.block_on_all(clients), [3 * SEC, SEC, 2 * SEC]);
    /// assert_eq!(clock.now(), 3 * SEC);
    /// ```
    #[track_caller]
    pub fn block_on_all<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
        let ready = Arc::new(Mutex::new(Ready::default()));
        let task = |(index, future)| Task {
            future: Some(Box::pin(future)),
            waker: Waker::from(Arc::new(WakeTask { index, ready: Arc::clone(&ready) })),
        };
        let mut tasks: Vec<Task<F>> = futures.into_iter().enumerate().map(task).collect();
        let mut outputs: Vec<Option<F::Output>> = tasks.iter().map(|_| None).collect();
        let mut running = tasks.len();
        *lock(&ready) = Ready { queue: (0..running).collect(), queued: vec![true; running] };

        while running > 0 {
            let next = lock(&ready).pop();
            let Some(index) = next else {
                let sleeper = self.lock().pop_due(Duration::MAX);
                let Some(sleeper) = sleeper else {
                    panic!(
                        "deadlock: none of the {running} unfinished futures was woken, and nobody sleeps on this clock"
                    );
                };
                sleeper.wake();
                continue;
            };
            let Task { future: slot, waker } = &mut tasks[index];
            let Some(future) = slot else { continue };
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                outputs[index] = Some(output);
                *slot = None;
                running -= 1;
            }
        }
        outputs.into_iter().flatten().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Locks, poisoned or not: no code of others runs under a lock of this module, so none is left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes the sleeper with the earliest deadline, if that is not after `end`, and moves the time to it.
    fn pop_due(&mut self, end: Duration) -> Option<Waker> {
        let sleeper = self.sleepers.first_entry().filter(|sleeper| sleeper.key().0 <= end)?;
        let ((deadline, _), waker) = sleeper.remove_entry();
        self.now = deadline;
        Some(waker)
    }
}

struct Task<F> {
    future: Option<Pin<Box<F>>>,
    waker: Waker,
}

/// Which futures of one `block_on_all` are to be polled, each at most once.
#[derive(Default)]
struct Ready {
    queue: VecDeque<usize>,
    queued: Vec<bool>,
}

impl Ready {
    fn push(&mut self, index: usize) {
        if !mem::replace(&mut self.queued[index], true) {
            self.queue.push_back(index);
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let index = self.queue.pop_front()?;
        self.queued[index] = false;
        Some(index)
    }
}

struct WakeTask {
    index: usize,
    ready: Arc<Mutex<Ready>>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        lock(&self.ready).push(self.index);
    }
}

impl Clock for VirtualClock {
    type Sleep = VirtualSleep;

    fn now(&self) -> Duration {
        self.lock().now
    }

    fn sleep(&self, duration: Duration) -> VirtualSleep {
        let deadline = self.now().saturating_add(duration);
        VirtualSleep { clock: self.clone(), deadline, registration: None }
    }
}

/// A sleep on a [`VirtualClock`]: ready once the time has reached its deadline, never if that saturates at
/// [`Duration::MAX`].
#[derive(Debug)]
#[must_use = "a sleep does nothing unless polled"]
pub struct VirtualSleep {
    clock: VirtualClock,
    deadline: Duration,
    registration: Option<Registration>,
}

impl Future for VirtualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.get_mut();
        if sleep.deadline == Duration::MAX {
            return Poll::Pending;
        }
        // Cloned before the lock and dropped after it: a waker is code of others, which may call this clock.
        let waker = context.waker().clone();
        let mut state = sleep.clock.lock();
        if state.now >= sleep.deadline {
            drop(state);
            sleep.deregister();
            return Poll::Ready(());
        }
        let registration = *sleep.registration.get_or_insert_with(|| {
            state.registrations += 1;
            (sleep.deadline, state.registrations)
        });
        let replaced = state.sleepers.insert(registration, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl VirtualSleep {
    fn deregister(&mut self) {
        if let Some(registration) = self.registration.take() {
            let waker = self.clock.lock().sleepers.remove(&registration);
            // The lock is free again.
            drop(waker);
        }
    }
}

impl Drop for VirtualSleep {
    fn drop(&mut self) {
        self.deregister();
    }
}
