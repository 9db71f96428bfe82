//! Holds the crate's queue helpers, and the table in its documentation, against what BullMQ was seen to do.
//!
//! The recording is the one that `run.sh` has just made, or else the one that is kept beside it.

use relent::queue::{Disposition, Verdict, bullmq_backoff_strategy, disposition};
use relent::rng::FixedRng;
use relent::{Jitter, Policy, fleet, is_final_attempt, is_final_attempt_from_attempts_made};
use relent_bullmq_interop::{POLICY, delays};

use std::time::Duration;

/// The attempts of every job but those that say otherwise.
const ATTEMPTS: u32 = 3;

/// One job that always failed: what its counter was wherever it was shown, and how long Redis held the job, in ms.
#[derive(Debug)]
struct Job {
    version: String,
    scenario: String,
    processor: Vec<u32>,
    callback: Vec<u32>,
    failed: Vec<u32>,
    held: Vec<u64>,
}

impl Job {
    fn major(&self) -> u32 {
        self.version.split('.').next().unwrap().parse().unwrap()
    }

    fn waits(&self) -> Vec<Duration> {
        self.held.iter().copied().map(Duration::from_millis).collect()
    }
}

fn numbers<T: std::str::FromStr>(cell: &str) -> Vec<T> {
    cell.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

fn recording() -> Vec<Job> {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/recording.tsv");
    let path = std::env::var("RECORDING").unwrap_or_else(|_| kept.into());
    let text = std::fs::read_to_string(path).expect("a recording");
    let jobs: Vec<Job> = text
        .lines()
        .skip(1)
        .map(|line| {
            let [version, scenario, processor, callback, failed, held] = line.split('\t').collect::<Vec<_>>()[..]
            else {
                panic!("not a line of a recording: {line}")
            };
            Job {
                version: version.into(),
                scenario: scenario.into(),
                processor: numbers(processor),
                callback: numbers(callback),
                failed: numbers(failed),
                held: numbers(held),
            }
        })
        .collect();
    assert_eq!(jobs.len(), 24, "six jobs in each of four versions");
    jobs
}

/// One job of each version, oldest first.
fn of(scenario: &str) -> Vec<Job> {
    let jobs: Vec<Job> = recording().into_iter().filter(|job| job.scenario == scenario).collect();
    assert_eq!(jobs.iter().map(Job::major).collect::<Vec<_>>(), [3, 4, 5, 6], "{scenario}");
    jobs
}

/// Those whose Redis keeps the delay itself, which version 3 does not.
fn held(scenario: &str) -> impl Iterator<Item = Job> {
    of(scenario).into_iter().filter(|job| job.major() > 3)
}

/// The table in the documentation of `relent::queue` has one row for each version, and the row says what was seen.
#[test]
fn the_documented_table_is_what_was_recorded() {
    let rows: Vec<Vec<&str>> = include_str!("../../../src/queue.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! |"))
        .map(|line| line.trim_end_matches('|').split('|').map(str::trim).collect())
        .filter(|row: &Vec<&str>| row.len() == 4)
        .collect();
    for job in of("policy") {
        let release = job.version.rsplit_once('.').unwrap().0;
        let rows: Vec<_> = rows.iter().filter(|row| row[0].split(" and ").any(|version| version == release)).collect();
        let [row] = rows[..] else { panic!("{} rows for {release}", rows.len()) };
        let documented: [Vec<u32>; 3] = [row[1], row[2], row[3]].map(numbers);
        assert_eq!(documented, [job.processor, job.callback, job.failed], "{release}");
    }
}

/// Field case 119: each helper, given the counter that its documentation asks for, ends the job after its third attempt.
#[test]
fn the_helpers_name_the_last_attempt_that_bullmq_made() {
    for job in of("policy") {
        let in_processor = |&made: &u32| match job.major() {
            ..5 => is_final_attempt(made, ATTEMPTS),
            5.. => is_final_attempt_from_attempts_made(made, ATTEMPTS),
        };
        let in_handler = |&made: &u32| is_final_attempt(made, ATTEMPTS);
        assert_eq!(job.processor.iter().map(in_processor).collect::<Vec<_>>(), [false, false, true], "{job:?}");
        assert_eq!(job.failed.iter().map(in_handler).collect::<Vec<_>>(), [false, false, true], "{job:?}");
    }
}

/// A disposition from the `failed` handler's counter is what the broker did with the job.
#[test]
fn a_disposition_is_what_bullmq_then_did() {
    for job in held("policy") {
        let decide = |&made: &u32| {
            disposition(POLICY.max_attempts(ATTEMPTS), made, Verdict::Transient, &mut FixedRng::new(0.5)).unwrap()
        };
        let decided: Vec<Disposition> = job.failed.iter().map(decide).collect();
        let [Disposition::Retry(first), Disposition::Retry(second), Disposition::DeadLetter(_)] = decided[..] else {
            panic!("{decided:?}")
        };
        assert_eq!([first, second][..], job.waits(), "{job:?}");
    }
}

/// The callback is told 1 at first, and the strategy takes that for one failure: the first wait is the base.
#[test]
fn redis_held_each_job_as_long_as_the_policy_says() {
    let strategy = bullmq_backoff_strategy(POLICY).unwrap();
    for job in held("policy") {
        assert_eq!(job.waits()[0], POLICY.base(), "{job:?}");
        let asked = job.callback.iter().map(|&made| strategy.delay(made, &mut FixedRng::new(0.5)));
        assert_eq!(asked.collect::<Vec<_>>(), job.waits(), "{job:?}");
    }
    assert_eq!(delays(POLICY).unwrap(), [250, 500]);
    assert!(delays(POLICY.jitter(Jitter::Decorrelated)).is_err());
}

/// Site 1 of the surveyed fleet doubles once too often, because its counter has been incremented: base 250 ms, first wait
/// 500 ms. Its policy here keeps what it does, and the strategy with the declared base does not repeat it.
#[test]
fn the_doubling_that_comes_one_attempt_early_is_seen_and_not_repeated() {
    let fleet::SiteSchedule::Fixed(site) = fleet::get("approval-consumer").unwrap().schedule else {
        panic!("the site has a policy")
    };
    for job in held("site-1") {
        assert_eq!(job.waits(), [Duration::from_millis(500), Duration::from_secs(1)], "{job:?}");
        assert_eq!(job.waits(), [1, 2].map(|failures| site.nominal_after(failures)), "{job:?}");
        assert_eq!(job.waits()[0], 2 * POLICY.nominal_after(1), "{job:?}");
    }
}

#[test]
fn the_built_in_backoff_is_an_exponential_policy_without_cap() {
    let policy = Policy::exponential(Duration::from_millis(250)).uncapped().jitter(Jitter::None);
    for job in held("exponential") {
        assert_eq!(job.waits(), [1, 2].map(|failures| policy.nominal_after(failures)), "{job:?}");
    }
}

/// Its jitter is downward, its draw runs the other way, and it rounds down. Version 4 has none and ignores the option.
#[test]
fn the_built_in_jitter_is_downward_and_within_a_millisecond() {
    let base = Policy::exponential(Duration::from_millis(125)).uncapped();
    for job in held("exponential-jitter") {
        let policy = base.jitter(if job.major() == 4 { Jitter::None } else { Jitter::Downward(0.2) });
        assert_eq!(job.held.len(), 2);
        for (failures, wait) in (1..).zip(job.waits()) {
            let computed = policy.delay_after(failures, 1.0 - 0.25).unwrap();
            assert!(computed.abs_diff(wait) <= Duration::from_millis(1), "{computed:?} after {failures}: {job:?}");
        }
    }
    assert!(held("exponential-jitter").any(|job| job.major() == 5 && job.held[0] < 125), "there was no jitter");
}

/// Field case 122: a backoff without a number of attempts is never used there, nor is one that returns -1.
#[test]
fn a_job_without_attempts_and_one_that_is_told_to_fail_are_tried_once() {
    for job in of("no-attempts").into_iter().chain(of("minus-one")) {
        assert_eq!((job.processor.len(), &job.failed[..], job.held.len()), (1, &[1][..], 0), "{job:?}");
    }
}
