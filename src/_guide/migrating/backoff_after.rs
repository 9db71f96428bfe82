use std::{io, time::Duration};

use relent::{Jitter, Policy, retry};

const POLICY: Policy = Policy::exponential(Duration::from_millis(100))
    .jitter(Jitter::Proportional(0.5))
    .max_delay(Duration::from_secs(2))
    .unbounded()
    .max_elapsed(Duration::from_secs(30));

pub async fn fetch<F>(mut get: impl FnMut() -> F) -> io::Result<String>
where
    F: Future<Output = io::Result<String>>,
{
    retry(|_| get(), POLICY)
        .when(|e| e.kind() != io::ErrorKind::NotFound)
        .on_retry(|r| eprintln!("{}; again in {:?}", r.error, r.delay))
        .sleep(tokio::time::sleep)
        .await
}
