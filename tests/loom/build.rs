//! Turns the crate's atomics into loom's.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=relent_loom");
}
