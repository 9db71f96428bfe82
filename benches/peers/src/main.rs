//! Measures, and prints the tables of `benches/README.md`.
//!
//! `cargo run -p relent-peers --release` measures everything; names of groups after `--` only these: `first`, `retries`,
//! `zero`, `delays`, `delays-cap`, `jitter`, `jitter-cap`, `sleepers`, `breaker`, `budget`, `cost`.

use std::path::Path;
use std::process::Command;

use relent_peers::{groups, measure, runtime, sleepers, table};

#[global_allocator]
static ALLOCATOR: measure::Counting = measure::Counting;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // The two that the runner starts itself.
        ["count", group, contender, n] => {
            let group = groups().into_iter().find(|g| g.name == group).expect("a group of this name");
            let runtime = runtime();
            let _inside = runtime.enter();
            measure::count(&group, contender, n.parse().expect("a number of calls"));
            Ok(())
        }
        ["sleep", contender] => {
            sleepers::run(contender);
            Ok(())
        }
        ref wanted => report(|name| wanted.is_empty() || wanted.contains(&name)),
    }
}

fn report(wanted: impl Fn(&str) -> bool) -> std::io::Result<()> {
    let runtime = runtime();
    let _inside = runtime.enter();
    println!("{}\n", surroundings());
    for group in groups() {
        if wanted(group.name) {
            table::group(&group);
            if ["breaker", "budget"].contains(&group.name) {
                table::threads(&group);
            }
        }
        if group.name == "retries" && wanted("zero") {
            table::zero();
        }
        if group.name == "jitter-cap" && wanted("sleepers") {
            table::sleepers();
        }
    }
    if wanted("cost") {
        table::cost(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")))?;
    }
    Ok(())
}

/// The machine and the tools, and how busy the machine was.
fn surroundings() -> String {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output();
        output.map_or_else(|_| format!("no {program}"), |o| first_line(String::from_utf8_lossy(&o.stdout).into_owned()))
    };
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let cpus: Vec<&str> = cpus.lines().filter_map(|line| line.strip_prefix("model name\t: ")).collect();
    let load = read("/proc/loadavg");
    format!(
        "{} × {}; {}; {}; load average at the start {}.",
        cpus.len(),
        cpus.first().unwrap_or(&"an unknown processor"),
        version("rustc"),
        version("valgrind"),
        load.split(' ').take(3).collect::<Vec<_>>().join(", "),
    )
}
