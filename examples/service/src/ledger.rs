//! What became of each request. Each side writes down what it knows; at the end the pages are compared.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use relent::rng::{Rng, SeededRng};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To read an order.
    Read,
    /// To set what it contains, which may be repeated.
    Set,
    /// To add to it, under an idempotency key.
    AddWithKey,
    /// To add to it, which must not be repeated.
    Add,
}

/// One request.
#[derive(Debug)]
pub struct Page {
    pub kind: Kind,
    /// How often the upstream was asked, and did not refuse.
    pub executions: AtomicU8,
    /// How often that changed anything.
    pub effects: AtomicU8,
    /// How often the caller was told of success.
    pub successes: AtomicU8,
    /// How often the caller was told of failure.
    pub failures: AtomicU8,
}

/// All requests of a soak, in their order.
#[derive(Debug)]
pub struct Ledger {
    pages: Box<[Page]>,
}

impl Ledger {
    /// Plans `requests`, drawn from `seed`. Nothing grows afterwards, so the ledger is no leak.
    #[must_use]
    pub fn plan(requests: usize, seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        let mut page = || Page {
            kind: match rng.next_f64() {
                ..0.4 => Kind::Read,
                ..0.6 => Kind::Set,
                ..0.8 => Kind::AddWithKey,
                _ => Kind::Add,
            },
            executions: AtomicU8::new(0),
            effects: AtomicU8::new(0),
            successes: AtomicU8::new(0),
            failures: AtomicU8::new(0),
        };
        Self { pages: (0..requests).map(|_| page()).collect() }
    }

    #[must_use]
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// The page of a request, if it was planned.
    #[must_use]
    pub fn page(&self, request_id: &str) -> Option<&Page> {
        self.pages.get(request_id.parse::<usize>().ok()?)
    }
}

/// One more.
pub fn count(counter: &AtomicU8) {
    counter.fetch_add(1, Relaxed);
}

/// How often.
#[must_use]
pub fn read(counter: &AtomicU8) -> u8 {
    counter.load(Relaxed)
}
