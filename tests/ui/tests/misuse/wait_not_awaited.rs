#![deny(unused_must_use)]

use relent::Policy;
use relent::backoff::{Backoff, Exhausted};

fn main() -> Result<(), Exhausted> {
    let mut backoff = Backoff::new(Policy::DEFAULT);
    backoff.failed();
    backoff.attempt()?;
    Ok(())
}
