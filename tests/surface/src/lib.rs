//! What rustdoc knows of the public API, and what it makes of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Rustdoc's JSON of the crate, which a stable compiler writes too if asked with `RUSTC_BOOTSTRAP`.
pub static RUSTDOC_JSON: LazyLock<PathBuf> = LazyLock::new(|| {
    let options = ["--", "-Zunstable-options", "--output-format=json"];
    rustdoc("target/surface", &options).join("relent.json")
});

/// The directory of the crate's documentation, as a reader's browser opens it.
pub static PAGES: LazyLock<PathBuf> = LazyLock::new(|| rustdoc("target/surface-pages", &[]).join("relent"));

fn rustdoc(directory: &str, options: &[&str]) -> PathBuf {
    let directory = root().join(directory);
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--package", "relent", "--lib", "--target-dir"])
        .arg(&directory)
        .args(options)
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .unwrap();
    assert!(status.success());
    directory.join("doc")
}

/// The directory of the crate.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
