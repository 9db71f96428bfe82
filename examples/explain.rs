//! Explains a policy in its text form: what is waited before each attempt, and when it gives up.
//!
//! `cargo run --example explain -- "exponential 100ms x2 cap 30s equal 5 attempts"` prints the table, with a bar for
//! each wait: dark up to the shortest, light up to the longest. A text that is no policy is pointed at, and the program
//! exits with status 2. Without a text it explains the default policy.

use std::process::ExitCode;
use std::time::Duration;

use relent::Policy;
use relent::policy::{PolicyError, Row};

const USAGE: &str = "usage: explain \"exponential 100ms x2 cap 30s equal 5 attempts\"

policy = shape { clause }
shape  = exponential DUR [ xNUMBER ] | linear DUR | fixed DUR | immediate
clause = cap DUR | uncapped | JITTER | N attempts | unbounded | within DUR | jitter-above-cap
JITTER = unjittered | full | equal | decorrelated | proportional(NUMBER) | downward(NUMBER)
DUR    = a number and ms, s, m or h";

/// How many characters the longest wait takes.
const WIDTH: f64 = 32.0;

fn main() -> ExitCode {
    let text = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    if text.trim().is_empty() {
        println!("{USAGE}\n\nThe default:\n");
        explain(Policy::DEFAULT);
        return ExitCode::SUCCESS;
    }
    match text.parse() {
        Ok(policy) => {
            explain(policy);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", pointed(&text, &error));
            ExitCode::from(2)
        }
    }
}

fn explain(policy: Policy) {
    println!("{policy}\n");
    let table = policy.table().to_string();
    let is_row = |line: &str| line.split_whitespace().next().is_some_and(|word| word.parse::<u32>().is_ok());
    let printed = table.lines().filter(|line| is_row(line)).count();
    let scale = policy.table().rows().take(printed).map(|row| row.longest).max().unwrap_or_default();

    let mut rows = policy.table().rows();
    for line in table.lines() {
        match is_row(line).then(|| rows.next()).flatten() {
            Some(row) => println!("{}", format!("{line}  {}", bar(&row, scale)).trim_end()),
            None => println!("{line}"),
        }
    }
}

fn bar(row: &Row, scale: Duration) -> String {
    if scale.is_zero() {
        return String::new();
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the width")]
    let characters = |wait: Duration| (WIDTH * wait.div_duration_f64(scale)).round() as usize;
    let dark = characters(row.shortest);
    let light = characters(row.longest) - dark;
    "█".repeat(dark) + &"░".repeat(light)
}

/// The error, and the text with a caret under the word that it is about.
fn pointed(text: &str, error: &PolicyError) -> String {
    let shown: String =
        text.trim_end().chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }).collect();
    let word = error.position().and_then(|position| text.split_whitespace().nth(position - 1));
    let (before, width) = match word {
        // The word is a part of the text, so the distance of the two is where it begins.
        Some(word) => (text[..word.as_ptr() as usize - text.as_ptr() as usize].chars().count(), word.chars().count()),
        None => (shown.chars().count() + 1, 1),
    };
    format!("{error}\n\n  {shown}\n  {}{}", " ".repeat(before), "^".repeat(width))
}
