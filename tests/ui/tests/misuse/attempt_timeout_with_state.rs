use relent::Policy;
use relent::retry::retry_with;
use std::time::Duration;

async fn run(connection: &mut u32) {
    let run = retry_with(connection, async |_: &mut u32, _| Err::<(), _>("down"), Policy::DEFAULT);
    let _ = run.attempt_timeout(Duration::from_secs(1), |_| "timed out").await;
}

fn main() {}
