#![deny(unused_must_use)]

use relent::{Policy, blocking};

fn main() {
    blocking::retry(|_| Err::<(), _>("down"), Policy::DEFAULT).unmarked().max_attempts(2);
}
