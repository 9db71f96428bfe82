//! What the service shows of its calls: events for the log, counters for `/metrics`.

use std::fmt;
use std::sync::LazyLock;

use axum::http::StatusCode;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use relent::breaker::{State, Transition};
use relent::clock::SystemClock;
use relent::retry::Event;
use tracing::{debug, info, warn};

use crate::client::{BREAKER, BUDGET, UpstreamError};

/// The counters of this process: a breaker's hook is a plain function, so they cannot hang on anything else.
pub static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Status {
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refused {
    by: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Entered {
    state: String,
}

pub struct Metrics {
    registry: Registry,
    attempts: Counter,
    retries: Counter,
    runs: Family<Outcome, Counter>,
    refused: Family<Refused, Counter>,
    transitions: Family<Entered, Counter>,
    responses: Family<Status, Counter>,
    in_flight: Gauge,
    breaker_closed: Gauge,
    budget: Gauge,
    timers: Gauge,
}

impl Metrics {
    fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("shop"),
            attempts: Counter::default(),
            retries: Counter::default(),
            runs: Family::default(),
            refused: Family::default(),
            transitions: Family::default(),
            responses: Family::default(),
            in_flight: Gauge::default(),
            breaker_closed: Gauge::default(),
            budget: Gauge::default(),
            timers: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("upstream_attempts", "Attempts begun", metrics.attempts.clone());
        registry.register("upstream_retries", "Retries decided on", metrics.retries.clone());
        registry.register("upstream_runs", "Runs ended, by how", metrics.runs.clone());
        registry.register("upstream_refused", "Calls refused, by whom", metrics.refused.clone());
        registry.register("upstream_breaker", "States that the breaker entered", metrics.transitions.clone());
        registry.register("responses", "Answers given, by status", metrics.responses.clone());
        registry.register("upstream_in_flight", "Calls that are under way", metrics.in_flight.clone());
        registry.register("upstream_breaker_closed", "Whether it is closed", metrics.breaker_closed.clone());
        registry.register("upstream_budget", "Retries that would be granted now", metrics.budget.clone());
        registry.register("upstream_timers", "Waits that the timer holds", metrics.timers.clone());
        metrics
    }

    /// An attempt begins.
    pub fn attempted(&self) {
        self.attempts.inc();
    }

    /// The warehouse was not called at all.
    pub fn refused(&self, by: &'static str) {
        self.refused.get_or_create(&Refused { by }).inc();
        debug!("refused by {by}");
    }

    /// The breaker changed.
    pub fn changed(&self, transition: &Transition) {
        self.transitions.get_or_create(&Entered { state: transition.to().to_string() }).inc();
        warn!("{transition}");
    }

    /// The service answered.
    pub fn answered(&self, status: StatusCode) {
        self.responses.get_or_create(&Status { status: status.as_u16() }).inc();
    }

    /// What a run tells of itself.
    pub fn observe(&self, event: &Event<'_, UpstreamError>) {
        let outcome = match event {
            Event::Scheduled { attempt, delay, error } => {
                debug!(attempt, ?delay, error = *error as &dyn std::error::Error, "will retry");
                self.retries.inc();
                return;
            }
            Event::Succeeded { attempts } => {
                debug!(attempts, "succeeded");
                "succeeded"
            }
            Event::Exhausted { attempts, error } => {
                info!(attempts, error = *error as &dyn std::error::Error, "gave up");
                "exhausted"
            }
            Event::Declined { attempt, error, reason } => {
                info!(attempt, %reason, error = *error as &dyn std::error::Error, "gave up");
                reason.name()
            }
            Event::Cancelled => {
                info!("cancelled");
                "cancelled"
            }
            _ => "other",
        };
        self.runs.get_or_create(&Outcome { outcome }).inc();
    }

    /// A call is under way until the guard is dropped: a run that is dropped tells of no event.
    pub fn calling(&self) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight(&self.in_flight)
    }

    /// How many calls are under way.
    #[must_use]
    pub fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// How many runs ended so.
    #[must_use]
    pub fn runs(&self, outcome: &'static str) -> u64 {
        self.runs.get_or_create(&Outcome { outcome }).get()
    }

    /// How many retries were decided on so far.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.get()
    }

    /// The page that Prometheus asks for.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn page(&self) -> Result<String, fmt::Error> {
        self.breaker_closed.set((BREAKER.state() == State::Closed).into());
        self.budget.set(BUDGET.balance().into());
        self.timers.set(i64::try_from(SystemClock::pending()).unwrap_or(i64::MAX));
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

/// A call that is under way.
#[must_use]
pub struct InFlight<'a>(&'a Gauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
