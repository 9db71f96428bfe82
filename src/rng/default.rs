//! The generator of a run to which none was given.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::thread_local;
use std::time::Instant;

use super::{Rng, SPLIT_MIX_STEP, split_mix, unit};

/// The default source: nothing to set up, and different in every thread and process.
///
/// Each thread has a state of its own, so no draw waits for another. It is seeded at the thread's first draw from the
/// random keys of [`RandomState`]. The time of each draw goes into it as well: a process that begins with a copy of
/// another's memory (after `fork`, or restored from a snapshot) draws differently from its first draw on, and so do its
/// siblings, unless two of them draw within one tick of the clock.
///
/// Absent without the `std` feature, and on `wasm32-unknown-unknown`, where the keys are the same in every run and
/// reading the clock panics.
///
/// ```
/// use relent::rng::{DefaultRng, Rng};
///
/// let draw = DefaultRng.next_f64();
/// assert!((0.0..1.0).contains(&draw));
/// assert_ne!(draw, DefaultRng.next_f64());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultRng;

#[derive(Clone, Copy)]
struct State {
    counter: u64,
    seeded_at: Instant,
}

thread_local! {
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

impl Rng for DefaultRng {
    fn next_f64(&mut self) -> f64 {
        let now = Instant::now();
        // The keys are copied by `fork` too, so the time goes into the seed.
        let seeded = || State { counter: RandomState::new().hash_one(now), seeded_at: now };
        let State { counter, seeded_at } = STATE.get().unwrap_or_else(seeded);
        let counter = counter.wrapping_add(SPLIT_MIX_STEP);
        STATE.set(Some(State { counter, seeded_at }));

        // Not the process id: on Linux it costs a system call, which the clock does not, and WASI has none.
        let elapsed = u64::from(now.saturating_duration_since(seeded_at).subsec_nanos());
        unit(split_mix(counter.wrapping_add(elapsed)))
    }
}
