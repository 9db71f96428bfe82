use std::{io, time::Duration};

use backoff::{Error, ExponentialBackoffBuilder, future::retry_notify};

pub async fn fetch<F>(mut get: impl FnMut() -> F) -> io::Result<String>
where
    F: Future<Output = io::Result<String>>,
{
    let policy = ExponentialBackoffBuilder::new()
        .with_initial_interval(Duration::from_millis(100))
        .with_multiplier(2.0)
        .with_randomization_factor(0.5)
        .with_max_interval(Duration::from_secs(2))
        .with_max_elapsed_time(Some(Duration::from_secs(30)))
        .build();
    let classify = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Error::permanent(e),
        _ => Error::transient(e),
    };
    let get = || {
        let attempt = get();
        async move { attempt.await.map_err(classify) }
    };
    retry_notify(policy, get, |e, delay| eprintln!("{e}; again in {delay:?}")).await
}
