//! Each site of the fleet against the arithmetic of the code it replaces, written out here without this crate.

mod common;

use std::collections::HashSet;
use std::time::Duration;

use common::{MS, SEC, always_fails};
use relent::fleet::{self, FLEET_POLICIES, Migration, Site, SiteSchedule};
use relent::policy::{Growth, PolicyConfig};
use relent::rng::{Rng, SeededRng};
use relent::{Jitter, Policy, retry};

/// Failures from the first to far beyond every cap of the fleet.
const FAILURES: [u32; 14] = [1, 2, 3, 4, 5, 6, 8, 9, 10, 15, 30, 64, 1000, 100_000];

/// The largest draw there is.
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

fn site(id: &str) -> &'static Site {
    fleet::get(id).unwrap()
}

fn policy(id: &str) -> Policy {
    match site(id).schedule {
        SiteSchedule::Fixed(policy) => policy,
        other => panic!("{id}: {other:?}"),
    }
}

fn lease(ttl: Duration) -> Policy {
    match site("telemetry-lease").schedule {
        SiteSchedule::FromTtl(policy) => policy(ttl),
        other => panic!("{other:?}"),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never negative, and below 2^64")]
fn half_up(ms: f64) -> Duration {
    Duration::from_millis((ms + 0.5).floor() as u64)
}

/// `2^exponent` by doubling, which is exact.
fn two_to_the(exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 2.0)
}

/// A site without jitter waits `formula(n)` milliseconds after its `n`th failure, whatever is drawn.
fn assert_waits(id: &str, formula: impl Fn(u32) -> f64) {
    let policy = policy(id);
    for n in FAILURES {
        let expected = half_up(formula(n));
        for draw in [0.0, 0.5, ALMOST_ONE] {
            assert_eq!(policy.delay_after(n, draw), Ok(expected), "{id}, failure {n}, draw {draw}");
        }
    }
}

/// A site with jitter waits `formula(n, r)` milliseconds after its `n`th failure with the draw `r`.
fn assert_draws(id: &str, formula: impl Fn(u32, f64) -> f64) {
    let (policy, mut rng) = (policy(id), SeededRng::new(14));
    for n in FAILURES {
        for _ in 0..10_000 {
            let draw = rng.next_f64();
            assert_eq!(policy.delay_after(n, draw), Ok(half_up(formula(n, draw))), "{id}, failure {n}, draw {draw}");
        }
    }
}

#[test]
fn there_are_fourteen_sites_each_with_its_own_name() {
    let ids: HashSet<&str> = FLEET_POLICIES.iter().map(|site| site.id).collect();
    let sources: HashSet<&str> = FLEET_POLICIES.iter().map(|site| site.source).collect();
    assert_eq!((ids.len(), sources.len()), (14, 14));
    for site in &FLEET_POLICIES {
        assert!(std::ptr::eq(site, fleet::get(site.id).unwrap()));
        assert!(!site.retried.is_empty() && !site.note.is_empty(), "{}", site.id);
    }
    assert!(fleet::get("").is_none());
    assert!(fleet::get("Approval-Consumer").is_none());
}

/// All attempts, the first included; 0 is any number.
#[test]
fn each_site_has_its_number_of_attempts() {
    let attempts = FLEET_POLICIES.each_ref().map(|site| match site.schedule {
        SiteSchedule::Fixed(policy) => policy.attempts(),
        SiteSchedule::FromTtl(policy) => policy(SEC).attempts(),
        SiteSchedule::Broker { attempts } => attempts,
    });
    assert_eq!(attempts, [5, 0, 3, 3, 8, 0, 0, 5, 5, 30, 0, 3, 0, 0]);
    for site in &FLEET_POLICIES {
        if let SiteSchedule::Fixed(policy) = site.schedule {
            assert_eq!(policy.elapsed_limit(), None, "{}", site.id);
        }
    }
}

#[test]
fn one_site_changes_and_one_stays_where_it_is() {
    for site in &FLEET_POLICIES {
        match site.id {
            "telemetry-lease" => {
                assert!(matches!(site.migration, Migration::Deliberate(why) if why.contains("lockstep")));
            }
            "replica-apply" => assert!(matches!(site.migration, Migration::DoNotMigrate(why) if why.contains("Dead"))),
            _ => assert_eq!(site.migration, Migration::Preserving, "{}", site.id),
        }
    }
}

/// Site 1: the counter is incremented before the callback runs, so the first wait is one doubling early.
#[test]
fn approval_consumer_waits_one_doubling_early() {
    assert_waits("approval-consumer", |attempts_made| (two_to_the(attempts_made) * 250.0).min(60_000.0));

    let policy = policy("approval-consumer");
    assert_eq!(policy.nominal_after(1), 500 * MS);
    let declared = Policy::exponential(250 * MS).max_delay(60 * SEC).jitter(Jitter::None);
    assert_eq!(declared.nominal_after(1), 250 * MS);
    for n in FAILURES {
        assert_eq!(policy.nominal_after(n), declared.nominal_after(n + 1));
    }
    assert_eq!((policy.nominal_after(7), policy.nominal_after(8)), (32 * SEC, 60 * SEC));
}

/// Sites 2, 6, 11 and 13: three equal loops and one slower, 4 to 5 commands a second for ever.
#[test]
fn the_loops_wait_the_same_for_ever() {
    for id in ["approval-streams-reader", "outbox-drainer", "telemetry-outbox"] {
        assert_waits(id, |_| 200.0);
        assert_eq!(SEC.as_millis() / policy(id).nominal_after(1).as_millis(), 5);
    }
    assert_waits("saga-participant", |_| 250.0);
    assert_eq!(SEC.as_millis() / policy("saga-participant").nominal_after(1).as_millis(), 4);

    for site in FLEET_POLICIES.iter().filter(|site| site.retried.contains("loop") || site.retried.contains("drain")) {
        assert!(site.note.contains("4 to 5 commands a second"), "{}", site.id);
    }
}

/// Sites 3 and 4: a list of two waits, hence three attempts.
#[test]
fn onboarding_waits_its_two_literal_delays() {
    let list = [1000 * MS, 2000 * MS];
    for id in ["onboarding-submit", "onboarding-signup"] {
        let policy = policy(id);
        let waits: Vec<_> = policy.table().rows().skip(1).map(|row| (row.shortest, row.longest)).collect();
        assert_eq!(waits, list.map(|wait| (wait, wait)));
        assert!(!site(id).retried.contains("429") && site(id).note.contains("429"));

        let script = always_fails();
        script.clock.block_on(retry(|_| script.call(), policy).clock(&script.clock)).unwrap_err();
        assert_eq!(script.calls(), [Duration::ZERO, SEC, 3 * SEC]);
    }
}

/// Site 5: linear on purpose.
#[test]
fn outbox_cooldown_grows_by_a_minute() {
    assert_waits("outbox-cooldown", |n| 60_000.0 * f64::from(n));
    let policy = policy("outbox-cooldown");
    assert_eq!([1, 2, 3].map(|n| policy.nominal_after(n)), [60 * SEC, 120 * SEC, 180 * SEC]);
    assert_eq!(policy.worst_case_total(), Some(60 * (1 + 2 + 3 + 4 + 5 + 6 + 7) * SEC));
    assert!(site("outbox-cooldown").note.contains("never deleted"));
}

/// Site 7: jitter after the cap, and never clamped.
#[test]
fn replica_cold_start_overshoots_to_36_seconds() {
    let formula = |n: u32, r: f64| (1000.0 * two_to_the(n.min(1000) - 1)).min(30_000.0) * (1.0 + 0.2 * (2.0 * r - 1.0));
    assert_draws("replica-cold-start", formula);

    let policy = policy("replica-cold-start");
    assert_eq!(policy.delay_after(6, ALMOST_ONE), Ok(36_000 * MS));
    assert_eq!(policy.bounds_after(6), (24 * SEC, 36 * SEC));
    assert_eq!(policy.cap(), Some(30 * SEC));
    assert_cap_held(policy.allow_jitter_above_cap(false));
    assert_eq!(policy.worst_case_total(), None); // it never gives up
}

/// Site 8: what it declares has never run, and a percentage is no fraction.
#[test]
fn replica_apply_cannot_be_built_from_its_percentage() {
    assert!(matches!(site("replica-apply").schedule, SiteSchedule::Broker { attempts: 5 }));
    let declared = PolicyConfig {
        growth: Growth::Exponential(2.0),
        base: 100 * MS,
        max_delay: Some(30 * SEC),
        jitter: Some(Jitter::Proportional(25.0)),
        max_attempts: 5,
        ..PolicyConfig::default()
    };
    let error = Policy::try_from(declared).unwrap_err();
    assert_eq!(error.to_string(), "jitter fraction must lie in 0..=1 (25 % is 0.25), not 25");

    let error = "exponential 100ms cap 30s proportional(25) 5 attempts".parse::<Policy>().unwrap_err();
    assert_eq!((error.field(), error.value()), ("jitter", "proportional(25)"));
}

/// Sites 9 and 12: the broker spaces the attempts, the site has a limit.
#[test]
fn the_streams_workers_leave_the_wait_to_the_broker() {
    assert!(matches!(site("replica-streams-worker").schedule, SiteSchedule::Broker { attempts: 5 }));
    assert!(matches!(site("telemetry-streams-worker").schedule, SiteSchedule::Broker { attempts: 3 }));
    assert_eq!(site("telemetry-streams-worker").retried, "poison-tagged errors only");
}

/// Site 10: written as a factor from 0.875 to 1.125, the same as an eighth to either side.
#[test]
fn role_catalog_publish_overshoots_to_33_750_milliseconds() {
    let formula = |n: u32, r: f64| (100.0 * two_to_the(n.min(1000) - 1)).min(30_000.0) * (0.875 + 0.25 * r);
    assert_draws("role-catalog-publish", formula);

    let policy = policy("role-catalog-publish");
    assert_eq!(policy.delay_after(10, ALMOST_ONE), Ok(33_750 * MS));
    assert_eq!(policy.bounds_after(10), (26_250 * MS, 33_750 * MS));
    assert_cap_held(policy.allow_jitter_above_cap(false));
}

/// Site 10 ends at once where waiting heals nothing, and otherwise makes its thirty attempts.
#[test]
fn role_catalog_publish_fails_fast_on_what_it_does_not_retry() {
    let policy = policy("role-catalog-publish");
    let script = common::Script::<(), _>::new([Err("UNAVAILABLE"), Err("FAILED_PRECONDITION")]);
    let run = retry(|_| script.call(), policy).when(|status| *status == "UNAVAILABLE").clock(&script.clock);
    assert_eq!(script.clock.block_on(run), Err("FAILED_PRECONDITION"));
    assert_eq!(script.count(), 2);

    let script = always_fails();
    script.clock.block_on(retry(|_| script.call(), policy).clock(&script.clock)).unwrap_err();
    assert_eq!(script.count(), 30);
}

/// Site 14: today's wait is `max(1000, ttl / 2)`, the same for every replica; now it is the longest of a spread.
#[test]
fn telemetry_lease_breaks_the_lockstep() {
    for ttl_ms in [0, 1, 999, 1999, 2000, 2001, 5000, 30_000, 86_400_000_u64] {
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let today = (ttl_ms as f64 / 2.0).max(1000.0);
        let policy = lease(Duration::from_millis(ttl_ms));
        let mut rng = SeededRng::new(ttl_ms);
        for n in FAILURES {
            assert_eq!(policy.bounds_after(n), (half_up(today / 2.0), half_up(today)), "{ttl_ms} ms");
        }
        let waits: HashSet<Duration> = policy.delays(&mut rng).take(1000).collect();
        assert!(waits.len() > 300, "{ttl_ms} ms: {} different waits", waits.len());
        assert!(waits.iter().all(|wait| *wait <= half_up(today)), "{ttl_ms} ms");
    }
}

/// Site 14: no time to live makes a hot loop or a panic.
#[test]
fn telemetry_lease_takes_any_time_to_live() {
    assert_eq!(lease(Duration::ZERO).bounds_after(1), (500 * MS, SEC));
    assert_eq!(lease(Duration::from_nanos(1)).bounds_after(1), (500 * MS, SEC));
    assert_eq!(lease(Duration::MAX).bounds_after(u32::MAX).1, Policy::MAX_DELAY);
    // A time to live that is no number is NaN to the code of today, and its timer takes that for no wait at all. Here
    // it is neither a `Duration` nor a policy.
    assert_eq!("fixed NaNms equal unbounded".parse::<Policy>().unwrap_err().field(), "duration");
}

/// Of one idea there are three sizes: 12.5, 20 and 25 %.
#[test]
fn three_sizes_of_jitter() {
    assert_eq!(policy("role-catalog-publish").jitter_kind(), Jitter::Proportional(0.125));
    assert_eq!(policy("replica-cold-start").jitter_kind(), Jitter::Proportional(0.2));
    assert!(site("replica-apply").note.contains("a jitter of 25, which is a percentage"));
    for site in &FLEET_POLICIES {
        match site.schedule {
            SiteSchedule::Fixed(policy) if !["role-catalog-publish", "replica-cold-start"].contains(&site.id) => {
                assert_eq!(policy.jitter_kind(), Jitter::None, "{}", site.id);
            }
            _ => {}
        }
    }
}

/// With the flag off no draw exceeds the cap, and below it nothing changes.
fn assert_cap_held(policy: Policy) {
    let above = policy.allow_jitter_above_cap(true);
    let mut rng = SeededRng::new(7);
    for n in FAILURES {
        for _ in 0..10_000 {
            let draw = rng.next_f64();
            let (held, free) = (policy.delay_after(n, draw).unwrap(), above.delay_after(n, draw).unwrap());
            assert_eq!(held, free.min(30 * SEC), "failure {n}, draw {draw}");
        }
    }
    assert_eq!(policy.delay_after(u32::MAX, ALMOST_ONE), Ok(30 * SEC));
}
