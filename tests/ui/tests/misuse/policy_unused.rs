#![deny(unused_must_use)]

use relent::Policy;

fn main() {
    let policy = Policy::DEFAULT;
    policy.max_attempts(5);
}
