//! The load, second by second.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use hyper::StatusCode;
use relent::clock::SystemClock;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::RATE;
use super::caller::Caller;
use super::process::{resident, resident_at_rest};
use crate::BoxError;
use crate::client::BREAKER;
use crate::faults::{Faults, Weather};
use crate::ledger::{Ledger, count};
use crate::metrics::METRICS;

/// Once in fifteen seconds the warehouse hangs, and then crashes. The end of the fifteen is calm.
const CYCLE: usize = 15;
const HANGS: Range<usize> = RATE..RATE + RATE / 2;
const CRASHES: Range<usize> = HANGS.end..2 * RATE;

/// After so many seconds the callers pause, and memory is measured.
pub const LAP: usize = 30;

/// What the callers saw.
#[derive(Default)]
pub struct Seen {
    /// How often each status came.
    pub statuses: BTreeMap<u16, u64>,
    /// The first of the requests that got no answer, and how many there were.
    pub lost: Option<(u64, String)>,
    /// Resident memory in KiB at rest, after each [`LAP`].
    pub at_rest: Vec<u64>,
}

type Answer = (usize, Result<StatusCode, BoxError>);

/// Sends all requests of the ledger at an even pace, and waits for their answers.
pub async fn run(caller: &Caller, faults: &Faults, ledger: &Ledger) -> Result<Seen, BoxError> {
    let mut seen = Seen::default();
    let mut tally = Tally::default();
    let mut pace = interval(Duration::from_secs(1) / u32::try_from(RATE)?);
    // After a stall of the machine, what was missed would come all at once, and be a crowd that no policy has called.
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut under_way = JoinSet::<Answer>::new();

    for (id, page) in ledger.pages().iter().enumerate() {
        loop {
            tokio::select! {
                _ = pace.tick() => break,
                Some(answer) = under_way.join_next() => seen.note(ledger, answer)?,
            }
        }
        faults.set_weather(match id % (CYCLE * RATE) {
            place if HANGS.contains(&place) => Weather::Hanging,
            place if CRASHES.contains(&place) => Weather::Down,
            _ => Weather::Usual,
        });
        let (kind, caller) = (page.kind, caller.clone());
        under_way.spawn(async move { (id, caller.send(id, kind).await) });
        let sent = id + 1;
        if sent.is_multiple_of(10 * RATE) {
            tally.print(sent / RATE, &seen);
        }
        if sent.is_multiple_of(LAP * RATE) {
            seen.note_rest(ledger, &mut under_way).await?;
            seen.at_rest.extend(resident_at_rest().await);
        }
    }
    seen.note_rest(ledger, &mut under_way).await?;
    Ok(seen)
}

impl Seen {
    async fn note_rest(&mut self, ledger: &Ledger, under_way: &mut JoinSet<Answer>) -> Result<(), JoinError> {
        // What has no answer by then is found missing in the ledger.
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Ok(Some(answer)) = timeout_at(deadline, under_way.join_next()).await {
            self.note(ledger, answer)?;
        }
        Ok(())
    }

    fn note(&mut self, ledger: &Ledger, answer: Result<Answer, JoinError>) -> Result<(), JoinError> {
        let (id, result) = answer?;
        match result {
            Ok(status) => {
                *self.statuses.entry(status.as_u16()).or_default() += 1;
                let page = &ledger.pages()[id];
                count(if status.is_success() { &page.successes } else { &page.failures });
            }
            Err(error) => self.lost.get_or_insert((0, format!("request {id}: {error}"))).0 += 1,
        }
        Ok(())
    }
}

/// What the last line said.
#[derive(Default)]
struct Tally {
    second: usize,
    answers: u64,
    successes: u64,
    retries: u64,
}

impl Tally {
    /// Prints what came since the last line.
    fn print(&mut self, second: usize, seen: &Seen) {
        let now = Self {
            second,
            answers: seen.statuses.values().sum(),
            successes: seen.statuses.range(200..300).map(|(_, times)| times).sum(),
            retries: METRICS.retries(),
        };
        let seconds = (now.second - self.second).max(1) as u64;
        let answers = (now.answers - self.answers).max(1);
        println!(
            "{second:>4} s: {:>3} answers/s, {:>3} % successes, {:>2} retries/s, {} timers, breaker {}, {:.1} MiB resident",
            answers / seconds,
            (now.successes - self.successes) * 100 / answers,
            (now.retries - self.retries) / seconds,
            SystemClock::pending(),
            BREAKER.state(),
            resident().unwrap_or(0) as f64 / 1024.0,
        );
        *self = now;
    }
}
