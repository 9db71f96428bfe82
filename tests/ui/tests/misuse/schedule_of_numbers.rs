use relent::retry;

async fn run() {
    let _ = retry(async |_| Err::<(), _>("down"), [1, 2, 4]).await;
}

fn main() {}
