//! With the default clock nothing is allocated for a wait once its table has grown.
#![cfg(feature = "std")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use relent::clock::{Clock, SystemClock, SystemSleep};

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

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

const SLEEPS: usize = 1000;

fn poll(sleep: &mut SystemSleep, waker: &Waker) -> Poll<()> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

/// Sleeps that are polled twice and run out, and sleeps that are dropped while they wait.
fn round(sleeps: &mut Vec<SystemSleep>, count: &Count, waker: &Waker) {
    count.0.store(0, SeqCst);
    let mut short = 0;
    for i in 0..SLEEPS {
        let is_short = i % 2 == 0;
        let wait = if is_short { Duration::from_millis(50) } else { Duration::from_secs(3600) };
        let mut sleep = SystemClock.sleep(wait);
        let waits = poll(&mut sleep, waker).is_pending() && poll(&mut sleep, waker).is_pending();
        short += usize::from(is_short && waits);
        sleeps.push(sleep);
    }
    let start = Instant::now();
    while count.0.load(SeqCst) < short {
        assert!(start.elapsed() < Duration::from_secs(60), "not all were woken");
        thread::sleep(Duration::from_millis(1));
    }
    sleeps.clear();
}

#[test]
fn a_wait_allocates_nothing_once_the_table_has_grown() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut sleeps = Vec::with_capacity(SLEEPS);
    // One that stays keeps the thread, and its table.
    let mut stays = SystemClock.sleep(Duration::from_secs(3600));
    assert_eq!(poll(&mut stays, &waker), Poll::Pending);

    let start = ALLOCATIONS.load(SeqCst);
    round(&mut sleeps, &count, &waker);
    let grown = ALLOCATIONS.load(SeqCst);
    assert!(grown > start, "the growth of the table is not counted");
    round(&mut sleeps, &count, &waker);
    round(&mut sleeps, &count, &waker);
    assert_eq!(ALLOCATIONS.load(SeqCst) - grown, 0);
}
