//! Prints the first five waits of a client that has just started.

fn main() {
    for wait in relent_statistics::first_waits() {
        println!("{}", wait.as_millis());
    }
}
