//! Runs and retries of a rolling window, counted without a lock.
//!
//! Both are counted since the beginning and never taken back. When a slice of the window begins, its mark keeps how far
//! they had come; the counts of the window are the totals less its oldest mark. So expiry writes nothing that a run or
//! a retry could race with, and each of these is one atomic step.
//!
//! - Nothing is counted in a slice before its mark stands, and a mark is read while the slice before is still the
//!   present one. So a mark holds nothing of its own slice or later: nothing expires early.
//! - Totals only grow, so a total that a compare-exchange finds unchanged was never another in between: the grant
//!   stands where its total was read, in a slice that was present then. For the same reason a thread that comes late to
//!   set a mark finds another value there, or writes the value that stands.
//!
//! Totals are kept modulo 2³²: for one to come back, a thread must stand between two steps while a multiple of 2³² runs
//! go by.

use core::time::Duration;

use crate::sync::{AtomicU64, Ordering};

/// A mark for each slice of the window, for the slice that is leaving it, and for the next one: to set that mark must
/// not touch the oldest in use.
const MARKS: usize = if cfg!(relent_loom) { 4 } else { 22 };
const RING: u64 = MARKS as u64;

/// How many slices make a window.
const SLICES: u64 = RING - 2;

/// The last instant that is told apart, 292 years after the clock's origin: far enough from overflow to add slices.
const END: u64 = u64::MAX / 2;

/// One run in a total: runs are its upper half, retries its lower.
const RUN: u64 = 1 << 32;

/// What a window holds, modulo 2³².
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) runs: u32,
    pub(super) retries: u32,
}

impl Counts {
    #[allow(clippy::cast_possible_truncation, reason = "takes the halves of a word apart")]
    const fn of(total: u64) -> Self {
        Self { runs: (total / RUN) as u32, retries: total as u32 }
    }

    const fn since(self, mark: Self) -> Self {
        Self { runs: self.runs.wrapping_sub(mark.runs), retries: self.retries.wrapping_sub(mark.retries) }
    }

    const fn with_one_more_retry(self) -> u64 {
        self.runs as u64 * RUN + self.retries.wrapping_add(1) as u64
    }
}

pub(super) struct Rolling {
    slice_nanos: u64,
    /// The number of the present slice.
    slice: AtomicU64,
    total: AtomicU64,
    /// The totals at the beginning of each slice, in a ring.
    marks: [AtomicU64; MARKS],
}

impl Rolling {
    #[cfg(not(relent_loom))]
    pub(super) const fn new(window: Duration) -> Self {
        Self {
            slice_nanos: slice_nanos(window),
            slice: AtomicU64::new(0),
            total: AtomicU64::new(0),
            marks: [const { AtomicU64::new(0) }; MARKS],
        }
    }

    #[cfg(relent_loom)]
    pub(super) fn new(window: Duration) -> Self {
        Self {
            slice_nanos: slice_nanos(window),
            slice: AtomicU64::new(0),
            total: AtomicU64::new(0),
            marks: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[inline]
    pub(super) fn record_run(&self, now: Duration) {
        self.enter(now);
        self.total.fetch_add(RUN, Ordering::Release);
    }

    /// Counts one more retry, if the window holds fewer than `allowance` gives for its runs.
    #[inline]
    pub(super) fn try_retry(&self, now: Duration, allowance: impl Fn(u32) -> u32) -> bool {
        loop {
            let (total, window) = self.read(now);
            if window.retries >= allowance(window.runs) {
                return false;
            }
            let taken = Counts::of(total).with_one_more_retry();
            if self.total.compare_exchange(total, taken, Ordering::Release, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// The totals and what the window holds, at one moment.
    #[inline]
    pub(super) fn read(&self, now: Duration) -> (u64, Counts) {
        loop {
            let slice = self.enter(now);
            let mark = self.mark(slice + RING - SLICES).load(Ordering::Acquire);
            let total = self.total.load(Ordering::Acquire);
            if self.slice.load(Ordering::Acquire) == slice {
                return (total, Counts::of(total).since(Counts::of(mark)));
            }
        }
    }

    /// The present slice, once it is that of `now` or a later one.
    #[inline]
    fn enter(&self, now: Duration) -> u64 {
        let now = nanos(now);
        let slice = self.slice.load(Ordering::Acquire);
        if now.saturating_sub(slice * self.slice_nanos) < self.slice_nanos {
            slice
        } else {
            self.advance(slice, now / self.slice_nanos)
        }
    }

    /// Makes `target` the present slice, or finds a later one. Any number of threads may do so together.
    #[cold]
    fn advance(&self, start: u64, target: u64) -> u64 {
        let mut slice = start;
        while slice < target {
            // Once the whole ring is new, the window holds only what was counted after the clock read `target`. That may
            // be dated later, by whole rings, so that each mark keeps its place.
            let rings = if slice - start < RING { 0 } else { (target - slice) / RING };
            let next = if rings > 0 {
                slice + rings * RING
            } else {
                self.mark_after(slice);
                slice + 1
            };
            slice = match self.slice.compare_exchange(slice, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => next,
                Err(present) => present,
            };
        }
        slice
    }

    /// Sets the mark of the slice after `slice`, if that is still the present one.
    fn mark_after(&self, slice: u64) {
        let mark = self.mark(slice + 1);
        let old = mark.load(Ordering::Acquire);
        let total = self.total.load(Ordering::Acquire);
        if self.slice.load(Ordering::Acquire) == slice {
            // It fails where another thread was first, whose mark is as good.
            let _ = mark.compare_exchange(old, total, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the remainder is below RING")]
    fn mark(&self, slice: u64) -> &AtomicU64 {
        &self.marks[(slice % RING) as usize]
    }
}

/// A slice is rounded up, so that all slices together are no shorter than the window.
const fn slice_nanos(window: Duration) -> u64 {
    let slice = nanos(window).div_ceil(SLICES);
    if slice == 0 { 1 } else { slice }
}

#[allow(clippy::cast_possible_truncation, reason = "END fits")]
const fn nanos(time: Duration) -> u64 {
    let nanos = time.as_nanos();
    if nanos < END as u128 { nanos as u64 } else { END }
}
