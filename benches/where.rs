//! Says where the benchmarks are: they need other crates, and this package has none.

fn main() {
    println!("The benchmarks are a workspace member: cargo run -p relent-peers --release (see benches/README.md)");
}
