use std::{io, time::Duration};

use tokio_retry::RetryIf;
use tokio_retry::strategy::{ExponentialBackoff, jitter};

pub async fn fetch<F>(get: impl FnMut() -> F) -> io::Result<String>
where
    F: Future<Output = io::Result<String>>,
{
    // 2 ms to the power of the number of failures, times 50: 100, 200 and 400 ms
    let waits = ExponentialBackoff::from_millis(2)
        .factor(50)
        .max_delay(Duration::from_secs(2))
        .map(jitter)
        .take(3);
    RetryIf::start(waits, get, |e: &io::Error| e.kind() != io::ErrorKind::NotFound).await
}
