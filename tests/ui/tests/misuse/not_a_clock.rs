use relent::{Policy, retry};
use std::time::Instant;

async fn run() {
    let _ = retry(async |_| Err::<(), _>("down"), Policy::DEFAULT).clock(Instant::now()).await;
}

fn main() {}
