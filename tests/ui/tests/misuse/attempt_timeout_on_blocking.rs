use relent::{Policy, blocking};
use std::time::Duration;

fn main() {
    let run = blocking::retry(|_| Err::<(), _>("down"), Policy::DEFAULT);
    let _ = run.attempt_timeout(Duration::from_secs(1), |_| "timed out").call();
}
