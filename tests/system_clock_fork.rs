//! The default clock in a forked child, where the parent's timer thread does not exist.
#![cfg(all(unix, feature = "std"))]
#![allow(unsafe_code, reason = "nothing safe forks")]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use relent::clock::{Clock, SystemClock, SystemSleep};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn _exit(status: i32) -> !;
}

const WNOHANG: i32 = 1;
const SIGKILL: i32 = 9;
const BOUND: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs `checks` in a forked child, and says whether they passed in time.
fn passes_in_a_child(checks: impl FnOnce()) -> bool {
    // SAFETY: the child has one thread. It runs the checks, which allocate and start threads, as the C libraries of Linux
    // and macOS allow after a fork, and leaves without running what is registered for the exit of the parent.
    let child = unsafe { fork() };
    assert!(child >= 0, "no child could be forked");
    if child == 0 {
        let passed = catch_unwind(AssertUnwindSafe(checks)).is_ok();
        // SAFETY: it ends this process, and nothing of the parent's.
        unsafe { _exit(i32::from(!passed)) }
    }
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for the write, and the child is ours and not yet waited for.
        if unsafe { waitpid(child, &raw mut status, WNOHANG) } == child {
            return status == 0;
        }
        if start.elapsed() > BOUND {
            // SAFETY: the child has not been waited for, so the number still names it.
            unsafe {
                kill(child, SIGKILL);
                waitpid(child, ptr::null_mut(), 0);
            }
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn poll(sleep: &mut SystemSleep, waker: &Waker) -> Poll<()> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

fn block_on(future: impl Future<Output = ()>) {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}

fn wait_a_little() {
    let start = Instant::now();
    block_on(SystemClock.sleep(Duration::from_millis(3)));
    assert!(start.elapsed() >= Duration::from_millis(3));
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// One test, so that the first fork comes before any use of the timer.
#[test]
fn a_wait_in_a_forked_child_ends() {
    assert!(passes_in_a_child(wait_a_little), "before the parent used the timer");
    in_a_child_of_a_parent_that_waits();
    in_a_child_forked_while_the_lock_is_held();
    wait_a_little();
}

fn in_a_child_of_a_parent_that_waits() {
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut long = SystemClock.sleep(HOUR);
    let mut short = SystemClock.sleep(Duration::from_secs(1));
    assert_eq!(poll(&mut long, &waker), Poll::Pending);
    assert_eq!(poll(&mut short, &waker), Poll::Pending);
    let held = Arc::strong_count(&woken);
    let checks = || {
        assert_eq!(SystemClock::pending(), 0, "the parent's waits are not the child's");
        // The first wait of the child, as `long` was the parent's: a key that is taken for one of the child's would hit it.
        let mut own = SystemClock.sleep(HOUR);
        assert_eq!(poll(&mut own, Waker::noop()), Poll::Pending);
        assert_eq!(poll(&mut long, Waker::noop()), Poll::Pending);
        assert_eq!(SystemClock::pending(), 2, "the parent's wait goes on in the child");
        block_on(&mut short);
        assert!(passes_in_a_child(wait_a_little), "in a grandchild");
        drop(long);
        assert_eq!(SystemClock::pending(), 1);
        assert_eq!(woken.0.load(SeqCst), 0, "a waker of the parent's was woken in the child");
        assert_eq!(Arc::strong_count(&woken), held, "a waker of the parent's was dropped in the child");
    };
    assert!(passes_in_a_child(checks), "after the parent used the timer");
}

/// Other threads use the timer all the time, so some of the forks find its lock held, for ever.
fn in_a_child_forked_while_the_lock_is_held() {
    let done = AtomicBool::new(false);
    let passed = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    assert_eq!(poll(&mut SystemClock.sleep(HOUR), Waker::noop()), Poll::Pending);
                }
            });
        }
        let passed = (0..50).filter(|_| {
            let mut sleep = SystemClock.sleep(HOUR);
            assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Pending);
            passes_in_a_child(|| {
                wait_a_little();
                drop(sleep);
            })
        });
        let passed = passed.count();
        done.store(true, SeqCst);
        passed
    });
    assert_eq!(passed, 50);
}
