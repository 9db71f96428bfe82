//! The pictures in the repository are those that the code draws, and those that the documentation shows.

use std::fs;
use std::path::Path;

use relent_herd::charts;

#[test]
fn the_pictures_are_those_that_the_code_draws() {
    let drawn = Path::new(env!("CARGO_TARGET_TMPDIR"));
    charts::write(drawn).expect("the folder for tests can be written");
    for name in ["spread.svg", "spread.png", "recovery.svg", "recovery.png"] {
        let kept = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(name)).expect(name);
        assert!(fs::read(drawn.join(name)).expect(name) == kept, "{name} is out of date: run this package to draw it");
    }
}

#[test]
fn the_documentation_shows_these_pictures() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shown = fs::read_to_string(here.join("../../src/_guide/pictures.md")).unwrap();
    let kept = charts::definitions(&here.join("charts")).unwrap();
    assert!(shown == kept, "src/_guide/pictures.md is out of date: run this package to write it");
}
