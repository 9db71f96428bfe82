//! What rustdoc knows of the public API.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Rustdoc's JSON of the crate, which a stable compiler writes too if asked with `RUSTC_BOOTSTRAP`.
pub static RUSTDOC_JSON: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = root().join("target/surface");
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--package", "relent", "--lib", "--target-dir"])
        .arg(&directory)
        .args(["--", "-Zunstable-options", "--output-format=json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .unwrap();
    assert!(status.success());
    directory.join("doc/relent.json")
});

/// The directory of the crate.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
