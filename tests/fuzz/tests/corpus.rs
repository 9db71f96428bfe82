//! Every kept input still does what must hold for any input.

use std::fs;
use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let inputs: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() > 10, "only {} inputs for {name}", inputs.len());
    for input in inputs {
        let data = fs::read(&input).unwrap();
        if std::panic::catch_unwind(|| target(&data)).is_err() {
            panic!("{}", input.display());
        }
    }
}

#[test]
fn policy_text() {
    replay("policy_text", relent_fuzz::policy_text);
}

#[test]
fn retry_after() {
    replay("retry_after", relent_fuzz::retry_after);
}

#[test]
fn driver() {
    replay("driver", relent_fuzz::driver);
}
