use relent::{Policy, retry};

async fn run() {
    retry(async |_| Err::<(), _>("down"), Policy::DEFAULT);
}

fn main() {}
