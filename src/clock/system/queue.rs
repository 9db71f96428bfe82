//! The sleeps that wait, by the tick at which they are due: a hierarchical timing wheel.
//!
//! A tick is a number of eleven digits in base 64. An entry lies in the ring of the highest digit in which its tick
//! differs from now, and moves to a lower ring when time reaches that digit. So it is put in and taken out in constant
//! time, and moves at most once for each digit; a heap would move it, and what it touches, at every level of its height.
//! Varghese and Lauck, *Hashed and Hierarchical Timing Wheels*, SOSP 1987, scheme 7.

use alloc::vec::Vec;
use core::mem;
use core::task::Waker;

const DIGIT_BITS: u32 = 6;
const BASE: u32 = 1 << DIGIT_BITS;
const LEVELS: u32 = u64::BITS.div_ceil(DIGIT_BITS);

/// The ring of the unused slots, behind those of the wheel.
const FREE: usize = (LEVELS * BASE) as usize;

/// Names one entry for as long as it waits, and nothing afterwards: a ticket is never used twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    slot: usize,
    ticket: u64,
}

/// An entry, an unused slot, or the head of a ring. Each is always in one ring, if only its own.
struct Slot {
    next: usize,
    previous: usize,
    tick: u64,
    ticket: u64,
    waker: Option<Waker>,
}

pub(super) struct Queue {
    slots: Vec<Slot>,
    /// For each level, the digits whose ring may hold an entry.
    occupied: [u64; LEVELS as usize],
    /// The tick from which the entries are filed. It passes no ring that holds one.
    now: u64,
    len: usize,
    tickets: u64,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), occupied: [0; LEVELS as usize], now: 0, len: 0, tickets: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many entries were ever made.
    pub(super) fn tickets(&self) -> u64 {
        self.tickets
    }

    pub(super) fn insert(&mut self, tick: u64, waker: Waker) -> Key {
        while self.slots.len() <= FREE {
            self.add_slot();
        }
        let slot = match self.slots[FREE].previous {
            FREE => self.add_slot(),
            unused => unused,
        };
        self.tickets += 1;
        self.len += 1;
        let ticket = self.tickets;
        let entry = &mut self.slots[slot];
        (entry.tick, entry.ticket, entry.waker) = (tick, ticket, Some(waker));
        self.file(slot);
        Key { slot, ticket }
    }

    /// The waker that the entry of `key` will wake, if it still waits.
    pub(super) fn waker_mut(&mut self, key: Key) -> Option<&mut Waker> {
        self.slots.get_mut(key.slot).filter(|entry| entry.ticket == key.ticket)?.waker.as_mut()
    }

    /// Takes out the entry of `key`, if it still waits.
    pub(super) fn remove(&mut self, key: Key) -> Option<Waker> {
        self.waker_mut(key)?;
        self.take(key.slot)
    }

    /// Takes out an entry whose tick has come.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<Waker> {
        while let Some((level, ring, tick)) = self.first() {
            if tick > now {
                break;
            }
            self.now = tick;
            if level == 0 {
                return self.take(self.slots[ring].next);
            }
            while self.slots[ring].next != ring {
                self.file(self.slots[ring].next);
            }
        }
        self.now = self.now.max(now);
        None
    }

    /// The tick at which to call [`pop_due`](Self::pop_due) next: no entry is due before it.
    pub(super) fn next_tick(&mut self) -> Option<u64> {
        self.first().map(|(_, _, tick)| tick)
    }

    /// Gives back the memory of an empty queue. Tickets count on, so that old keys stay void.
    pub(super) fn release(&mut self) {
        *self = Self { tickets: self.tickets, ..Self::new() };
    }

    /// The first ring with an entry: its level, its head, and the first tick that it stands for.
    ///
    /// Entries of a lower level are due before those of a higher one, and in a level by their digit: what shares more
    /// digits with now is nearer.
    fn first(&mut self) -> Option<(u32, usize, u64)> {
        for (level, occupied) in (0..).zip(&mut self.occupied) {
            while *occupied != 0 {
                let digit = occupied.trailing_zeros();
                let ring = head(level, digit);
                if self.slots[ring].next != ring {
                    let shift = level * DIGIT_BITS;
                    let higher_digits = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
                    return Some((level, ring, (self.now & higher_digits) + (u64::from(digit) << shift)));
                }
                *occupied &= *occupied - 1;
            }
        }
        None
    }

    /// Moves an entry into the ring of its tick.
    #[allow(clippy::cast_possible_truncation, reason = "only the lowest digit is kept")]
    fn file(&mut self, slot: usize) {
        let tick = self.slots[slot].tick.max(self.now);
        let level = (tick ^ self.now).checked_ilog2().unwrap_or(0) / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as u32 % BASE;
        self.occupied[level as usize] |= 1 << digit;
        self.link(slot, head(level, digit));
    }

    fn take(&mut self, slot: usize) -> Option<Waker> {
        self.len -= 1;
        self.link(slot, FREE);
        self.slots[slot].waker.take()
    }

    /// Moves a slot from its ring to the end of another.
    fn link(&mut self, slot: usize, ring: usize) {
        let Slot { next, previous, .. } = self.slots[slot];
        self.slots[previous].next = next;
        self.slots[next].previous = previous;
        let last = mem::replace(&mut self.slots[ring].previous, slot);
        self.slots[last].next = slot;
        (self.slots[slot].next, self.slots[slot].previous) = (ring, last);
    }

    fn add_slot(&mut self) -> usize {
        let slot = self.slots.len();
        self.slots.push(Slot { next: slot, previous: slot, tick: 0, ticket: 0, waker: None });
        slot
    }
}

/// The head of the ring of a digit.
fn head(level: u32, digit: u32) -> usize {
    (level * BASE + digit) as usize
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    struct Marker;

    impl Wake for Marker {
        fn wake(self: Arc<Self>) {}
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Remove(usize),
        Advance(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Lengths of every magnitude, so that every level is met.
        let length = (0..64u32, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
        let step = prop_oneof![
            length.clone().prop_map(Step::Insert),
            any::<usize>().prop_map(Step::Remove),
            length.prop_map(|length| Step::Advance(length >> 4)),
        ];
        prop::collection::vec(step, 0..80)
    }

    #[test]
    fn what_is_released_is_memory_alone() {
        let mut queue = Queue::new();
        for tick in 1..=3 {
            queue.insert(tick, Waker::noop().clone());
            assert_eq!(queue.tickets(), tick);
        }
        while queue.pop_due(3).is_some() {}
        queue.release();
        assert_eq!((queue.tickets(), queue.len(), queue.slots.capacity()), (3, 0, 0));
        let key = queue.insert(1, Waker::noop().clone());
        assert_eq!(key.ticket, 4, "no key of before is one of now");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The wheel gives out what a sorted map would, no sooner and no later, and `next_tick` passes over nothing.
        #[test]
        fn does_as_a_sorted_map(steps in steps()) {
            let (mut queue, mut model, mut now) = (Queue::new(), BTreeMap::new(), 0u64);
            let mut keys = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(length) => {
                        let (tick, marker) = (now.saturating_add(length), Arc::new(Marker));
                        let key = queue.insert(tick, Waker::from(Arc::clone(&marker)));
                        model.insert(key.ticket, (tick, marker));
                        keys.push(key);
                    }
                    Step::Remove(choice) if !keys.is_empty() => {
                        let key = keys[choice % keys.len()];
                        prop_assert_eq!(queue.remove(key).is_some(), model.remove(&key.ticket).is_some());
                    }
                    Step::Remove(_) => {}
                    Step::Advance(length) => {
                        now = now.saturating_add(length);
                        while queue.pop_due(now).is_some() {}
                        model.retain(|_, (tick, marker)| {
                            let due = *tick <= now;
                            assert!(!due || Arc::strong_count(marker) == 1, "still held when due");
                            !due
                        });
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!(model.values().all(|(_, marker)| Arc::strong_count(marker) == 2), "given out early");
                let earliest = model.values().map(|&(tick, _)| tick).min();
                prop_assert_eq!(queue.next_tick().is_some(), earliest.is_some());
                prop_assert!(queue.next_tick() <= earliest);
            }
        }
    }
}
