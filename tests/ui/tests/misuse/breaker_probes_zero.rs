use relent::breaker::CircuitBreaker;

static BREAKER: CircuitBreaker = CircuitBreaker::new().probes(0);

fn main() {
    println!("{BREAKER:?}");
}
