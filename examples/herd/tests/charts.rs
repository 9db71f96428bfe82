//! The pictures in the repository are those that the code draws, and those that the documentation shows.

use std::fs;
use std::path::Path;

use std::time::Duration;

use relent::Jitter;
use relent_herd::charts;
use relent_herd::overload::{BREAKER, BUDGET, EQUAL, NO_JITTER, play};
use relent_herd::spread::{POLICY, waits};

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

/// Who cannot see the pictures reads the same figures.
#[test]
fn the_readme_says_what_the_pictures_show() {
    let at_cap = |jitter| waits(POLICY.jitter(jitter), 1000, 10).filter(|wait| *wait == Duration::from_secs(2)).count();
    let [lockstep, equal, breaker, budget] = [NO_JITTER, EQUAL, BREAKER, BUDGET].map(|strategy| play(&strategy));
    assert_eq!((budget.wasted_after(), equal.recovery()), (0, Some(Duration::from_secs(5))));
    let sentences = [
        format!("leave {} and {} of them at", at_cap(Jitter::Decorrelated), at_cap(Jitter::Proportional(0.5))),
        format!("{} requests are wasted; with equal jitter {} in five", lockstep.wasted_after(), equal.wasted_after()),
        format!("with a breaker {}; with a budget none.", breaker.wasted_after()),
    ];
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    for sentence in sentences {
        assert!(readme.contains(&sentence), "the README does not say: {sentence}");
    }
}
