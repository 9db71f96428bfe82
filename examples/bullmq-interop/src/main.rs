//! Prints the delays of the policy as JSON, for the backoff strategy of `record.mjs`.

use relent_bullmq_interop::{POLICY, delays};

fn main() -> Result<(), relent::policy::StatefulJitter> {
    println!("{:?}", delays(POLICY)?);
    Ok(())
}
