//! Markers are found wherever they stand, say what they say, and show nothing twice.

use std::{
    borrow::Cow,
    convert::Infallible,
    error::Error,
    fmt, io,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use proptest::prelude::*;
use relent::{
    NonRetryableError,
    error::{
        AsError, Auto, Boxed, CircuitOpen, Dynamic, Marking, NotExecuted, Plain, PlainError, RetryAfterError, Signs,
        Typed, Undecided, Unmarked,
    },
};

const WAIT: Duration = Duration::from_millis(1500);

type BoxError = Box<dyn Error + Send + Sync>;

fn signs<E: AsError<K>, K>(error: &E) -> Signs {
    Auto::<K>::signs(error)
}

fn is_permanent<E: AsError<K>, K>(error: &E) -> bool {
    signs(error).not_retryable()
}

/// An error without a cause.
#[derive(Debug)]
struct Root;

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("root")
    }
}

impl Error for Root {}

/// An error with a cause.
#[derive(Debug)]
struct Caused(BoxError);

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caused")
    }
}

impl Error for Caused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// A wrapper that shows nothing of itself: text and source are the wrapped error's.
#[derive(Debug)]
struct Transparent(BoxError);

impl fmt::Display for Transparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Transparent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// An error that is its own cause, and counts how often it is asked for it.
#[derive(Debug)]
struct Loop(Arc<AtomicUsize>);

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loop")
    }
}

impl Error for Loop {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(self)
    }
}

fn permanent() -> NonRetryableError {
    NonRetryableError::new(Caused(Root.into()))
}

/// The texts of an error and its causes, as a report prints them.
fn printed(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |&link| link.source()).map(ToString::to_string).collect()
}

fn caused(times: usize, error: impl Error + Send + Sync + 'static) -> BoxError {
    (0..times).fold(error.into(), |error, _| Caused(error).into())
}

#[test]
fn a_marker_is_found_in_every_carrier() {
    assert!(is_permanent(&permanent()));
    assert!(is_permanent(&Caused(permanent().into())));
    assert!(is_permanent(&Transparent(permanent().into())));
    assert!(is_permanent(&Box::new(permanent())));
    assert!(is_permanent::<Box<dyn Error>, Boxed>(&permanent().into()));
    assert!(is_permanent::<Box<dyn Error + Send>, Boxed>(&(Box::new(permanent()) as _)));
    assert!(is_permanent::<Box<dyn Error + Sync>, Boxed>(&(Box::new(permanent()) as _)));
    assert!(is_permanent::<BoxError, Dynamic>(&permanent().into()));
    assert!(is_permanent::<Arc<dyn Error + Send + Sync>, Typed>(&(Arc::new(permanent()) as _)));
    assert!(is_permanent::<Arc<NonRetryableError>, Typed>(&Arc::new(permanent())));
    assert!(is_permanent(&io::Error::other(permanent())));
}

#[test]
fn every_marker_says_its_own_thing_and_nothing_else() {
    let none = (false, false, None);
    let all = |error: &(dyn Error + 'static)| {
        let signs = Signs::of(error);
        (signs.not_retryable(), signs.not_executed(), signs.retry_after())
    };

    assert_eq!(all(&Root), none);
    assert_eq!(all(&Caused(Root.into())), none);
    assert_eq!(all(&NonRetryableError::new(Root)), (true, false, None));
    assert_eq!(all(&NotExecuted::new(Root)), (false, true, None));
    assert_eq!(all(&RetryAfterError::new(Root, WAIT)), (false, false, Some(WAIT)));
    assert_eq!(all(&CircuitOpen::new("db", WAIT)), (false, true, Some(WAIT)));
}

#[test]
fn markers_within_markers_add_up() {
    let error = NonRetryableError::new(NotExecuted::new(RetryAfterError::new(Root, WAIT)));
    let signs = signs(&error);
    assert!(signs.not_retryable() && signs.not_executed());
    assert_eq!(signs.retry_after(), Some(WAIT));

    assert!(RetryAfterError::find(&error).is_some_and(<dyn Error>::is::<Root>));
    assert!(NotExecuted::find(&error).is_some_and(<dyn Error>::is::<RetryAfterError>));
    assert!(NonRetryableError::find(&error).is_some_and(<dyn Error>::is::<NotExecuted>));
}

#[test]
fn of_several_hints_the_outermost_counts() {
    let inner = RetryAfterError::new(CircuitOpen::new("db", Duration::from_secs(9)), WAIT);
    assert_eq!(signs(&Caused(inner.into())).retry_after(), Some(WAIT));
}

#[test]
fn a_refusal_is_seen_behind_a_transparent_wrapper() {
    let error = Transparent(Transparent(CircuitOpen::new("db", WAIT).into()).into());
    assert!(signs(&error).not_executed());
    assert_eq!(signs(&error).retry_after(), Some(WAIT));
    assert!(NotExecuted::find(&error).is_none(), "a refusal wraps no error");
}

#[test]
fn find_gives_the_error_that_the_outermost_marker_wraps() {
    let error = Caused(NonRetryableError::new(Transparent(permanent().into())).into());
    assert!(NonRetryableError::find(&error).is_some_and(<dyn Error>::is::<Transparent>));
    assert!(NonRetryableError::find(&Caused(Root.into())).is_none());
    assert!(NonRetryableError::find(&NotExecuted::new(Root)).is_none());
    assert!(RetryAfterError::find(&permanent()).is_none());
}

#[test]
fn into_inner_takes_one_mark_off() {
    let once = NonRetryableError::new(NonRetryableError::new(Root)).into_inner();
    assert!(is_permanent(&once));
    let twice = once.downcast::<NonRetryableError>().unwrap().into_inner();
    assert!(!is_permanent(&twice));
    assert!(twice.is::<Root>());

    assert!(!signs(&NotExecuted::new(Root).into_inner()).not_executed());
    assert_eq!(signs(&RetryAfterError::new(Root, WAIT).into_inner()).retry_after(), None);
}

#[test]
fn a_printed_chain_shows_each_text_once() {
    assert_eq!(printed(&permanent()), ["caused", "not retryable", "root"]);
    assert_eq!(printed(&NotExecuted::new(Root)), ["root", "the operation did not run"]);
    assert_eq!(printed(&RetryAfterError::new(Root, WAIT)), ["root", "retry after 1.5s"]);
    assert_eq!(
        printed(&CircuitOpen::new("db", WAIT)),
        [r#"circuit breaker "db" is open, retry after 1.5s"#, "the operation did not run"]
    );
    assert_eq!(
        printed(&NonRetryableError::new(NotExecuted::new(Root))),
        ["root", "not retryable", "the operation did not run"]
    );
    assert_eq!(printed(&io::Error::other(permanent())), ["caused", "not retryable", "root"]);
}

#[test]
fn debug_shows_the_marker_and_what_it_wraps() {
    assert_eq!(format!("{:?}", NonRetryableError::new(Root)), "NonRetryableError(Root)");
    assert_eq!(format!("{:?}", NotExecuted::new(Root)), "NotExecuted(Root)");
    assert_eq!(format!("{:?}", RetryAfterError::new(Root, WAIT)), "RetryAfterError { error: Root, retry_after: 1.5s }");
    assert_eq!(format!("{:?}", CircuitOpen::new("db", WAIT)), r#"CircuitOpen { name: "db", retry_after: 1.5s }"#);
    assert_eq!(
        format!("{Unmarked:?} {Undecided:?} {Typed:?} {Dynamic:?} {Boxed:?} {Plain:?}"),
        "Unmarked Undecided Typed Dynamic Boxed Plain"
    );
}

#[test]
fn the_first_sixty_four_links_are_read() {
    assert!(is_permanent(&caused(63, permanent())));
    assert!(!is_permanent(&caused(64, permanent())));
    assert!(signs(&caused(63, CircuitOpen::new("", WAIT))).not_executed());
    assert!(!signs(&caused(64, CircuitOpen::new("", WAIT))).not_executed());
    assert!(NonRetryableError::find(&*caused(63, permanent())).is_some());
    assert!(NonRetryableError::find(&*caused(64, permanent())).is_none());
}

#[test]
fn a_looping_chain_is_walked_once_for_all_signs() {
    let asked = Arc::new(AtomicUsize::new(0));
    assert_eq!(signs(&Loop(asked.clone())), Signs::NONE);
    assert_eq!(asked.load(Ordering::Relaxed), 64);

    assert!(is_permanent(&NonRetryableError::new(Loop(asked))));
}

#[test]
fn plain_data_says_nothing() {
    struct Mine;
    impl PlainError for Mine {}

    fn plain<E: AsError<Plain>>(error: &E) {
        assert_eq!(signs(error), Signs::NONE);
    }

    plain(&());
    plain(&true);
    plain(&'x');
    plain(&1.5_f32);
    plain(&1.5_f64);
    plain(&-1);
    plain(&u64::MAX);
    plain(&usize::MAX);
    plain(&"text");
    plain(&String::from("text").as_str());
    plain(&String::from("text"));
    plain(&Box::<str>::from("text"));
    plain(&Cow::from("text"));
    plain(&WAIT);
    plain(&io::ErrorKind::NotFound);
    plain(&None::<String>);
    plain(&[1, 2]);
    plain(&vec!["text"]);
    plain(&(1,));
    plain(&(1, "text"));
    plain(&(1, "text", 'x'));
    plain(&(1, "text", 'x', Some(())));
    plain(&Mine);
}

#[test]
fn an_error_that_cannot_happen_is_a_typed_one() {
    fn typed<E: AsError<Typed>>() {}
    typed::<Infallible>();
}

#[test]
fn an_unmarked_run_reads_no_type_and_accepts_all() {
    struct Foreign<'a>(#[expect(dead_code, reason = "only borrowed")] &'a str);

    let text = String::from("text");
    assert_eq!(Unmarked::signs(&Foreign(&text)), Signs::NONE);
    assert_eq!(Unmarked::signs(&Rc::new(permanent())), Signs::NONE);
    assert_eq!(Unmarked::signs(&permanent()), Signs::NONE);
}

#[test]
fn markers_cross_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<NonRetryableError>();
    crosses::<RetryAfterError>();
    crosses::<NotExecuted>();
    crosses::<CircuitOpen>();
    crosses::<Auto<Rc<()>>>();
}

#[derive(Clone, Copy, Debug)]
enum Layer {
    Caused,
    Transparent,
    Io,
    Arc,
    NotExecuted,
}

impl Layer {
    fn around(self, error: BoxError) -> BoxError {
        match self {
            Self::Caused => Caused(error).into(),
            Self::Transparent => Transparent(error).into(),
            Self::Io => io::Error::other(error).into(),
            Self::Arc => Box::new(Arc::<dyn Error + Send + Sync>::from(error)),
            Self::NotExecuted => NotExecuted::new(error).into(),
        }
    }
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let layer = prop_oneof![
        Just(Layer::Caused),
        Just(Layer::Transparent),
        Just(Layer::Io),
        Just(Layer::Arc),
        Just(Layer::NotExecuted),
    ];
    prop::collection::vec(layer, 0..20)
}

proptest! {
    #[test]
    fn a_marker_is_found_below_any_layers(layers in layers()) {
        let wrap = |error: BoxError| layers.iter().fold(error, |error, layer| layer.around(error));
        prop_assert!(is_permanent(&wrap(NonRetryableError::new(Root).into())));
        prop_assert!(!is_permanent(&wrap(Root.into())));
        let found = NonRetryableError::find(&*wrap(NonRetryableError::new(Root).into())).map(<dyn Error>::is::<Root>);
        prop_assert_eq!(found, Some(true));
    }
}
