use relent::Policy;
use std::time::Duration;

const POLICY: Policy = Policy::linear(Duration::from_secs(1)).multiplier(3.0);

fn main() {
    println!("{POLICY}");
}
