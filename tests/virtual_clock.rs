//! The virtual clock: what it wakes, in which order, and what time is seen.

use std::cell::{Cell, RefCell};
use std::future::{self, Future};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::prelude::*;
use relent::clock::{Clock, VirtualClock, VirtualSleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Arc<Recorder>) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
}

/// Who was woken, and what time the clock read then.
type Log = Arc<Mutex<Vec<(usize, Duration)>>>;

/// A waker that writes to the log.
struct Recorder {
    name: usize,
    clock: VirtualClock,
    log: Log,
}

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        self.log.lock().unwrap().push((self.name, self.clock.now()));
    }
}

fn recorders<const N: usize>(clock: &VirtualClock) -> (Log, [Arc<Recorder>; N]) {
    let log = Log::default();
    let recorder = |name| Arc::new(Recorder { name, clock: clock.clone(), log: Arc::clone(&log) });
    let recorders = std::array::from_fn(recorder);
    (log, recorders)
}

#[test]
fn one_advance_wakes_in_order_of_deadlines_and_each_waker_sees_its_own() {
    let clock = VirtualClock::new();
    let (log, recorders) = recorders::<4>(&clock);
    let mut sleeps = [7, 3, 5, 11].map(|n| clock.sleep(secs(n)));
    for (sleep, recorder) in sleeps.iter_mut().zip(&recorders) {
        assert!(poll_with(sleep, recorder).is_pending());
    }

    clock.advance(secs(10));
    assert_eq!(*log.lock().unwrap(), [(1, secs(3)), (2, secs(5)), (0, secs(7))]);
    assert_eq!(clock.now(), secs(10));
    assert_eq!(clock.sleepers(), 1);
    assert!(sleeps[..3].iter_mut().all(|sleep| poll(sleep).is_ready()));

    clock.advance(SECOND);
    assert_eq!(log.lock().unwrap().last(), Some(&(3, secs(11))));
}

/// The order of the first polls, not of the calls of `sleep`.
#[test]
fn equal_deadlines_wake_in_order_of_registration() {
    let clock = VirtualClock::new();
    let (log, recorders) = recorders::<3>(&clock);
    let mut sleeps = [(); 3].map(|()| clock.sleep(SECOND));
    for name in [2, 0, 1] {
        assert!(poll_with(&mut sleeps[name], &recorders[name]).is_pending());
    }
    // A later poll keeps the place in the queue.
    assert!(poll_with(&mut sleeps[2], &recorders[2]).is_pending());

    clock.advance(SECOND);
    assert_eq!(*log.lock().unwrap(), [(2, SECOND), (0, SECOND), (1, SECOND)]);
}

#[test]
fn the_waker_of_the_last_poll_is_the_one_that_is_woken() {
    let clock = VirtualClock::new();
    let (log, recorders) = recorders::<2>(&clock);
    let mut sleep = clock.sleep(SECOND);
    assert!(poll_with(&mut sleep, &recorders[0]).is_pending());
    assert!(poll_with(&mut sleep, &recorders[1]).is_pending());

    clock.advance(SECOND);
    assert_eq!(*log.lock().unwrap(), [(1, SECOND)]);
}

/// Field case 29, for the clock: polls that nobody asked for do not move the deadline.
#[test]
fn spurious_polls_change_nothing() {
    let clock = VirtualClock::new();
    let mut sleep = clock.sleep(SECOND);
    for _ in 0..50 {
        clock.advance(ms(10));
        assert!(poll(&mut sleep).is_pending());
        assert_eq!(clock.sleepers(), 1);
    }
    clock.advance(ms(499));
    assert!(poll(&mut sleep).is_pending());
    clock.advance(ms(1));
    assert!(poll(&mut sleep).is_ready());
}

/// Field case 65.
#[test]
fn a_dropped_sleep_is_no_sleeper() {
    let clock = VirtualClock::new();
    let (log, [recorder]) = recorders(&clock);
    let mut sleep = clock.sleep(HOUR);
    assert!(poll_with(&mut sleep, &recorder).is_pending());
    clock.advance(SECOND);
    assert_eq!(clock.sleepers(), 1);

    drop(sleep);
    assert_eq!(clock.sleepers(), 0);
    assert_eq!(Arc::strong_count(&recorder), 1);
    clock.advance(HOUR);
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn an_ended_sleep_is_no_sleeper() {
    let clock = VirtualClock::new();
    let mut sleep = clock.sleep(SECOND);
    assert!(poll(&mut sleep).is_pending());
    clock.advance(SECOND);
    assert_eq!(clock.sleepers(), 0);
    assert!(poll(&mut sleep).is_ready());
    drop(sleep);
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_sleep_is_counted_from_its_call() {
    let clock = VirtualClock::new();
    let mut sleep = clock.sleep(secs(2));
    assert_eq!(clock.sleepers(), 0);
    clock.advance(SECOND);
    assert!(poll(&mut sleep).is_pending());
    clock.advance(SECOND);
    assert!(poll(&mut sleep).is_ready());
}

#[test]
fn a_zero_sleep_is_ready_at_once() {
    let clock = VirtualClock::new();
    assert!(poll(&mut clock.sleep(Duration::ZERO)).is_ready());
    assert_eq!(clock.block_on(clock.sleep(Duration::ZERO)), ());
    assert_eq!(clock.now(), Duration::ZERO);
}

#[test]
fn the_longest_sleep_never_ends_and_the_time_saturates() {
    let clock = VirtualClock::new();
    let mut never = clock.sleep(Duration::MAX);
    assert!(poll(&mut never).is_pending());
    clock.advance(SECOND);
    let mut past_the_end = clock.sleep(Duration::MAX.saturating_sub(ms(1)));
    let mut last = clock.sleep(Duration::MAX.saturating_sub(secs(2)));
    assert!(poll(&mut past_the_end).is_pending());
    assert!(poll(&mut last).is_pending());
    assert_eq!(clock.sleepers(), 1);

    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Duration::MAX);
    assert!(poll(&mut last).is_ready());
    assert!(poll(&mut never).is_pending());
    assert!(poll(&mut past_the_end).is_pending());

    clock.advance(SECOND);
    assert_eq!(clock.now(), Duration::MAX);
}

#[test]
fn clones_share_one_time() {
    let clock = VirtualClock::new();
    let other = clock.clone();
    let mut sleep = other.sleep(SECOND);
    assert!(poll(&mut sleep).is_pending());
    clock.advance(SECOND);
    assert_eq!(other.now(), SECOND);
    assert!(poll(&mut sleep).is_ready());
}

#[test]
fn the_clock_and_its_sleeps_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<VirtualClock>();
    is_send_and_sync::<VirtualSleep>();
}

/// A waker is code of others: it may use the clock while it is woken or dropped.
#[test]
fn a_waker_may_call_the_clock() {
    struct Caller(VirtualClock);
    impl Wake for Caller {
        fn wake(self: Arc<Self>) {
            self.0.advance(SECOND);
        }
    }
    impl Drop for Caller {
        fn drop(&mut self) {
            self.0.now();
        }
    }
    let clock = VirtualClock::new();
    let caller = || Waker::from(Arc::new(Caller(clock.clone())));
    let mut sleep = clock.sleep(secs(3));
    for _ in 0..2 {
        assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&caller())).is_pending());
    }
    clock.advance(secs(3));
    assert_eq!(clock.now(), secs(4));

    let mut dropped = clock.sleep(HOUR);
    assert!(Pin::new(&mut dropped).poll(&mut Context::from_waker(&caller())).is_pending());
    drop(dropped);
}

#[test]
fn block_on_jumps_from_deadline_to_deadline() {
    let clock = VirtualClock::new();
    let seen = clock.block_on(async {
        let mut seen = Vec::new();
        for wait in [HOUR, ms(1), secs(86_400)] {
            let before = clock.now();
            clock.sleep(wait).await;
            seen.push(clock.now().saturating_sub(before));
        }
        seen
    });
    assert_eq!(seen, [HOUR, ms(1), secs(86_400)]);
    assert_eq!(clock.now(), HOUR + ms(1) + secs(86_400));
}

/// A future that yields is not idle, however often it does.
#[test]
fn time_stands_still_while_a_future_can_run() {
    let clock = VirtualClock::new();
    let mut yields = 0;
    let yielding = future::poll_fn(|context| {
        assert_eq!(clock.now(), Duration::ZERO);
        yields += 1;
        if yields == 1000 {
            return Poll::Ready(None);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    let sleeping = async {
        clock.sleep(ms(1)).await;
        Some(clock.now())
    };
    let both: [Pin<Box<dyn Future<Output = Option<Duration>>>>; 2] = [Box::pin(sleeping), Box::pin(yielding)];
    assert_eq!(clock.block_on_all(both), [Some(ms(1)), None]);
}

#[test]
fn a_simulation_sees_every_deadline_in_order() {
    let clock = VirtualClock::new();
    let log = RefCell::new(Vec::new());
    let client = async |name: &'static str, wait| {
        for _ in 0..3 {
            clock.sleep(wait).await;
            log.borrow_mut().push((clock.now().as_secs(), name));
        }
        name
    };
    let outputs = clock.block_on_all([client("a", secs(2)), client("b", secs(3)), client("c", secs(2))]);
    assert_eq!(outputs, ["a", "b", "c"]);
    #[rustfmt::skip]
    assert_eq!(
        log.into_inner(),
        // At 6 s, b has registered before a and c.
        [(2, "a"), (2, "c"), (3, "b"), (4, "a"), (4, "c"), (6, "b"), (6, "a"), (6, "c"), (9, "b")],
    );
}

/// What one future does reaches another without a clock.
#[test]
fn futures_can_wake_each_other() {
    let clock = VirtualClock::new();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let (sender, receiver) = (Cell::new(Some(sender)), RefCell::new(receiver));
    let side = async |sends: bool| {
        if sends {
            clock.sleep(HOUR).await;
            sender.take().unwrap().send(42).unwrap();
            return 0;
        }
        future::poll_fn(|context| Pin::new(&mut *receiver.borrow_mut()).poll(context)).await.unwrap()
    };
    assert_eq!(clock.block_on_all([side(false), side(true)]), [42, 0]);
    assert_eq!(clock.now(), HOUR);
}

/// Only woken futures are polled: twice each, whatever the others do.
#[test]
fn polls_are_linear_in_the_events() {
    const CLIENTS: usize = 2_000;
    let clock = VirtualClock::new();
    let polls = AtomicUsize::new(0);
    let client = |wait: usize| {
        let mut sleep = clock.sleep(ms(wait as u64));
        let polls = &polls;
        future::poll_fn(move |context| {
            polls.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut sleep).poll(context)
        })
    };
    clock.block_on_all((1..=CLIENTS).map(client));
    assert_eq!(polls.into_inner(), 2 * CLIENTS);
}

#[test]
fn a_future_woken_twice_is_polled_once() {
    let clock = VirtualClock::new();
    let mut sleep = clock.sleep(SECOND);
    let mut polls = 0;
    clock.block_on(future::poll_fn(|context| {
        polls += 1;
        if polls == 1 {
            context.waker().wake_by_ref();
            context.waker().wake_by_ref();
        }
        Pin::new(&mut sleep).poll(context)
    }));
    assert_eq!(polls, 3); // the first, the one it woke itself for, the deadline
}

/// A future can end while something that it polled still has its waker.
#[test]
fn a_future_that_has_ended_is_dropped_and_not_polled_again() {
    let clock = VirtualClock::new();
    let (polls, shared) = (Cell::new(0), RefCell::new(clock.sleep(SECOND)));
    let client = |ends_at_once: bool| {
        let mut own = clock.sleep(secs(2));
        let (clock, polls, shared) = (&clock, &polls, &shared);
        future::poll_fn(move |context| {
            if ends_at_once {
                polls.set(polls.get() + 1);
                assert!(Pin::new(&mut *shared.borrow_mut()).poll(context).is_pending());
                assert!(Pin::new(&mut own).poll(context).is_pending());
                return Poll::Ready(clock.sleepers());
            }
            Pin::new(&mut own).poll(context).map(|()| clock.sleepers())
        })
    };
    let mut second = clock.sleep(SECOND);
    let observer = future::poll_fn(|context| Pin::new(&mut second).poll(context).map(|()| clock.sleepers()));
    let futures: [Pin<Box<dyn Future<Output = usize>>>; 3] =
        [Box::pin(client(true)), Box::pin(client(false)), Box::pin(observer)];
    // At the second, the shared sleep is over and only the second client sleeps.
    assert_eq!(clock.block_on_all(futures), [2, 0, 1]);
    assert_eq!(polls.get(), 1);
}

#[test]
fn nothing_to_run_is_done_at_once() {
    let clock = VirtualClock::new();
    assert_eq!(clock.block_on_all(Vec::<future::Ready<()>>::new()), []);
}

#[test]
#[should_panic(expected = "deadlock: none of the 1 unfinished futures was woken")]
fn a_deadlock_panics() {
    let clock = VirtualClock::new();
    clock.block_on_all([clock.sleep(SECOND), clock.sleep(Duration::MAX)]);
}

/// The panic of a future leaves the clock usable, and no sleeper behind.
#[test]
#[cfg_attr(panic = "abort", ignore = "a panic would end the process")]
fn a_panicking_future_unwinds_through() {
    let clock = VirtualClock::new();
    let client = async |panics: bool| {
        clock.sleep(SECOND).await;
        assert!(!panics, "as asked");
        clock.sleep(HOUR).await;
    };
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        clock.block_on_all([client(false), client(true)]);
    }));
    assert!(unwound.is_err());
    assert_eq!(clock.sleepers(), 0);
    clock.block_on(client(false));
    assert_eq!(clock.now(), secs(2) + HOUR);
}

/// A sleeper outside the simulation is woken on the way.
#[test]
fn block_on_wakes_sleepers_of_other_executors() {
    let clock = VirtualClock::new();
    let (log, [recorder]) = recorders(&clock);
    let mut outside = pin!(clock.sleep(SECOND));
    assert!(poll_with(&mut outside, &recorder).is_pending());
    clock.block_on(clock.sleep(HOUR));
    assert_eq!(*log.lock().unwrap(), [(0, SECOND)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Any waits, in any steps: nothing is early, nothing is late, and ties keep their order.
    #[test]
    fn sleeps_end_at_their_deadlines(
        waits in prop::collection::vec(0..50_u64, 1..40),
        steps in prop::collection::vec(0..20_u64, 0..10),
    ) {
        let clock = VirtualClock::new();
        let mut sleeps: Vec<_> = waits.iter().map(|&wait| clock.sleep(ms(wait))).collect();
        for step in steps {
            for (sleep, &wait) in sleeps.iter_mut().zip(&waits) {
                prop_assert_eq!(poll(sleep).is_ready(), ms(wait) <= clock.now());
            }
            prop_assert_eq!(clock.sleepers(), waits.iter().filter(|&&wait| ms(wait) > clock.now()).count());
            clock.advance(ms(step));
        }

        let clock = VirtualClock::new();
        let order = RefCell::new(Vec::new());
        let client = async |index: usize, wait: u64| {
            clock.sleep(ms(wait)).await;
            assert_eq!(clock.now(), ms(wait));
            order.borrow_mut().push((wait, index));
        };
        clock.block_on_all(waits.iter().enumerate().map(|(index, &wait)| client(index, wait)));
        let order = order.into_inner();
        prop_assert!(order.is_sorted(), "{:?}", order);
        prop_assert_eq!(order.len(), waits.len());
    }
}
