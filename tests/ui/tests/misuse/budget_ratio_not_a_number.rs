use relent::budget::RetryBudget;

static BUDGET: RetryBudget = RetryBudget::new(f64::NAN);

fn main() {
    println!("{BUDGET:?}");
}
