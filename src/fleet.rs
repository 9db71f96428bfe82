//! The retry sites of one surveyed fleet, as data.
//!
//! This crate follows a survey of one fleet (TypeScript libraries, commit `8af8e137`) that had written retry by hand 14
//! times. [`FLEET_POLICIES`] holds each of those [`Site`]s as what it becomes here, so that a site is moved over by its
//! name and not by copying numbers, and so that its behaviour before and after can be compared draw by draw.
//!
//! Most rows keep exactly what runs today, its mistakes included: a first wait that is twice the declared one, and
//! jitter that is added after the cap and exceeds it. [`Site::note`] says what to change afterwards. A change of
//! behaviour is never hidden in a move: it is [`Migration::Deliberate`], with its reason.
//!
//! ```
//! use core::time::Duration;
//! use relent::fleet::{self, SiteSchedule};
//!
//! let site = fleet::get("approval-consumer").unwrap();
//! assert_eq!(site.source, "approval/consumer.ts:161");
//! let SiteSchedule::Fixed(policy) = site.schedule else { unreachable!() };
//! assert_eq!(policy.to_string(), "exponential 500ms cap 1m unjittered 5 attempts");
//! assert_eq!(policy.nominal_after(1), Duration::from_millis(500));
//! ```

use core::time::Duration;

use crate::policy::{Jitter, Policy};

/// One place in the fleet that retries.
///
/// ```
/// use relent::fleet::{self, Migration, SiteSchedule};
///
/// let site = fleet::get("outbox-cooldown").unwrap();
/// assert_eq!((site.id, site.retried), ("outbox-cooldown", "every publish failure"));
/// assert_eq!(site.source, "outbox-dispatcher/sql-builders.ts:39");
/// assert!(matches!(site.schedule, SiteSchedule::Fixed(_)));
/// assert_eq!(site.migration, Migration::Preserving);
/// assert!(site.note.starts_with("Linear on purpose."));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Site {
    /// Its name, for [`get`].
    pub id: &'static str,
    /// The files and lines of the code it replaces.
    pub source: &'static str,
    /// When it tries again.
    pub schedule: SiteSchedule,
    /// Which failures it tries again.
    pub retried: &'static str,
    /// What moving it to this crate means.
    pub migration: Migration,
    /// What is not to be seen from the schedule: why it is so, or what should change once it has been moved.
    pub note: &'static str,
}

/// When a [`Site`] tries again.
///
/// ```
/// use relent::fleet::{FLEET_POLICIES, SiteSchedule};
///
/// let (mut fixed, mut from_ttl, mut deliveries) = (0, 0, vec![]);
/// for site in &FLEET_POLICIES {
///     match site.schedule {
///         SiteSchedule::Fixed(_) => fixed += 1,
///         SiteSchedule::FromTtl(_) => from_ttl += 1,
///         SiteSchedule::Broker { attempts } => deliveries.push(attempts),
///     }
/// }
/// assert_eq!((fixed, from_ttl, deliveries), (10, 1, vec![5, 5, 3]));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum SiteSchedule {
    /// As this policy says.
    Fixed(Policy),
    /// As the policy says that this function makes from the time to live of a lease.
    FromTtl(fn(Duration) -> Policy),
    /// When the broker delivers the message again; the site has only a limit.
    Broker {
        /// All deliveries of one message, the first included.
        attempts: u32,
    },
}

/// What moving a [`Site`] to this crate means.
///
/// ```
/// use relent::fleet::{self, Migration};
///
/// let of = |id| fleet::get(id).unwrap().migration;
/// assert_eq!(of("saga-participant"), Migration::Preserving);
/// let Migration::Deliberate(why) = of("telemetry-lease") else { unreachable!() };
/// assert!(why.contains("lockstep"));
/// let Migration::DoNotMigrate(why) = of("replica-apply") else { unreachable!() };
/// assert!(why.starts_with("Dead configuration"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The same failures are tried again, after the same waits.
    Preserving,
    /// The waits change on purpose, for this reason.
    Deliberate(&'static str),
    /// There is nothing to move, for this reason.
    DoNotMigrate(&'static str),
}

const SLOW_DOWN: &str = "No growth and no jitter: a long outage costs 4 to 5 commands a second from every process, for \
                         ever. Once moved, make it exponential with a cap of some seconds.";
const LEAVE_429: &str = "Status 429 is left out on purpose: to honour a Retry-After is the caller's decision.";

/// All 14 sites, in the order of the survey.
///
/// ```
/// use relent::fleet::{FLEET_POLICIES, Migration};
///
/// assert_eq!(FLEET_POLICIES.len(), 14);
/// let kept = FLEET_POLICIES.iter().filter(|site| site.migration == Migration::Preserving);
/// assert_eq!(kept.count(), 12);
/// ```
pub static FLEET_POLICIES: [Site; 14] = [
    Site {
        id: "approval-consumer",
        source: "approval/consumer.ts:161",
        schedule: SiteSchedule::Fixed(
            Policy::exponential(ms(500)).max_delay(ms(60_000)).jitter(Jitter::None).max_attempts(5),
        ),
        retried: "any handler failure",
        migration: Migration::Preserving,
        note: "The declared base is 250 ms, but the counter is incremented before the delay is computed: the first \
               wait is one doubling longer, and the base here is that first wait.",
    },
    Site {
        id: "approval-streams-reader",
        source: "approval/streams-reader.ts:389",
        schedule: SiteSchedule::Fixed(Policy::fixed(ms(200)).unbounded()),
        retried: "any loop failure",
        migration: Migration::Preserving,
        note: SLOW_DOWN,
    },
    Site {
        id: "onboarding-submit",
        source: "onboarding/submit/client.ts:37",
        schedule: SiteSchedule::Fixed(Policy::exponential(ms(1000)).uncapped().jitter(Jitter::None)),
        retried: "network failures, timeouts, 5xx",
        migration: Migration::Preserving,
        note: LEAVE_429,
    },
    Site {
        id: "onboarding-signup",
        source: "onboarding/submit/signup-client.ts:44",
        schedule: SiteSchedule::Fixed(Policy::exponential(ms(1000)).uncapped().jitter(Jitter::None)),
        retried: "network failures, timeouts, 5xx",
        migration: Migration::Preserving,
        note: LEAVE_429,
    },
    Site {
        id: "outbox-cooldown",
        source: "outbox-dispatcher/sql-builders.ts:39",
        schedule: SiteSchedule::Fixed(Policy::linear(ms(60_000)).max_attempts(8)),
        retried: "every publish failure",
        migration: Migration::Preserving,
        note: "Linear on purpose. The limit ends the claiming of a row; the row stays the source of truth and is never \
               deleted.",
    },
    Site {
        id: "outbox-drainer",
        source: "outbox-dispatcher/drainer.ts:421",
        schedule: SiteSchedule::Fixed(Policy::fixed(ms(200)).unbounded()),
        retried: "any drain failure",
        migration: Migration::Preserving,
        note: SLOW_DOWN,
    },
    Site {
        id: "replica-cold-start",
        source: "replica-consumer/start.ts:242",
        schedule: SiteSchedule::Fixed(
            Policy::exponential(ms(1000)).jitter(Jitter::Proportional(0.2)).allow_jitter_above_cap(true).unbounded(),
        ),
        retried: "every bootstrap failure",
        migration: Migration::Preserving,
        note: "Jitter comes after the cap: up to 36 s against a declared 30 s. To hold the cap is a change of its own. \
               It never gives up on purpose: that would drop a backfill.",
    },
    Site {
        id: "replica-apply",
        source: "replica-consumer/define-replica.ts:294, init.ts:17",
        schedule: SiteSchedule::Broker { attempts: 5 },
        retried: "nothing: the setting is never read",
        migration: Migration::DoNotMigrate(
            "Dead configuration: a policy made from it would switch on a delay that has never run. What spaces the \
             attempts is the broker's redelivery.",
        ),
        note: "It declares 100 ms, doubling, capped at 30 s, with a jitter of 25, which is a percentage: as a fraction \
               it would be 2500 % to either side, and is refused. An unknown kind of aggregate is fatal to the \
               process, and no failure to retry.",
    },
    Site {
        id: "replica-streams-worker",
        source: "replica-consumer/worker/streams-worker.ts:1120",
        schedule: SiteSchedule::Broker { attempts: 5 },
        retried: "all apply errors, then dead letter",
        migration: Migration::Preserving,
        note: "The broker's redelivery spaces the attempts.",
    },
    Site {
        id: "role-catalog-publish",
        source: "role-catalog/publish.ts:203",
        schedule: SiteSchedule::Fixed(
            Policy::exponential(ms(100))
                .jitter(Jitter::Proportional(0.125))
                .allow_jitter_above_cap(true)
                .max_attempts(30),
        ),
        retried: "gRPC UNAVAILABLE only",
        migration: Migration::Preserving,
        note: "Jitter comes after the cap: up to 33.75 s against a declared 30 s. To hold the cap is a change of its \
               own. A failed precondition ends it at once on purpose: no wait heals a version mismatch.",
    },
    Site {
        id: "saga-participant",
        source: "saga/participant-worker.ts:351",
        schedule: SiteSchedule::Fixed(Policy::fixed(ms(250)).unbounded()),
        retried: "any loop failure",
        migration: Migration::Preserving,
        note: SLOW_DOWN,
    },
    Site {
        id: "telemetry-streams-worker",
        source: "telemetry/worker/streams-worker.ts:776",
        schedule: SiteSchedule::Broker { attempts: 3 },
        retried: "poison-tagged errors only",
        migration: Migration::Preserving,
        note: "The broker's redelivery spaces the attempts. Only poison spends them, on purpose: otherwise a few \
               outages would send a good event to the dead letters.",
    },
    Site {
        id: "telemetry-outbox",
        source: "telemetry/worker/outbox-dispatcher.ts:262",
        schedule: SiteSchedule::Fixed(Policy::fixed(ms(200)).unbounded()),
        retried: "any drain failure",
        migration: Migration::Preserving,
        note: SLOW_DOWN,
    },
    Site {
        id: "telemetry-lease",
        source: "telemetry/worker/single-active-lease.ts:714",
        schedule: SiteSchedule::FromTtl(lease),
        retried: "lease not held, or Redis down",
        migration: Migration::Deliberate(
            "Without jitter every replica comes back in lockstep after an outage. Equal jitter ends that, and no \
             replica waits longer than today.",
        ),
        note: "Today's wait is half the time to live, at least 1 s.",
    },
];

/// The site of this name.
///
/// ```
/// use core::time::Duration;
/// use relent::fleet::{self, SiteSchedule};
///
/// let site = fleet::get("telemetry-lease").unwrap();
/// let SiteSchedule::FromTtl(policy) = site.schedule else { unreachable!() };
/// let seconds = Duration::from_secs;
/// assert_eq!(policy(seconds(30)).bounds_after(1), (Duration::from_millis(7500), seconds(15)));
/// assert_eq!(policy(seconds(0)).bounds_after(1), (Duration::from_millis(500), seconds(1)));
///
/// assert!(fleet::get("no-such-site").is_none());
/// ```
#[must_use]
pub fn get(id: &str) -> Option<&'static Site> {
    FLEET_POLICIES.iter().find(|site| site.id == id)
}

/// Half the time to live, at least 1 s, and any number of attempts.
fn lease(ttl: Duration) -> Policy {
    Policy::fixed((ttl / 2).max(ms(1000))).jitter(Jitter::Equal).unbounded()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
