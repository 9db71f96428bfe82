//! What the compiler prints differs from version to version: `pinned` is set for the one that the kept text is of.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(pinned)");
    println!("cargo::rerun-if-changed=build.rs");
    let version = Command::new(env::var_os("RUSTC").unwrap()).arg("--version").output().unwrap();
    if String::from_utf8_lossy(&version.stdout).starts_with("rustc 1.95.") {
        println!("cargo::rustc-cfg=pinned");
    }
}
