//! Time, injected.

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
mod system;

use core::future::Future;
use core::time::Duration;

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub use system::{SystemClock, SystemSleep};

/// What a run needs from time: to read it, and to wait.
///
/// `now` is counted from an arbitrary fixed origin and never goes backwards; should an implementation step back all the
/// same, every difference taken in this crate saturates at zero.
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
