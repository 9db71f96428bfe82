//! What jitter, a budget and a breaker spare a service that comes back.

use std::time::Duration;

use relent_herd::overload::{BREAKER, BUDGET, CAPACITY, EQUAL, NO_JITTER, STRATEGIES, Seen, play};

fn waste(seen: &Seen) -> u32 {
    seen.load.iter().map(|load| load.wasted).sum()
}

#[test]
fn the_service_never_answers_more_than_it_can() {
    for strategy in &STRATEGIES {
        let seen = play(strategy);
        assert!(seen.load.iter().all(|load| load.answered_per_second() <= CAPACITY), "{}", strategy.name);
        let requests: u32 = seen.load.iter().map(|load| load.requests).sum();
        let answered: u32 = seen.load.iter().map(|load| load.answered).sum();
        assert!(answered + waste(&seen) <= requests, "{}", strategy.name);
    }
}

#[test]
fn without_jitter_all_clients_come_back_at_once() {
    assert_eq!(play(&NO_JITTER).peak_after(), 9996); // in half a second: 4998 of 5000
}

#[test]
fn jitter_spreads_them_and_wastes_less() {
    let (lockstep, spread) = (play(&NO_JITTER), play(&EQUAL));
    assert!(spread.peak_after() < 2 * CAPACITY);
    assert!(spread.wasted_after() < lockstep.wasted_after() / 3);
    assert!(spread.recovery() < lockstep.recovery());
}

#[test]
fn a_budget_wastes_nothing_after_the_outage_and_fails_runs_in_it() {
    let (spread, budget) = (play(&EQUAL), play(&BUDGET));
    assert_eq!((budget.wasted_after(), budget.recovery()), (0, Some(Duration::ZERO)));
    assert!(budget.requests_in_outage() < spread.requests_in_outage() / 4);
    assert_eq!((spread.failed, budget.failed), (1, 7413));
}

#[test]
fn a_breaker_spares_the_service_that_is_down_and_fails_no_run() {
    let (spread, breaker) = (play(&EQUAL), play(&BREAKER));
    assert!(breaker.requests_in_outage() < spread.requests_in_outage() / 7);
    assert!(breaker.wasted_after() < spread.wasted_after() / 2);
    assert_eq!(breaker.failed, 0);
}

#[test]
fn it_is_the_same_in_every_run() {
    assert_eq!(play(&EQUAL).load, play(&EQUAL).load);
}
