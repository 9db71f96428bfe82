use relent::{Policy, retry};

async fn twice<T, E>(call: impl AsyncFn() -> Result<T, E>) -> Result<T, E> {
    retry(async |_| call().await, Policy::DEFAULT.max_attempts(2)).await
}

fn main() {}
