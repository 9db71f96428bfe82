#![deny(unused_must_use)]

use relent::{Policy, retry};

async fn run() {
    retry(async |_| Err::<(), _>("down"), Policy::DEFAULT).unmarked().report();
}

fn main() {}
