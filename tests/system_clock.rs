//! The default clock, on its real timer. Nothing here asserts how late a wait ends, only that it ends, and not early.
#![cfg(feature = "std")]

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::process::{Child, Command};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use relent::clock::{Clock, SystemClock, SystemSleep};

/// Longer than any wait here takes on a machine that is busy with other things.
const BOUND: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3600);

/// The timer is one for the process, so tests that count its waits take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn poll(sleep: &mut SystemSleep, waker: &Waker) -> Poll<()> {
    Pin::new(sleep).poll(&mut Context::from_waker(waker))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        thread::sleep(ms(1));
    }
}

/// The smallest executor: it parks.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

#[test]
fn is_a_small_value_that_goes_anywhere() {
    const CLOCK: SystemClock = SystemClock;
    fn goes_anywhere<T: Send + Sync + Unpin + 'static>() {}
    goes_anywhere::<SystemSleep>();
    assert!(size_of::<SystemSleep>() <= 32);
    assert_eq!(size_of_val(&CLOCK), 0);
    assert_eq!(format!("{:?}", CLOCK.sleep(Duration::MAX)), r#"SystemSleep { until: "never", .. }"#);
    assert_eq!(format!("{:?}", CLOCK.sleep(Duration::ZERO)), "SystemSleep { until: 0ns, .. }");
}

#[test]
fn time_passes_and_a_sleep_is_not_early() {
    let _turn = alone();
    for wait in [Duration::from_nanos(1), Duration::from_micros(300), ms(1), ms(7)] {
        let (real, before) = (Instant::now(), SystemClock.now());
        block_on(SystemClock.sleep(wait));
        assert!(real.elapsed() >= wait);
        assert!(SystemClock.now() >= before + wait);
    }
}

#[test]
fn a_sleep_counts_from_the_call_and_stays_ready() {
    let _turn = alone();
    let mut sleep = SystemClock.sleep(ms(5));
    thread::sleep(ms(5));
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(()));
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(()));
}

#[test]
fn a_zero_wait_is_ready_at_once_and_an_endless_one_never() {
    let _turn = alone();
    assert_eq!(poll(&mut SystemClock.sleep(Duration::ZERO), Waker::noop()), Poll::Ready(()));
    for endless in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_nanos(u64::MAX)] {
        let (count, waker) = counter();
        let mut sleep = SystemClock.sleep(endless);
        assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
        assert_eq!(SystemClock::pending(), 0, "{endless:?} is on the timer");
        drop(waker);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}

/// A wait that ends after all goes through the timer, and leaves it.
#[test]
fn five_centuries_fit() {
    let _turn = alone();
    let mut sleep = SystemClock.sleep(Duration::from_secs(500 * 365 * 86_400));
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Pending);
    assert_eq!(SystemClock::pending(), 1);
    block_on(SystemClock.sleep(ms(2)));
    drop(sleep);
    assert_eq!(SystemClock::pending(), 0);
}

#[test]
fn a_hundred_thousand_sleepers_wake_and_none_early() {
    let _turn = alone();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let sleeper = |i: u64| async move {
            let (wait, start) = (Duration::from_micros(i % 1000 * 500), Instant::now());
            SystemClock.sleep(wait).await;
            assert!(start.elapsed() >= wait, "early");
        };
        let tasks: Vec<_> = (0..100_000).map(|i| tokio::spawn(sleeper(i))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(SystemClock::pending(), 0);
}

#[test]
fn a_hundred_thousand_sleepers_with_one_deadline_wake_once_each() {
    let _turn = alone();
    let (count, waker) = counter();
    let mut sleeps: Vec<_> = (0..100_000).map(|_| SystemClock.sleep(ms(500))).collect();
    let waiting = sleeps.iter_mut().map(|sleep| usize::from(poll(sleep, &waker).is_pending())).sum();
    eventually("all are woken", || count.get() >= waiting);
    assert_eq!(SystemClock::pending(), 0);
    assert!(sleeps.iter_mut().all(|sleep| poll(sleep, &waker).is_ready()));
    assert_eq!(count.get(), waiting);
}

#[test]
fn a_hundred_thousand_dropped_sleeps_leave_nothing() {
    let _turn = alone();
    let (count, waker) = counter();
    let mut sleeps: Vec<_> = (0..100_000).map(|i| SystemClock.sleep(HOUR + ms(i))).collect();
    assert_eq!(SystemClock::pending(), 0, "a sleep waits from its first poll");
    assert!(sleeps.iter_mut().all(|sleep| poll(sleep, &waker).is_pending()));
    assert_eq!(SystemClock::pending(), 100_000);
    drop(sleeps.split_off(40_000));
    assert_eq!(SystemClock::pending(), 40_000);
    drop(sleeps);
    assert_eq!(SystemClock::pending(), 0);
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1, "a waker is still held");
    assert_eq!(count.get(), 0);
}

#[test]
fn the_last_waker_polled_is_woken_and_the_one_before_is_let_go() {
    let _turn = alone();
    let ((first, first_waker), (last, last_waker)) = (counter(), counter());
    let mut sleep = SystemClock.sleep(ms(1000));
    assert_eq!(poll(&mut sleep, &first_waker), Poll::Pending);
    drop(first_waker);
    assert_eq!(poll(&mut sleep, &last_waker), Poll::Pending);
    assert_eq!(SystemClock::pending(), 1);
    assert_eq!(Arc::strong_count(&first), 1, "the replaced waker is still held");
    eventually("the last waker is woken", || last.get() == 1);
    assert_eq!(first.get(), 0);
    assert_eq!(poll(&mut sleep, &last_waker), Poll::Ready(()));
    assert_eq!(SystemClock::pending(), 0);
}

/// A panic thrown in `wake`, and one more when what was thrown is dropped.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_waker_harms_no_other() {
    struct Thrower;
    struct Grenade;
    impl Wake for Thrower {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new(Grenade));
        }
    }
    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("thrown from what was thrown");
        }
    }

    let _turn = alone();
    let (count, waker) = counter();
    let thrower = Waker::from(Arc::new(Thrower));
    let mut sleeps: Vec<_> = (0..1000).map(|_| SystemClock.sleep(ms(1000))).collect();
    for (i, sleep) in sleeps.iter_mut().enumerate() {
        let waker = if i % 10 == 0 { &thrower } else { &waker };
        assert_eq!(poll(sleep, waker), Poll::Pending);
    }
    eventually("the others are woken", || count.get() == 900);
    block_on(SystemClock.sleep(ms(1)));
}

/// A waker that uses the clock when it is cloned, woken and dropped would wait for ever for a lock that is held.
#[test]
#[allow(unsafe_code, reason = "only a raw waker can act when it is cloned")]
fn no_waker_is_touched_under_the_lock() {
    static CALLS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, release);
    fn touch(kind: usize) {
        let _ = SystemClock::pending();
        CALLS[kind].fetch_add(1, SeqCst);
    }
    fn clone(data: *const ()) -> RawWaker {
        touch(0);
        RawWaker::new(data, &VTABLE)
    }
    fn wake(_: *const ()) {
        touch(1);
    }
    fn release(_: *const ()) {
        touch(2);
    }

    let _turn = alone();
    // SAFETY: the table's functions never read the data, own nothing, and may be called on any thread.
    let waker = unsafe { Waker::new(ptr::null(), &VTABLE) };
    let mut sleep = SystemClock.sleep(ms(1000));
    let mut dropped = SystemClock.sleep(HOUR);
    for _ in 0..2 {
        assert_eq!(poll(&mut sleep, &waker), Poll::Pending);
        assert_eq!(poll(&mut dropped, &waker), Poll::Pending);
    }
    drop(dropped);
    let calls = || [0, 1, 2].map(|kind: usize| CALLS[kind].load(SeqCst));
    assert_eq!(calls(), [4, 0, 3]);
    eventually("it is woken", || calls() == [4, 1, 3]);
}

/// A thread that is not told of an earlier deadline finds it when it looks by itself, after up to a second: a hundred
/// times that is over the bound.
#[test]
fn an_earlier_deadline_is_not_held_up_by_a_later_one() {
    let _turn = alone();
    let start = Instant::now();
    let mut later = SystemClock.sleep(HOUR);
    assert_eq!(poll(&mut later, Waker::noop()), Poll::Pending);
    for _ in 0..100 {
        block_on(SystemClock.sleep(ms(3)));
    }
    assert!(start.elapsed() < BOUND);
    assert_eq!(poll(&mut later, Waker::noop()), Poll::Pending);
}

#[test]
fn sleeps_race_polls_and_drops_on_many_threads() {
    let _turn = alone();
    thread::scope(|scope| {
        for seed in 0..4u64 {
            scope.spawn(move || {
                for i in 0..500 {
                    let mut short = SystemClock.sleep(Duration::from_micros((seed * 131 + i * 17) % 1500));
                    let mut long = SystemClock.sleep(HOUR);
                    block_on(poll_fn(|cx| {
                        assert_eq!(Pin::new(&mut long).poll(cx), Poll::Pending);
                        Pin::new(&mut short).poll(cx)
                    }));
                }
            });
        }
    });
    assert_eq!(SystemClock::pending(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_ends_when_idle_and_starts_again() {
    fn timer_threads() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "relent-timer").count()
    }

    let _turn = alone();
    let mut sleep = SystemClock.sleep(HOUR);
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Pending);
    eventually("the thread has its name", || timer_threads() == 1);
    thread::sleep(ms(1500));
    assert_eq!(timer_threads(), 1, "a waiting sleep keeps the thread");
    drop(sleep);
    eventually("the idle thread ends", || timer_threads() == 0);
    block_on(SystemClock.sleep(ms(1)));
}

/// Runs one ignored test of this file in a process of its own.
fn in_a_process(test: &str, configure: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--test-threads=1"]);
    configure(&mut command);
    command.spawn().unwrap()
}

fn assert_ends_well(mut child: Child) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > BOUND {
            child.kill().unwrap();
            panic!("the process did not end within {BOUND:?}");
        }
        thread::sleep(ms(5));
    };
    assert!(status.success(), "{status}");
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn child_that_ends_while_a_sleep_waits() {
    let mut sleep = SystemClock.sleep(HOUR);
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Pending);
    assert_eq!(SystemClock::pending(), 1);
    std::mem::forget(sleep);
}

#[test]
fn a_waiting_sleep_does_not_hold_the_process_open() {
    assert_ends_well(in_a_process("child_that_ends_while_a_sleep_waits", |_| {}));
}

#[test]
#[ignore = "runs in a process of its own, started by another test"]
fn child_that_cannot_start_a_thread() {
    if std::env::var_os("RUST_MIN_STACK").is_none() {
        return;
    }
    assert!(thread::Builder::new().spawn(|| {}).is_err(), "a thread did start, so this test shows nothing");
    let start = Instant::now();
    let mut polls = 0;
    let mut sleep = SystemClock.sleep(ms(500));
    block_on(poll_fn(|cx| {
        polls += 1;
        let poll = Pin::new(&mut sleep).poll(cx);
        assert_eq!(SystemClock::pending(), 0, "nothing may wait for a thread that is not there");
        poll
    }));
    assert!(start.elapsed() >= ms(500));
    assert!(polls > 2, "one poll blocked for the whole wait");
}

/// The child asks for more stack than there is address space, so it can start no thread.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_wait_ends_even_if_no_thread_can_start() {
    assert_ends_well(in_a_process("child_that_cannot_start_a_thread", |command| {
        command.env("RUST_MIN_STACK", (1u64 << 50).to_string());
    }));
}
