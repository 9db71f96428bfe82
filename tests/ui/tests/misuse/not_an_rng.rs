use relent::{Policy, retry};

async fn run() {
    let _ = retry(async |_| Err::<(), _>("down"), Policy::DEFAULT).rng(42).await;
}

fn main() {}
