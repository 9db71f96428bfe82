//! What must hold after a drill.

use crate::BoxError;

/// A list of what did not hold.
#[derive(Debug, Default)]
pub struct Checks {
    made: usize,
    broken: Vec<String>,
}

impl Checks {
    /// Notes that `rule` is broken unless `holds`.
    pub fn that(&mut self, holds: bool, rule: impl FnOnce() -> String) {
        self.made += 1;
        if !holds {
            self.broken.push(rule());
        }
    }

    /// Prints what did not hold.
    ///
    /// # Errors
    ///
    /// If there is anything.
    pub fn finish(self) -> Result<(), BoxError> {
        for rule in self.broken.iter().take(20) {
            eprintln!("BROKEN: {rule}");
        }
        println!("{} checks, {} broken", self.made, self.broken.len());
        if self.broken.is_empty() { Ok(()) } else { Err("the drill has failed".into()) }
    }
}
