#![deny(unused_must_use)]

use relent::breaker::CircuitBreaker;
use relent::error::CircuitOpen;

static BREAKER: CircuitBreaker = CircuitBreaker::new();

fn main() -> Result<(), CircuitOpen> {
    BREAKER.acquire()?;
    Ok(())
}
