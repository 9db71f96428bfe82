use relent::budget::RetryBudget;
use std::time::Duration;

static BUDGET: RetryBudget = RetryBudget::new(0.1).window(Duration::ZERO);

fn main() {
    println!("{BUDGET:?}");
}
