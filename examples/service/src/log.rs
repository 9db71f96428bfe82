//! The log: shown as far as it is asked for, and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Shows this program's events from `level` on: `warn` has the breaker, `info` runs that fail too, `debug` every retry.
///
/// # Errors
///
/// If something else has taken the log already.
pub fn show(level: LevelFilter) -> Result<(), TryInitError> {
    let ours = |level| Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    let shown = fmt::layer().with_filter(ours(level));
    let counted = Count.with_filter(ours(LevelFilter::DEBUG));
    Registry::default().with(shown).with(counted).try_init()
}

/// How many events there were, shown or not.
#[must_use]
pub fn events() -> u64 {
    EVENTS.load(Relaxed)
}

struct Count;

impl<S: Subscriber> Layer<S> for Count {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        EVENTS.fetch_add(1, Relaxed);
    }
}
