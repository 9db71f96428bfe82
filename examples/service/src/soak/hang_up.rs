//! Callers that hang up: their runs are dropped as the breaker's probe, in the middle of an attempt, and in a wait. And a
//! service that stops: its runs end in their waits.

use std::time::Duration;

use relent::breaker::State;
use relent::clock::SystemClock;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::caller::Caller;
use super::process::comes_true;
use crate::BoxError;
use crate::client::{BREAKER, BUDGET, COOLDOWN};
use crate::faults::{Faults, Weather};
use crate::front::Front;
use crate::ledger::Kind;
use crate::metrics::METRICS;

/// How many callers hang up in the middle of an attempt, and as many again in a wait.
const CALLERS: u32 = 8;

/// What was seen when a caller hung up whose call was the breaker's probe.
pub struct Probe {
    /// The breaker while it was under way.
    pub state: State,
    /// Whether a second call was refused meanwhile.
    pub second_refused: bool,
    /// Whether the slot was free again at once, long before the lease of the slots ended.
    pub slot_freed: bool,
}

/// What was seen when many hung up together.
pub struct Crowd {
    /// Calls that were under way, and waits that the timer held for them.
    pub calls: i64,
    pub timers: usize,
    /// Whether all of these calls ended.
    pub all_ended: bool,
}

/// What was seen when the service stopped in the middle of runs.
pub struct Stop {
    /// Runs that ended because of it.
    pub cancelled: u64,
    /// Callers who got their answer all the same, of how many.
    pub answered: usize,
    pub callers: usize,
}

pub async fn probe(caller: &Caller, faults: &Faults) -> Result<Probe, BoxError> {
    faults.set_weather(Weather::Down);
    while BREAKER.state() == State::Closed {
        caller.clone().send(0, Kind::Read).await?;
    }
    sleep(COOLDOWN).await;
    faults.set_weather(Weather::Hanging);
    let probe = begin(caller, 1);
    comes_true(|| BREAKER.state() == State::HalfOpen).await;
    let (state, second_refused) = (BREAKER.state(), BREAKER.acquire().is_err());
    drop(probe);
    // A lease is as long as the cooldown: what is free in half of that was given back.
    let freed = async {
        while BREAKER.acquire().is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let slot_freed = timeout(COOLDOWN / 2, freed).await.is_ok();
    BREAKER.reset();
    Ok(Probe { state, second_refused, slot_freed })
}

pub async fn crowd(caller: &Caller, faults: &Faults) -> Crowd {
    // For two retries of each that is to be found in a wait.
    comes_true(|| BUDGET.balance() >= 2 * CALLERS).await;
    faults.set_weather(Weather::Hanging);
    let in_attempts = begin(caller, CALLERS);
    comes_true(|| METRICS.in_flight() == i64::from(CALLERS)).await;
    sleep(Duration::from_millis(20)).await;

    faults.set_weather(Weather::Down);
    let retries = METRICS.retries();
    let in_waits = begin(caller, CALLERS);
    comes_true(|| METRICS.retries() >= retries + u64::from(CALLERS)).await;
    let (calls, timers) = (METRICS.in_flight(), SystemClock::pending());
    drop((in_attempts, in_waits));
    let all_ended = comes_true(|| METRICS.in_flight() == 0).await;
    Crowd { calls, timers, all_ended }
}

pub async fn stop(caller: &Caller, faults: &Faults, front: Front) -> Result<Stop, BoxError> {
    BREAKER.reset();
    comes_true(|| BUDGET.balance() >= 2 * CALLERS).await;
    faults.set_weather(Weather::Down);
    let (retries, cancelled) = (METRICS.retries(), METRICS.runs("cancelled"));
    let under_way = begin(caller, CALLERS);
    let callers = under_way.len();
    comes_true(|| METRICS.retries() >= retries + u64::from(CALLERS)).await;
    front.stop().await?;
    let answered = under_way.join_all().await.into_iter().filter(|answered| *answered).count();
    Ok(Stop { cancelled: METRICS.runs("cancelled") - cancelled, answered, callers })
}

/// Calls that are under way; each tells whether it was answered.
fn begin(caller: &Caller, callers: u32) -> JoinSet<bool> {
    let mut under_way = JoinSet::new();
    for _ in 0..callers {
        let caller = caller.clone();
        under_way.spawn(async move { caller.send(0, Kind::Read).await.is_ok() });
    }
    under_way
}
