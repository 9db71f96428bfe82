//! The atomics of the guards: `core`'s, or loom's where every interleaving is tried.

#[cfg(not(relent_loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(relent_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
