use relent::{Policy, retry};

async fn get() -> Result<u32, &'static str> {
    Err("down")
}

async fn run() {
    let _ = retry(get(), Policy::DEFAULT).await;
}

fn main() {}
