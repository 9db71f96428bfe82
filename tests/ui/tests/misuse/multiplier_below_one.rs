use relent::Policy;

const POLICY: Policy = Policy::DEFAULT.multiplier(0.5);

fn main() {
    println!("{POLICY}");
}
