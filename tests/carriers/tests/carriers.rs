//! Markers are found in the error types that programs really use, and printed chains stay readable.

use std::{error::Error, fmt, io, sync::Arc, time::Duration};

use relent::{
    NonRetryableError,
    error::{AsError, Auto, CircuitOpen, Marking, NotExecuted, RetryAfterError, Signs},
};

const WAIT: Duration = Duration::from_secs(3);

fn signs<E: AsError<K>, K>(error: &E) -> Signs {
    Auto::<K>::signs(error)
}

/// The text of the error that the outermost `NonRetryableError` wraps.
fn found<E: AsError<K>, K>(error: &E) -> Option<String> {
    NonRetryableError::find(error.as_error()?).map(ToString::to_string)
}

#[derive(Debug, thiserror::Error)]
#[error("row {0} not found")]
struct RowNotFound(u32);

#[derive(Debug, thiserror::Error)]
#[error("no such user")]
struct NoSuchUser(#[source] RowNotFound);

fn marker() -> NonRetryableError {
    NonRetryableError::new(NoSuchUser(RowNotFound(7)))
}

#[derive(Debug, thiserror::Error)]
enum Typed {
    #[error("permanent")]
    From(#[from] NonRetryableError),
    #[error("named source")]
    Source { source: NonRetryableError },
    #[error(transparent)]
    Transparent(NonRetryableError),
    #[error(transparent)]
    Anyhow(anyhow::Error),
    #[error(transparent)]
    Nested(Box<Typed>),
    #[error("breaker")]
    Breaker(#[source] CircuitOpen),
    #[error(transparent)]
    TransparentBreaker(CircuitOpen),
    #[error(transparent)]
    Throttled(RetryAfterError),
    #[error("busy")]
    Busy,
}

#[test]
fn a_typed_enum_carries_a_marker() {
    assert_eq!(found(&Typed::from(marker())).as_deref(), Some("no such user"));
    assert_eq!(found(&Typed::Source { source: marker() }).as_deref(), Some("no such user"));
    assert_eq!(found(&Box::new(Typed::from(marker()))).as_deref(), Some("no such user"));
    assert_eq!(signs(&Typed::Busy), Signs::NONE);
}

#[test]
fn a_transparent_wrapper_carries_a_marker() {
    let nested = Typed::Nested(Box::new(Typed::Nested(Box::new(Typed::Transparent(marker())))));
    assert_eq!(found(&nested).as_deref(), Some("no such user"));
    assert_eq!(found(&Typed::Anyhow(marker().into())).as_deref(), Some("no such user"));
    assert_eq!(found(&Typed::Anyhow(anyhow::Error::new(marker()).context("outer"))).as_deref(), Some("no such user"));
}

#[test]
fn a_transparent_wrapper_carries_a_hint_and_a_refusal() {
    let throttled = Typed::Throttled(RetryAfterError::new(RowNotFound(7), WAIT));
    assert_eq!(signs(&throttled).retry_after(), Some(WAIT));
    assert!(!signs(&throttled).not_executed());

    for breaker in [Typed::Breaker, Typed::TransparentBreaker] {
        let signs = signs(&breaker(CircuitOpen::new("db", WAIT)));
        assert_eq!(signs.retry_after(), Some(WAIT));
        assert!(signs.not_executed());
    }
}

#[test]
fn boxes_and_arcs_carry_a_marker() {
    assert!(found(&Box::<dyn Error>::from(marker())).is_some());
    assert!(found::<Box<dyn Error + Send>, _>(&(Box::new(marker()) as _)).is_some());
    assert!(found::<Box<dyn Error + Sync>, _>(&(Box::new(marker()) as _)).is_some());
    assert!(found(&Box::<dyn Error + Send + Sync>::from(marker())).is_some());
    assert!(found(&(Arc::new(marker()) as Arc<dyn Error + Send + Sync>)).is_some());
    assert!(found(&(Arc::new(Typed::Transparent(marker())) as Arc<dyn Error + Send + Sync>)).is_some());
}

#[test]
fn anyhow_carries_a_marker_below_its_contexts() {
    use anyhow::Context as _;

    let error = Err::<(), _>(marker()).context("loading").context("starting").unwrap_err();
    assert_eq!(found(&error).as_deref(), Some("no such user"));
    assert_eq!(found(&anyhow::Error::from(marker())).as_deref(), Some("no such user"));
    assert_eq!(found(&anyhow::Error::from(Typed::from(marker())).context("loading")).as_deref(), Some("no such user"));
    assert_eq!(signs(&anyhow::anyhow!("busy").context("loading")), Signs::NONE);
}

#[test]
fn eyre_carries_a_marker_below_its_contexts() {
    use eyre::WrapErr as _;

    let error = Err::<(), _>(marker()).wrap_err("loading").wrap_err("starting").unwrap_err();
    assert_eq!(found(&error).as_deref(), Some("no such user"));
    assert_eq!(found(&eyre::Report::from(marker())).as_deref(), Some("no such user"));
    assert_eq!(signs(&eyre::eyre!("busy").wrap_err("loading")), Signs::NONE);
}

#[test]
fn io_error_carries_a_marker() {
    assert!(found(&io::Error::other(marker())).is_some());
    assert!(found(&io::Error::other(Typed::Transparent(marker()))).is_some());
    assert!(found(&io::Error::other(io::Error::other(marker()))).is_some());
    assert!(found(&anyhow::Error::from(io::Error::other(marker())).context("reading")).is_some());
    assert!(signs(&io::Error::other(CircuitOpen::new("db", WAIT))).not_executed());
}

/// Such a marker stands in no `source()` chain, so nobody can see it.
#[test]
fn a_marker_given_as_a_context_is_not_seen() {
    use anyhow::Context as _;

    let load = || Err::<(), _>(RowNotFound(7));

    let error = load().context(NonRetryableError::new("permanent")).unwrap_err();
    assert_eq!(signs(&error), Signs::NONE);
    assert_eq!(signs(&eyre::Report::new(RowNotFound(7)).wrap_err(NonRetryableError::new("permanent"))), Signs::NONE);

    let marked = load().map_err(NonRetryableError::new).context("loading").unwrap_err();
    assert_eq!(found(&marked).as_deref(), Some("row 7 not found"));
}

#[test]
fn a_whole_report_can_be_marked_and_unmarked() {
    let report = anyhow::Error::new(RowNotFound(7)).context("loading");
    let marked = NonRetryableError::new(report);
    assert_eq!(format!("{:#}", anyhow::anyhow!(marked)), "loading: not retryable: row 7 not found");

    let inner = NonRetryableError::new(eyre::Report::new(RowNotFound(7)).wrap_err("loading")).into_inner();
    assert_eq!(inner.to_string(), "loading");
    assert_eq!(found(&inner), None);
    assert!(inner.source().is_some_and(|cause| cause.is::<RowNotFound>()));
}

#[test]
fn the_wrapped_error_can_be_downcast() {
    let error = anyhow::Error::new(marker()).context("loading");
    let wrapped = NonRetryableError::find(error.as_ref()).unwrap();
    assert!(wrapped.downcast_ref::<NoSuchUser>().is_some());
}

/// Every text stands once: the wrapped error's, the mark's, and the causes'.
#[test]
fn a_printed_chain_shows_each_text_once() {
    let shown = |error: anyhow::Error| format!("{error:#}");
    assert_eq!(shown(marker().into()), "no such user: not retryable: row 7 not found");
    assert_eq!(
        shown(anyhow::Error::new(marker()).context("loading")),
        "loading: no such user: not retryable: row 7 not found"
    );
    assert_eq!(
        shown(RetryAfterError::new(NoSuchUser(RowNotFound(7)), WAIT).into()),
        "no such user: retry after 3s: row 7 not found"
    );
    assert_eq!(
        shown(NotExecuted::new(NoSuchUser(RowNotFound(7))).into()),
        "no such user: the operation did not run: row 7 not found"
    );
    assert_eq!(
        shown(CircuitOpen::new("db", WAIT).into()),
        r#"circuit breaker "db" is open, retry after 3s: the operation did not run"#
    );
    assert_eq!(shown(Typed::Transparent(marker()).into()), "no such user: not retryable: row 7 not found");
    assert_eq!(shown(io::Error::other(marker()).into()), "no such user: not retryable: row 7 not found");
    assert_eq!(
        format!("{:#}", eyre::Report::new(marker()).wrap_err("loading")),
        "loading: no such user: not retryable: row 7 not found"
    );
}

#[test]
fn a_report_lists_the_mark_among_the_causes() {
    let report = format!("{:?}", anyhow::Error::new(marker()).context("loading"));
    assert!(
        report.starts_with("loading\n\nCaused by:\n    0: no such user\n    1: not retryable\n    2: row 7 not found"),
        "{report}"
    );
}

#[derive(Debug, thiserror::Error)]
#[error("link")]
struct Link(#[source] Box<dyn Error + Send + Sync>);

fn below(links: usize, error: impl Error + Send + Sync + 'static) -> anyhow::Error {
    (0..links).fold(error.into(), |error: anyhow::Error, _| Link(error.into()).into())
}

#[test]
fn sixty_four_links_are_read() {
    assert!(found(&below(63, marker())).is_some());
    assert!(found(&below(64, marker())).is_none());
    assert!(found(&below(1_000, marker()).context("loading")).is_none());
}

#[derive(Debug)]
struct Loop;

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loop")
    }
}

impl Error for Loop {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

#[test]
fn a_looping_chain_ends() {
    assert_eq!(signs(&anyhow::Error::new(Loop)), Signs::NONE);
    assert!(signs(&anyhow::Error::new(NonRetryableError::new(Loop))).not_retryable());
}
