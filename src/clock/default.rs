//! The clock that is taken where none is given.

#[cfg(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown"))))]
mod system {
    use crate::clock::SystemClock;

    pub type DefaultClock = SystemClock;
    pub(crate) const DEFAULT_CLOCK: DefaultClock = SystemClock;
}

/// Without std, or where std's clock traps, there is none to take.
#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
mod system {
    /// No clock yet: this target has no default, so one has to be given.
    #[derive(Clone, Copy, Debug)]
    pub struct NoClock;

    pub type DefaultClock = NoClock;
    pub(crate) const DEFAULT_CLOCK: DefaultClock = NoClock;
}

#[cfg(not(all(feature = "std", not(all(target_arch = "wasm32", target_os = "unknown")))))]
pub use system::NoClock;
pub(crate) use system::{DEFAULT_CLOCK, DefaultClock};
