//! The clock of a shared guard to which none was given.

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
pub(crate) type DefaultClock = super::SystemClock;

#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
pub(crate) type DefaultClock = NoClock;

/// No clock yet: this target has no default, so give the guard one with `.with_clock(my_clock)`.
#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
#[derive(Clone, Copy, Debug)]
pub struct NoClock;
