//! Which failures count as transient.

use proptest::prelude::*;
use relent::transient::{http_status, http_status_strict, should_retry_from_outcome_classifier as classifier};

#[cfg(feature = "std")]
mod io_error {
    use std::error::Error;
    use std::fmt;
    use std::io::{self, ErrorKind};
    use std::sync::Arc;

    use relent::breaker::CallError;
    use relent::error::CircuitOpen;
    use relent::transient::io_error;

    const TRANSIENT: [ErrorKind; 11] = [
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::TimedOut,
        ErrorKind::Interrupted,
        ErrorKind::WouldBlock,
        ErrorKind::NetworkUnreachable,
        ErrorKind::HostUnreachable,
        ErrorKind::NetworkDown,
        ErrorKind::UnexpectedEof,
    ];

    /// The rest of the kinds that are stable in Rust 1.85.
    const PERMANENT: [ErrorKind; 27] = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::NotConnected,
        ErrorKind::AddrInUse,
        ErrorKind::AddrNotAvailable,
        ErrorKind::AlreadyExists,
        ErrorKind::NotADirectory,
        ErrorKind::IsADirectory,
        ErrorKind::DirectoryNotEmpty,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::StaleNetworkFileHandle,
        ErrorKind::InvalidInput,
        ErrorKind::InvalidData,
        ErrorKind::WriteZero,
        ErrorKind::StorageFull,
        ErrorKind::NotSeekable,
        ErrorKind::QuotaExceeded,
        ErrorKind::FileTooLarge,
        ErrorKind::ResourceBusy,
        ErrorKind::ExecutableFileBusy,
        ErrorKind::Deadlock,
        ErrorKind::CrossesDevices,
        ErrorKind::TooManyLinks,
        ErrorKind::ArgumentListTooLong,
        ErrorKind::Unsupported,
        ErrorKind::OutOfMemory,
        ErrorKind::Other,
    ];

    /// An error that shows its source, as a typed enum does.
    #[derive(Debug)]
    struct Wrapper<S>(S);

    impl<S> fmt::Display for Wrapper<S> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("connection reset by peer")
        }
    }

    impl<S: Error + 'static> Error for Wrapper<S> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    /// An error whose source is itself.
    #[derive(Debug)]
    struct Looping;

    impl fmt::Display for Looping {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("looping")
        }
    }

    impl Error for Looping {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    /// Field case 85.
    #[test]
    fn a_breaker_does_not_hide_the_error() {
        let call = |kind: ErrorKind| CallError::Inner(io::Error::from(kind));
        assert!(io_error(&call(ErrorKind::ConnectionReset)));
        assert!(!io_error(&call(ErrorKind::InvalidInput)));
        assert!(io_error(&io::Error::other(call(ErrorKind::ConnectionReset))));
        assert!(io_error(&CallError::Inner(Arc::new(io::Error::from(ErrorKind::ConnectionReset)))));
        let open = CallError::<io::Error>::Open(CircuitOpen::new("db", std::time::Duration::ZERO));
        assert!(!io_error(&open));
    }

    #[test]
    fn every_kind_is_in_the_table() {
        for (kinds, transient) in [(&TRANSIENT[..], true), (&PERMANENT[..], false)] {
            for &kind in kinds {
                assert_eq!(io_error(&io::Error::from(kind)), transient, "{kind:?}");
                assert_eq!(io_error(&io::Error::new(kind, "some text")), transient, "{kind:?} with text");
            }
        }
    }

    /// Field case 85, for the kinds that have no stable name: those of the operating system's errors.
    #[cfg(target_os = "linux")]
    #[test]
    fn of_all_linux_errors_those_of_the_network_and_interruptions_are_transient() {
        // EINTR, EAGAIN, EPIPE, ENETDOWN, ENETUNREACH, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH
        let transient = [4, 11, 32, 100, 101, 103, 104, 110, 111, 113];
        for code in 0..=4095 {
            assert_eq!(io_error(&io::Error::from_raw_os_error(code)), transient.contains(&code), "os error {code}");
        }
    }

    /// Field case 83.
    #[test]
    fn the_kind_decides_and_the_text_does_not() {
        assert!(io_error(&io::Error::from(ErrorKind::BrokenPipe)));
        assert!(io_error(&io::Error::new(ErrorKind::ConnectionReset, "I/O error: no such file or directory")));
        assert!(!io_error(&io::Error::other("I/O error: connection reset by peer")));
        assert!(!io_error(&io::Error::new(ErrorKind::NotFound, "broken pipe")));
        assert!(!io_error(&Wrapper(Wrapper(fmt::Error))));
    }

    /// Field case 82.
    #[test]
    fn an_ambiguous_end_of_file_can_be_overridden() {
        struct Fetch {
            error: io::Error,
            is_parse: bool,
        }
        let when = |e: &Fetch| io_error(&e.error) && !e.is_parse;
        assert!(when(&Fetch { error: ErrorKind::UnexpectedEof.into(), is_parse: false }));
        assert!(!when(&Fetch { error: ErrorKind::UnexpectedEof.into(), is_parse: true }));

        let malformed = io::Error::new(ErrorKind::InvalidData, io::Error::from(ErrorKind::UnexpectedEof));
        assert!(!io_error(&malformed), "the layer that knows more has said so by its kind");
    }

    #[test]
    fn it_finds_the_io_error_wherever_it_stands() {
        let reset = || io::Error::from(ErrorKind::ConnectionReset);
        let denied = || io::Error::from(ErrorKind::PermissionDenied);

        for (make, transient) in [(&reset as &dyn Fn() -> io::Error, true), (&denied, false)] {
            assert_eq!(io_error(&Wrapper(make())), transient);
            assert_eq!(io_error(&Wrapper(Wrapper(make()))), transient);
            assert_eq!(io_error(&io::Error::other(make())), transient);
            assert_eq!(io_error(&io::Error::other(io::Error::other(make()))), transient);
            assert_eq!(io_error(&io::Error::other(Wrapper(make()))), transient);
            assert_eq!(io_error(&Wrapper(io::Error::other(make()))), transient);
            assert_eq!(io_error(&Arc::new(make())), transient);
            assert_eq!(io_error(&relent::error::NotExecuted::new(make())), transient);
            assert_eq!(io_error(&Wrapper(Arc::new(make()))), transient);
            let shared: Arc<dyn Error + Send + Sync> = Arc::new(Wrapper(make()));
            assert_eq!(io_error(&shared), transient);
            let shared: Arc<dyn Error + Send + Sync> = Arc::new(make());
            assert_eq!(io_error(&Wrapper(shared)), transient);
        }
    }

    #[test]
    fn the_outermost_io_error_decides_unless_it_is_of_kind_other() {
        for &outer in TRANSIENT.iter().chain(&PERMANENT) {
            for &inner in TRANSIENT.iter().chain(&PERMANENT) {
                let decides = if outer == ErrorKind::Other { inner } else { outer };
                let error = io::Error::new(outer, Wrapper(io::Error::from(inner)));
                assert_eq!(io_error(&error), TRANSIENT.contains(&decides), "{outer:?} around {inner:?}");
            }
        }
    }

    #[test]
    fn it_looks_at_64_links_and_no_further() {
        let nested = |depth| {
            let reset = io::Error::from(ErrorKind::ConnectionReset);
            (0..depth).fold(reset, |inner, _| io::Error::other(inner))
        };
        assert!(io_error(&nested(63)));
        assert!(!io_error(&nested(64)));
        assert!(!io_error(&Looping));
        assert!(!io_error(&io::Error::other(Looping)));
    }

    #[test]
    fn it_is_a_predicate_for_typed_boxed_and_dynamic_errors() {
        fn when<E>(error: &E, predicate: impl Fn(&E) -> bool) -> bool {
            predicate(error)
        }
        let timed_out = || io::Error::from(ErrorKind::TimedOut);

        assert!(when(&timed_out(), io_error));
        assert!(when(&Wrapper(timed_out()), io_error));
        let boxed: Box<dyn Error + Send + Sync> = timed_out().into();
        assert!(when(&boxed, |e| io_error(&**e)));
        let boxed: Box<dyn Error> = timed_out().into();
        assert!(when(&boxed, |e| io_error(&**e)));
        let shared: Arc<dyn Error + Send + Sync> = Arc::new(timed_out());
        assert!(when(&shared, io_error));
    }
}

/// Field cases 79 and 80: 500 is in both tables.
#[test]
fn every_http_status_is_in_the_tables() {
    const { assert!(http_status(500) && http_status_strict(500)) };

    for status in 0..=u16::MAX {
        let strict = [408, 425, 429, 500, 502, 503, 504].contains(&status);
        assert_eq!(http_status_strict(status), strict, "{status}");
        assert_eq!(http_status(status), strict || status / 100 == 5, "{status}");
    }
}

#[test]
fn only_the_class_transport_is_retried() {
    let retried = |class: &str| classifier(|class: &str| class.to_owned())(class);

    assert!(retried("transport"));
    let others = [
        "",
        " ",
        "Transport",
        "TRANSPORT",
        " transport",
        "transport ",
        "transport\n",
        "transport\0",
        "transports",
        "transpor",
        "ｔransport",
        "trаnsport",
        "network",
        "timeout",
        "retry",
        "unknown",
        "business",
        "true",
    ];
    for class in others {
        assert!(!retried(class), "{class:?}");
    }
}

#[test]
fn a_classifier_may_return_any_string() {
    assert!(classifier(|(): &()| "transport")(&()));
    assert!(classifier(|(): &()| String::from("transport"))(&()));
    assert!(classifier(|(): &()| std::borrow::Cow::Borrowed("transport"))(&()));
    assert!(!classifier(|e: &(dyn std::error::Error + 'static)| e.to_string())(&std::fmt::Error));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_other_class_than_transport_is_not_retried(
        class in prop_oneof![any::<String>(), "[ tT]?[tT]ransport[ s]?"],
    ) {
        prop_assert_eq!(classifier(|class: &String| class.clone())(&class), class == "transport");
    }
}
