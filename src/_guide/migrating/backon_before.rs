use std::{io, time::Duration};

use backon::{ExponentialBuilder, Retryable};

pub async fn fetch<F>(get: impl FnMut() -> F) -> io::Result<String>
where
    F: Future<Output = io::Result<String>>,
{
    get.retry(
        ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(100))
            .with_max_times(3),
    )
    .when(|e| e.kind() != io::ErrorKind::NotFound)
    .notify(|e, delay| eprintln!("{e}; again in {delay:?}"))
    .await
}
