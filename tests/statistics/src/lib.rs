//! Waits as the driver makes them.

use std::future::ready;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use relent::Policy;
use relent::clock::InstantClock;
use relent::retry::{Retrying, retry};
use relent::rng::Rng;
use relent::schedule::Schedule;

/// Five waits so long, in whole milliseconds, that two clients share one by chance once in 200 million pairs of clients.
pub const FIRST_WAITS: Policy = Policy::exponential(Duration::from_secs(1_000_000)).uncapped().max_attempts(6);

/// The waits of one run that never succeeds, those of zero included.
pub fn waits(schedule: impl Schedule, rng: impl Rng) -> Vec<Duration> {
    let mut waits = Vec::new();
    let observe = |retrying: &Retrying<'_, &str>| waits.push(retrying.delay);
    let run = retry(|_| ready(Err::<(), _>("down")), schedule).on_retry(observe);
    finish(run.clock(InstantClock::new()).rng(rng));
    waits
}

/// The first five waits of a client that leaves the source to the crate.
pub fn first_waits() -> Vec<Duration> {
    let mut waits = Vec::new();
    let observe = |retrying: &Retrying<'_, &str>| waits.push(retrying.delay);
    finish(retry(|_| ready(Err::<(), _>("down")), FIRST_WAITS).on_retry(observe).clock(InstantClock::new()));
    waits
}

/// A run over a clock that waits for nothing is only ever pending to let others go on.
fn finish(run: impl Future) {
    let mut run = pin!(run);
    while run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}
