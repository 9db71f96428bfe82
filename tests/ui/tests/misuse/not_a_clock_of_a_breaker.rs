use relent::breaker::CircuitBreaker;
use std::time::Instant;

fn main() {
    let breaker = CircuitBreaker::new().with_clock(Instant::now());
    assert!(breaker.acquire().is_ok());
}
