//! Time, injected: what a run reads and waits by.
//!
//! A retry is mostly waiting, so its time is a value like its policy. Tests take [`InstantClock`] for one run and
//! [`VirtualClock`] for many, and an hour of backoff passes in microseconds. A target without `std` brings a [`Clock`]
//! of its own.
//!
#![cfg_attr(not(feature = "std"), doc = "[`InstantClock`]: self\n[`VirtualClock`]: self")]

mod default;
#[cfg(feature = "std")]
mod instant;
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
mod system;
#[cfg(feature = "std")]
mod r#virtual;

use core::fmt;
use core::future::Future;
use core::time::Duration;

#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
pub use default::NoClock;
pub(crate) use default::{DEFAULT_CLOCK, DefaultClock};
#[cfg(feature = "std")]
pub use instant::{InstantClock, InstantSleep};
#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub use system::{SystemClock, SystemSleep};
#[cfg(feature = "std")]
pub use r#virtual::{VirtualClock, VirtualSleep};

/// What a run needs from time: to read it, and to wait.
///
/// # Contract
///
/// - `now` is counted from an arbitrary fixed origin and never goes backwards; should an implementation step back all
///   the same, every difference taken in this crate saturates at zero.
/// - A sleep is counted from the call of `sleep`, not from its first poll, and is never ready early. However often it is
///   polled, its end does not move; the waker of the last poll is the one to wake.
/// - [`Duration::MAX`] means never, and so does a sleep whose end cannot be represented.
/// - Dropping a sleep cancels it, and leaves no timer behind.
///
/// # A clock for a microcontroller
///
/// The `embassy_time` here is a stand-in with the shape of that crate.
///
/// ```
/// # mod embassy_time {
/// #     pub struct Instant(u64);
/// #     impl Instant {
/// #         pub fn now() -> Self { Self(1_500_000) }
/// #         pub fn as_micros(&self) -> u64 { self.0 }
/// #     }
/// #     pub struct Duration(u64);
/// #     impl Duration { pub const fn from_micros(micros: u64) -> Self { Self(micros) } }
/// #     pub struct Timer(pub u64);
/// #     impl Timer { pub fn after(duration: Duration) -> Self { Self(duration.0) } }
/// #     impl Future for Timer {
/// #         type Output = ();
/// #         fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
/// #             std::task::Poll::Ready(())
/// #         }
/// #     }
/// # }
/// use core::time::Duration;
/// use relent::clock::Clock;
///
/// struct EmbassyClock;
///
/// impl Clock for EmbassyClock {
///     type Sleep = embassy_time::Timer;
///
///     fn now(&self) -> Duration {
///         Duration::from_micros(embassy_time::Instant::now().as_micros())
///     }
///
///     fn sleep(&self, duration: Duration) -> Self::Sleep {
///         // Rounded up, so as not to wake early; a length that does not fit outlives the device.
///         let micros = u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
///         embassy_time::Timer::after(embassy_time::Duration::from_micros(micros))
///     }
/// }
///
/// assert_eq!(EmbassyClock.now(), Duration::from_millis(1_500));
/// assert_eq!(EmbassyClock.sleep(Duration::from_nanos(2_001)).0, 3);
/// ```
///
/// # A clock for the browser
///
/// `setTimeout` counts whole milliseconds in 31 bits and fires at once beyond that, so a longer wait goes in slices.
/// The `js` here is a stand-in for `performance.now()` and for a future over `setTimeout`.
///
/// ```
/// # mod js {
/// #     use std::cell::Cell;
/// #     thread_local! { static NOW: Cell<f64> = const { Cell::new(0.25) }; }
/// #     pub fn performance_now() -> f64 { NOW.get() }
/// #     pub async fn set_timeout(millis: i32) { NOW.set(NOW.get() + f64::from(millis)) }
/// # }
/// use core::time::Duration;
/// use relent::clock::{Clock, clock_fn};
///
/// async fn sleep(duration: Duration) {
///     let mut millis = duration.as_nanos().div_ceil(1_000_000);
///     while millis > 0 {
///         let slice = i32::try_from(millis).unwrap_or(i32::MAX);
///         js::set_timeout(slice).await;
///         millis -= slice.unsigned_abs() as u128;
///     }
/// }
///
/// let clock = clock_fn(|| Duration::from_secs_f64(js::performance_now() / 1_000.0), sleep);
///
/// assert_eq!(clock.now(), Duration::from_micros(250));
/// # use std::{pin::pin, task::{Context, Poll, Waker}};
/// # let days = Duration::from_secs(30 * 24 * 60 * 60);
/// # assert_eq!(pin!(clock.sleep(days)).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
/// # assert_eq!(clock.now(), days + Duration::from_micros(250));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no clock",
    note = "a run or a `Backoff` is given one with `.clock(my_clock)`, a budget or a breaker with `.with_clock(my_clock)`",
    note = "`clock_fn(now, sleep)` makes one of two closures; a run with a sleep alone takes it with `.sleep(my_sleep)`"
)]
pub trait Clock {
    /// The future that [`sleep`](Self::sleep) returns.
    type Sleep: Future<Output = ()>;

    /// The time since this clock's origin.
    fn now(&self) -> Duration;

    /// A future that is ready once `duration` has passed.
    fn sleep(&self, duration: Duration) -> Self::Sleep;
}

impl<C: Clock + ?Sized> Clock for &C {
    type Sleep = C::Sleep;

    fn now(&self) -> Duration {
        (**self).now()
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        (**self).sleep(duration)
    }
}

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
impl<C: Clock + ?Sized> Clock for alloc::sync::Arc<C> {
    type Sleep = C::Sleep;

    fn now(&self) -> Duration {
        (**self).now()
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        (**self).sleep(duration)
    }
}

/// A clock from two closures: one reads the time, the other waits.
///
/// The closures keep the contract of [`Clock`].
///
/// ```
/// use std::future::ready;
/// use std::time::Duration;
/// use relent::clock::{Clock, clock_fn};
///
/// let clock = clock_fn(|| Duration::from_secs(7), |_| ready(()));
/// assert_eq!(clock.now(), Duration::from_secs(7));
/// ```
pub const fn clock_fn<N, S, F>(now: N, sleep: S) -> ClockFn<N, S>
where
    N: Fn() -> Duration,
    S: Fn(Duration) -> F,
    F: Future<Output = ()>,
{
    ClockFn { now, sleep }
}

/// The [`Clock`] that [`clock_fn`] returns.
#[derive(Clone, Copy)]
pub struct ClockFn<N, S> {
    now: N,
    sleep: S,
}

impl<N, S, F> Clock for ClockFn<N, S>
where
    N: Fn() -> Duration,
    S: Fn(Duration) -> F,
    F: Future<Output = ()>,
{
    type Sleep = F;

    fn now(&self) -> Duration {
        (self.now)()
    }

    fn sleep(&self, duration: Duration) -> F {
        (self.sleep)(duration)
    }
}

impl<N, S> fmt::Debug for ClockFn<N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockFn").finish_non_exhaustive()
    }
}
