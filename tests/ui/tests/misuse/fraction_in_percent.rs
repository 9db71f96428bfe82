use relent::{Jitter, Policy};

const POLICY: Policy = Policy::DEFAULT.jitter(Jitter::Proportional(25.0));

fn main() {
    println!("{POLICY}");
}
