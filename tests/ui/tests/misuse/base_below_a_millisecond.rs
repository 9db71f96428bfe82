use relent::Policy;
use std::time::Duration;

const POLICY: Policy = Policy::exponential(Duration::from_micros(100));

fn main() {
    println!("{POLICY}");
}
