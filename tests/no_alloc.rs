//! A run allocates nothing, and one with an injected clock starts no thread.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use relent::clock::{Clock, InstantClock, SystemClock, clock_fn};
use relent::retry::retry_with;
use relent::rng::SeededRng;
use relent::{Policy, retry};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What `future` yields, and how often something was allocated meanwhile.
fn counted<F: Future>(waker: &Waker, future: F) -> (F::Output, usize) {
    let mut context = Context::from_waker(waker);
    let before = ALLOCATIONS.load(SeqCst);
    let mut future = pin!(future);
    let output = loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            break output;
        }
        thread::park();
    };
    (output, ALLOCATIONS.load(SeqCst) - before)
}

/// The threads of this process, where the system tells.
fn threads() -> Option<usize> {
    cfg!(target_os = "linux").then(|| std::fs::read_dir("/proc/self/task").unwrap().count())
}

/// One test, as whatever else runs in the process would be counted too.
#[test]
fn a_run_allocates_nothing() {
    const POLICY: Policy = Policy::exponential(Duration::from_millis(1));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    assert!(counted(&waker, async { black_box(Box::new(1)) }).1 > 0, "nothing is counted");
    let before = threads();

    for failures in [0, 2] {
        let now = Cell::new(Duration::ZERO);
        let clock = clock_fn(
            || now.get(),
            |wait| {
                now.set(now.get() + wait);
                ready(())
            },
        );
        let op = async |attempt: relent::Attempt| if attempt.number() > failures { Ok(7) } else { Err("E") };
        let run = retry(op, POLICY).when(|_| true).on_retry(|_| ()).on_event(|_| ()).max_elapsed(Duration::MAX);
        let run = run.attempt_timeout(Duration::from_secs(1), |_| "timed out").cancel_on(std::future::pending::<()>());
        assert_eq!(counted(&waker, run.clock(&clock)), (Ok(7), 0));

        let mut state = 0;
        let op = async |state: &mut u32, _| {
            *state += 1;
            if *state > failures { Ok(7) } else { Err("E") }
        };
        assert_eq!(counted(&waker, retry_with(&mut state, op, POLICY).clock(&clock)), (Ok(7), 0));
    }

    // Twenty attempts up to a cap of 30 s: ten minutes pass at once, and no timer's thread runs beside them.
    let clock = InstantClock::new();
    let policy = POLICY.max_delay(Duration::from_secs(30)).max_attempts(20);
    let run = retry(async |_| Err::<(), _>("E"), policy).clock(&clock).rng(SeededRng::new(1));
    assert_eq!(counted(&waker, run).0, Err("E"));
    assert_eq!(clock.waits().len(), 19);
    assert!(clock.now() > Duration::from_secs(60), "{:?}", clock.now());
    assert_eq!(threads(), before);

    // A wait that stays keeps the timer's thread, and its table.
    let mut stays = pin!(SystemClock.sleep(Duration::from_secs(3600)));
    assert_eq!(stays.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
    assert_ne!(threads(), before.or(Some(0)), "the timer's thread is not counted");
    let system = || retry(async |_| Err::<(), _>("E"), Policy::fixed(Duration::from_millis(2)));
    counted(&waker, system()).0.unwrap_err();
    assert_eq!(counted(&waker, system()), (Err("E"), 0));
}
