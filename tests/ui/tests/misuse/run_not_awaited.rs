use relent::{Attempt, Policy, retry};

async fn refresh(_: Attempt) -> Result<(), &'static str> {
    Err("down")
}

async fn run() {
    retry(refresh, Policy::DEFAULT);
}

fn main() {}
