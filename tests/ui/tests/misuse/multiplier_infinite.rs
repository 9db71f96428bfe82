use relent::Policy;

const POLICY: Policy = Policy::DEFAULT.multiplier(f64::INFINITY);

fn main() {
    println!("{POLICY}");
}
