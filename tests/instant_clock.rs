//! The clock on which a sleep is ready at once, and the clock made of two closures.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use relent::clock::{Clock, InstantClock, InstantSleep, clock_fn};

const SECOND: Duration = Duration::from_secs(1);

fn poll(future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_sleep_moves_the_clock_by_its_length() {
    let clock = InstantClock::new();
    let of_the_run = clock.clone();
    assert_eq!((clock.now(), clock.waits()), (Duration::ZERO, vec![]));

    of_the_run.sleep(2 * SECOND).await;
    assert_eq!(clock.now(), 2 * SECOND);
    of_the_run.advance(Duration::from_millis(500)); // work, not a wait
    of_the_run.sleep(4 * SECOND).await;
    Clock::sleep(&&clock, Duration::ZERO).await;

    assert_eq!(clock.now(), Duration::from_millis(6_500));
    assert_eq!(clock.waits(), [2 * SECOND, 4 * SECOND, Duration::ZERO]);
}

#[test]
fn a_sleep_that_is_not_polled_did_not_happen() {
    let clock = InstantClock::new();
    drop(clock.sleep(SECOND));
    assert_eq!((clock.now(), clock.waits()), (Duration::ZERO, vec![]));
}

/// Field case 29, for the clock.
#[test]
fn spurious_polls_change_nothing() {
    let clock = InstantClock::new();
    let mut sleep = pin!(clock.sleep(SECOND));
    for _ in 0..50 {
        assert!(poll(sleep.as_mut()).is_ready());
    }
    assert_eq!((clock.now(), clock.waits()), (SECOND, vec![SECOND]));
}

#[test]
fn the_longest_sleep_never_ends_and_the_time_saturates() {
    let clock = InstantClock::new();
    assert!(poll(pin!(clock.sleep(Duration::MAX))).is_pending());
    assert_eq!((clock.now(), clock.waits()), (Duration::ZERO, vec![]));

    let nano = Duration::from_nanos(1);
    let longest = Duration::MAX.saturating_sub(SECOND + nano);
    clock.advance(SECOND);
    assert!(poll(pin!(clock.sleep(longest + nano))).is_pending());
    assert!(poll(pin!(clock.sleep(longest))).is_ready());
    assert_eq!((clock.now(), clock.waits()), (SECOND + longest, vec![longest]));
    clock.advance(SECOND);
    assert_eq!(clock.now(), Duration::MAX);
}

#[test]
fn the_clock_and_its_sleeps_cross_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<InstantClock>();
    is_send_and_sync::<InstantSleep>();
}

#[test]
fn a_shared_clock_is_a_clock() {
    fn wait(clock: &impl Clock, duration: Duration) -> Duration {
        assert!(poll(pin!(clock.sleep(duration))).is_ready());
        clock.now()
    }
    let clock = InstantClock::new();
    assert_eq!(wait(&&clock, SECOND), SECOND);
    assert_eq!(wait(&Arc::new(clock.clone()), SECOND), 2 * SECOND);
    assert_eq!(clock.waits(), [SECOND; 2]);
}

#[test]
fn two_closures_are_a_clock() {
    let now = Cell::new(SECOND);
    let asked = RefCell::new(Vec::new());
    let clock = clock_fn(
        || now.get(),
        |duration| {
            asked.borrow_mut().push(duration);
            ready(())
        },
    );
    assert_eq!(clock.now(), SECOND);
    now.set(2 * SECOND);
    assert_eq!(clock.now(), 2 * SECOND);

    assert!(poll(pin!(clock.sleep(3 * SECOND))).is_ready());
    assert!(poll(pin!(Clock::sleep(&&clock, 4 * SECOND))).is_ready());
    assert_eq!(*asked.borrow(), [3 * SECOND, 4 * SECOND]);
    assert_eq!(format!("{clock:?}"), "ClockFn { .. }");

    assert!(poll(pin!(clock_fn(|| SECOND, |_| pending()).sleep(SECOND))).is_pending());
}

/// Field case 61: a clock that steps back is passed on as it is; whoever takes a difference saturates.
#[test]
fn a_clock_that_steps_back_can_be_played() {
    let readings = RefCell::new([100, 70, 71].into_iter());
    let clock = clock_fn(|| Duration::from_secs(readings.borrow_mut().next().unwrap()), |_| ready(()));
    assert_eq!([clock.now(), clock.now(), clock.now()], [100 * SECOND, 70 * SECOND, 71 * SECOND]);
}
