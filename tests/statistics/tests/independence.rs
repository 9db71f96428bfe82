//! Clients that start together do not wait alike.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use relent_statistics::first_waits;

/// No two of the clients have a wait in common. By chance, two do once in a million runs of this test.
fn assert_nothing_shared(clients: &[Vec<Duration>]) {
    let mut seen = HashMap::new();
    for (client, waits) in clients.iter().enumerate() {
        assert_eq!(waits.len(), 5);
        for wait in waits {
            assert_eq!(seen.insert(*wait, client), None, "{wait:?} of client {client} is not its own");
        }
    }
}

#[test]
fn twenty_processes_started_together() {
    let start = |_| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_first_waits"));
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<_> = (0..20).map(start).collect();
    let clients = processes.into_iter().map(|process| {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|ms| Duration::from_millis(ms.parse().unwrap())).collect()
    });
    assert_nothing_shared(&clients.collect::<Vec<_>>());
}

#[test]
fn twenty_threads_started_together() {
    let barrier = Barrier::new(20);
    let clients = thread::scope(|scope| {
        let start = |_| {
            scope.spawn(|| {
                barrier.wait();
                first_waits()
            })
        };
        let threads: Vec<_> = (0..20).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_nothing_shared(&clients);
}
