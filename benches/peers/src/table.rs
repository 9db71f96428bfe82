//! Measurements as markdown.

use crate::measure::{self, allocations, instructions};
use crate::{Group, Side, cost, sleepers, zero};

/// Prints rows of cells; the first column is text, the rest numbers.
fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    println!("| {} |", headings.join(" | "));
    println!("| --- |{}", " --: |".repeat(headings.len() - 1));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
    println!();
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

/// Instructions, time, allocations and size of each contender of a group.
pub fn group(group: &Group) {
    println!("### {}\n", group.title);
    let counted: Vec<_> = group.contenders.iter().map(|c| instructions(group, c)).collect();
    let timed = measure::times(group);
    let best = group.contenders.iter().zip(&timed).filter(|(c, _)| c.side == Side::Peer).map(|(_, t)| t.0);
    let best = best.fold(f64::INFINITY, f64::min);
    let sized = group.contenders.iter().any(|c| c.size.is_some());
    let mut headings =
        vec!["contender", "instructions", "over the first row", "ns", "× first row", "× best peer", "allocations"];
    if sized {
        headings.push("future B");
    }
    let rows = group.contenders.iter().zip(&counted).zip(&timed).map(|((contender, count), (ns, ratio))| {
        let over = count.zip(counted[0]).map(|(count, floor)| count - floor);
        let mut row = vec![
            bold(contender.name, contender.side),
            optional(*count),
            optional(over),
            number(*ns),
            times(*ratio),
            times(ns / best),
            number(allocations(contender)),
        ];
        if sized {
            row.push(contender.size.map_or_else(|| "–".to_owned(), |size| size.to_string()));
        }
        row
    });
    table(&headings, rows);
}

/// Calls of one and of two threads.
pub fn threads(group: &Group) {
    println!("### {}; threads\n", group.title);
    let rows = group.contenders.iter().zip(measure::threads(group)).map(|(contender, [one, two, ratio])| {
        vec![bold(contender.name, contender.side), number(one), number(two), times(ratio)]
    });
    table(&["contender", "1 thread, calls/µs", "2 threads, calls/µs", "2 / 1"], rows);
}

pub fn zero() {
    println!("### A delay of zero, on the real clock\n");
    println!("Timers that relent starts for three of them: {}.\n", zero::timers());
    let rows = zero::walls().into_iter().map(|(name, wall)| {
        let side = if name == "relent" { Side::Relent } else { Side::Peer };
        vec![bold(name, side), number(wall)]
    });
    table(&["contender", "wall µs for each retry"], rows);
}

pub fn sleepers() {
    println!("### 100 000 tasks asleep\n");
    let rows = sleepers::CONTENDERS.iter().zip(sleepers::all()).map(|(name, [cpu, ratio, rss, p50, p99, max])| {
        let side = if name.starts_with("relent") { Side::Relent } else { Side::Peer };
        vec![bold(name, side), number(cpu), times(ratio), number(rss), number(p50), number(p99), number(max)]
    });
    let headings = ["contender", "CPU ms", "× first row", "RSS B/task", "late ms, p50", "p99", "max"];
    table(&headings, rows);
}

/// # Errors
///
/// If a program cannot be built.
pub fn cost(target: &std::path::Path) -> std::io::Result<()> {
    println!("### What depending on it costs\n");
    let costs = cost::all(target)?;
    let (empty, best) =
        (costs[0].bytes as f64, costs[4..].iter().map(|cost| cost.cpu_seconds).fold(f64::INFINITY, f64::min));
    let rows = cost::PROGRAMS.iter().zip(&costs).map(|(program, cost)| {
        let side = if program.name.starts_with("relent") { Side::Relent } else { Side::Peer };
        vec![
            bold(program.name, side),
            cost.packages.to_string(),
            number(cost.seconds),
            number(cost.cpu_seconds),
            times(cost.cpu_seconds / costs[0].cpu_seconds),
            times(cost.cpu_seconds / best),
            number((cost.bytes as f64 - empty) / 1024.0),
        ]
    });
    let headings = [
        "program",
        "packages, itself included",
        "clean build s",
        "CPU s",
        "× empty main (CPU)",
        "× best peer (CPU)",
        "KiB over an empty main",
    ];
    table(&headings, rows);
    Ok(())
}

fn bold(name: &str, side: Side) -> String {
    if side == Side::Relent { format!("**{name}**") } else { name.to_owned() }
}
