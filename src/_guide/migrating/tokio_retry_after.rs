use std::{io, time::Duration};

use relent::{Jitter, Policy, retry};

const POLICY: Policy = Policy::exponential(Duration::from_millis(100))
    .max_delay(Duration::from_secs(2))
    .jitter(Jitter::Full)
    .max_attempts(4);

pub async fn fetch<F>(mut get: impl FnMut() -> F) -> io::Result<String>
where
    F: Future<Output = io::Result<String>>,
{
    retry(|_| get(), POLICY)
        .when(|e| e.kind() != io::ErrorKind::NotFound)
        .sleep(tokio::time::sleep)
        .await
}
