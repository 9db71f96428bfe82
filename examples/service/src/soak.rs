//! A service under load while things go wrong, and what must hold afterwards.

mod caller;
mod checks;
mod hang_up;
mod load;
mod process;
mod scrape;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::BoxError;
use crate::client::Client;
use crate::faults::Faults;
use crate::front::Front;
use crate::ledger::Ledger;
use crate::log;
use crate::upstream::Upstream;

use caller::Caller;
use checks::Checks;
pub use process::allocate_from_one_heap;
use scrape::Scrape;

/// Requests a second: what two cores do with one hand.
pub const RATE: usize = 200;

/// Runs the service and its warehouse for `seconds`, and prints what comes of it.
///
/// # Errors
///
/// If a check does not hold, or the soak itself fails.
pub async fn run(seconds: usize, seed: u64) -> Result<(), BoxError> {
    let tasks_before = process::tasks();
    let faults = Arc::new(Faults::new(seed));
    let ledger = Arc::new(Ledger::plan(seconds * RATE, seed));
    let upstream = Upstream::start(Arc::clone(&faults), Arc::clone(&ledger)).await?;
    let stopping = CancellationToken::new();
    let client = Client::new(upstream.address(), Arc::clone(&faults), stopping.clone());
    let front = Front::start(client, stopping).await?;
    let caller = Caller::new(front.address());
    println!("{seconds} s of {RATE} requests a second, seed {seed}");

    let seen = load::run(&caller, &faults, &ledger).await?;
    let scrape = Scrape::parse(&caller.metrics().await?);
    let mut checks = Checks::default();
    checks.ledger(&ledger, &seen);
    checks.faults(&faults, &scrape);
    checks.counters(&scrape, &seen, ledger.pages().len());
    checks.log(&scrape, log::events());
    checks.budget(&scrape, seconds);
    checks.memory(&seen, seconds);

    let probe = hang_up::probe(&caller, &faults).await?;
    let crowd = hang_up::crowd(&caller, &faults).await;
    let stop = hang_up::stop(&caller, &faults, front).await?;
    drop(caller);
    upstream.stop().await?;
    checks.permits(&probe);
    checks.stop(&stop);
    checks.left_behind(tasks_before, &crowd).await;
    checks.finish()
}
