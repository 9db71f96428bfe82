use relent::levels::{Level, Levels};
use std::time::Duration;

const SEC: Duration = Duration::from_secs(1);

static LEVELS: Levels = Levels::new(&[Level::unbounded().delay(SEC), Level::new(3).delay(SEC)]);

fn main() {
    println!("{LEVELS:?}");
}
