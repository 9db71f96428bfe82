use relent::{Policy, retry};

async fn run() {
    let _ = retry(async |_| 42, Policy::DEFAULT).await;
}

fn main() {}
