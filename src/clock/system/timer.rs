//! One thread that wakes sleeps, and the queue that it shares with them.
//!
//! The queue only wakes. Whether a sleep is over is decided by the clock, in the sleep's own poll, so a wake too many is
//! harmless and none is awaited.
//!
//! One mutex guards everything that changes in more than one step, and no foreign code runs while it is held: wakers are
//! cloned before, and woken and dropped after. So there is no lock order and no interleaving to explore. The two atomics
//! beside it are single facts: the owner, which every thread of a process writes alike, and how far the queue is swept,
//! which only grows.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::mem;
use core::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use core::task::Waker;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{process, thread};

use super::now;
use super::queue::{Key, Queue};

/// The grain of the queue, in nanoseconds. One switch of threads costs as much as dozens of wakes, so a crowd is woken in
/// batches.
const TICK: u64 = 500_000;

/// In ticks: how long the thread waits at most before it looks whether it is still needed.
const IDLE: u64 = 1_000_000_000 / TICK;

/// How many wakers the thread takes at one locking.
const BATCH: usize = 64;

/// The alarm of a thread that will look at the queue by itself.
const AWAKE: u64 = 0;

/// Stands for the process id before the first use; no process that uses a clock has it.
const UNCLAIMED: u32 = 0;

static FIRST: Timer = Timer::new(UNCLAIMED);

pub(super) struct Timer {
    process: AtomicU32,
    state: Mutex<State>,
    bell: Condvar,
    /// Each sleep that was due by this tick has left the queue. Where `usize` is small, it stops at the largest: a 64-bit
    /// atomic is not to be had everywhere.
    swept: AtomicUsize,
    /// The timer of a forked process. It cannot use its parent's: that one's thread is not there, and its lock may have
    /// been held at the fork.
    child: OnceLock<Box<Timer>>,
}

struct State {
    queue: Queue,
    running: bool,
    /// The tick at which the thread looks at the queue next. For an earlier one the bell has to ring.
    alarm: u64,
    /// The queue's tickets when the thread last found nothing to wait for.
    seen: u64,
}

impl State {
    /// Whether a sleep waits, or one came since this was last asked of an empty queue.
    fn in_use(&mut self) -> bool {
        self.queue.len() > 0 || mem::replace(&mut self.seen, self.queue.tickets()) != self.seen
    }
}

impl Timer {
    const fn new(process: u32) -> Self {
        Self {
            process: AtomicU32::new(process),
            state: Mutex::new(State { queue: Queue::new(), running: false, alarm: AWAKE, seen: 0 }),
            bell: Condvar::new(),
            swept: AtomicUsize::new(0),
            child: OnceLock::new(),
        }
    }

    /// The timer of this process.
    pub(super) fn current() -> &'static Self {
        // Only Unix can fork, and not every other target has process ids.
        let process = if cfg!(unix) { process::id() } else { 1 };
        let mut timer = &FIRST;
        while let Some(child) = timer.child.get() {
            timer = child;
        }
        match timer.process.load(Relaxed) {
            UNCLAIMED => timer.process.store(process, Relaxed),
            owner if owner == process => {}
            _ => timer = timer.child.get_or_init(|| Box::new(Self::new(process))),
        }
        timer
    }

    pub(super) fn pending(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether a sleep of `deadline` has certainly left the queue.
    pub(super) fn has_swept(&self, deadline: u64) -> bool {
        due(deadline) <= self.swept.load(Acquire) as u64
    }

    /// Has `waker` woken at `deadline`, in place of the waker under `key` if that still waits.
    ///
    /// `None` if nothing will wake it: the deadline has passed meanwhile, or the thread cannot start.
    pub(super) fn register(&'static self, key: Option<Key>, deadline: u64, mut waker: Waker) -> Option<Key> {
        // Whatever is left in `waker`, a parameter, is dropped after the guard.
        let mut state = self.lock();
        if let Some(waiting) = key.and_then(|key| state.queue.waker_mut(key)) {
            mem::swap(waiting, &mut waker);
            return key;
        }
        if self.has_swept(deadline) {
            return None;
        }
        if !state.running {
            thread::Builder::new().name("relent-timer".into()).spawn(|| self.run()).ok()?;
            state.running = true;
        }
        let tick = due(deadline);
        let key = state.queue.insert(tick, waker);
        if tick < state.alarm {
            state.alarm = AWAKE;
            drop(state);
            self.bell.notify_one();
        }
        Some(key)
    }

    pub(super) fn remove(&self, key: Key) {
        let waker = self.lock().queue.remove(key);
        drop(waker);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut state = self.lock();
        loop {
            let tick = now() / TICK;
            state = self.sweep(state, tick, &mut batch);
            let look = tick + IDLE;
            state.alarm = state.queue.next_tick().map_or(look, |next| next.min(look));
            let timeout = until(state.alarm, now());
            let (guard, wait) = self.bell.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if wait.timed_out() && !state.in_use() {
                state.queue.release();
                state.running = false;
                state.alarm = AWAKE;
                return;
            }
        }
    }

    /// Wakes every sleep that is due at `tick`.
    fn sweep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        tick: u64,
        batch: &mut Vec<Waker>,
    ) -> MutexGuard<'a, State> {
        state.alarm = AWAKE;
        loop {
            batch.extend(iter::from_fn(|| state.queue.pop_due(tick)).take(BATCH));
            if batch.len() < BATCH {
                self.swept.store(usize::try_from(tick).unwrap_or(usize::MAX), Release);
            }
            if batch.is_empty() {
                return state;
            }
            drop(state);
            batch.drain(..).for_each(wake);
            state = self.lock();
        }
    }
}

/// The first tick that is not before `deadline`.
fn due(deadline: u64) -> u64 {
    deadline.div_ceil(TICK)
}

/// How long it takes from `now` to `tick`.
fn until(tick: u64, now: u64) -> Duration {
    Duration::from_nanos((tick * TICK).saturating_sub(now))
}

/// A waker is foreign code: its panic is the end of one wake, not of the timer.
fn wake(waker: Waker) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // Dropping what was thrown could throw again.
        mem::forget(panic);
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::ptr;

    use super::*;

    #[test]
    fn starts_with_the_first_timer() {
        assert!(ptr::eq(Timer::current(), &raw const FIRST));
    }

    #[test]
    fn rings_only_for_what_the_thread_would_miss() {
        static TIMER: Timer = Timer::new(1);
        // As if the thread slept until tick 10; no real one starts.
        TIMER.lock().running = true;
        TIMER.lock().alarm = 10;
        for (tick, alarm) in [(11, 10), (10, 10), (9, AWAKE)] {
            TIMER.register(None, tick * TICK, Waker::noop().clone());
            assert_eq!(TIMER.lock().alarm, alarm, "tick {tick}");
        }
    }

    #[test]
    fn is_in_use_until_it_was_found_empty_and_unchanged() {
        let mut state = Timer::new(1).state.into_inner().unwrap();
        assert!(!state.in_use());
        for _ in 0..2 {
            let key = state.queue.insert(1, Waker::noop().clone());
            assert!(state.in_use());
            state.queue.remove(key);
            // The sleep has come and gone, and the next may follow it.
            assert!(state.in_use());
            assert!(!state.in_use() && !state.in_use());
        }
    }

    #[test]
    fn looks_once_a_second_and_never_waits_for_the_past() {
        assert_eq!(until(IDLE, 0), Duration::from_secs(1));
        assert_eq!(until(3, TICK + 1), Duration::from_nanos(2 * TICK - 1));
        assert_eq!((until(3, 3 * TICK), until(3, u64::MAX)), (Duration::ZERO, Duration::ZERO));
    }

    /// What is due at the same tick leaves the queue in batches, and the sweep is over with the last.
    #[test]
    fn has_not_swept_what_the_next_batch_will_wake() {
        static TIMER: Timer = Timer::new(1);
        struct Look(AtomicUsize);
        impl Wake for Look {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(usize::from(TIMER.has_swept(5 * TICK)), Relaxed);
            }
        }
        let look = Arc::new(Look(AtomicUsize::new(0)));
        for _ in 0..=BATCH {
            TIMER.lock().queue.insert(5, look.clone().into());
        }
        drop(TIMER.sweep(TIMER.lock(), 5, &mut Vec::new()));
        assert_eq!((look.0.load(Relaxed), TIMER.pending()), (1, 0));
    }

    /// A sleep can be swept past between its look at the clock and its registration; then no sweep is to come for it.
    #[test]
    fn knows_how_far_it_has_swept() {
        static TIMER: Timer = Timer::new(1);
        TIMER.lock().queue.insert(3, Waker::noop().clone());
        drop(TIMER.sweep(TIMER.lock(), 5, &mut Vec::new()));
        assert_eq!(TIMER.pending(), 0);
        assert!(TIMER.has_swept(5 * TICK) && !TIMER.has_swept(5 * TICK + 1));
    }

    #[test]
    fn refuses_what_the_sweep_has_passed() {
        static TIMER: Timer = Timer::new(1);
        TIMER.swept.store(5, Relaxed);
        assert!(TIMER.register(None, 5 * TICK, Waker::noop().clone()).is_none());
        assert_eq!(TIMER.pending(), 0);
        assert!(!TIMER.has_swept(5 * TICK + 1));
    }
}
