use relent::{Jitter, Policy};

const POLICY: Policy = Policy::DEFAULT.jitter(Jitter::Downward(f64::NAN));

fn main() {
    println!("{POLICY}");
}
