use relent::breaker::CircuitBreaker;

static BREAKER: CircuitBreaker = CircuitBreaker::new().failure_threshold(0);

fn main() {
    println!("{BREAKER:?}");
}
