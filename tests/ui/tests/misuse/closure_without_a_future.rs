use relent::{Policy, retry};

async fn run() {
    let _ = retry(|_| Err::<(), _>("down"), Policy::DEFAULT).await;
}

fn main() {}
