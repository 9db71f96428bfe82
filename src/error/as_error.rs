//! Which types can be searched for markers, and how.

use core::{error::Error, ops::DerefMut, time::Duration};

#[cfg(feature = "alloc")]
use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};

/// An error type whose causes can be searched for markers.
///
/// `Kind` says in which way, so that a way for all errors and a way for all boxes can stand side by side; each type
/// has one, which the compiler infers:
///
/// | `Kind` | types |
/// |---|---|
/// | [`Typed`] | whatever implements `Error` and owns its data, `Arc<dyn Error + Send + Sync>` included |
/// | [`Dynamic`] | `Box<dyn Error + Send + Sync>`, `anyhow::Error`, `eyre::Report` |
/// | [`Boxed`] | `Box<dyn Error>`, `Box<dyn Error + Send>`, `Box<dyn Error + Sync>` |
/// | [`Erased`] | `dyn Error` itself, behind a reference |
/// | [`Plain`] | strings, numbers and other [plain data](PlainError), which has no causes |
///
/// A generic function that passes its errors to a run takes the kind as a parameter, or bounds them by `Error`.
///
/// ```
/// use std::error::Error;
/// use relent::error::AsError;
///
/// fn causes<E: AsError<K>, K>(error: &E) -> usize {
///     std::iter::successors(error.as_error(), |&e| e.source()).count()
/// }
///
/// assert_eq!(causes(&std::fmt::Error), 1);
/// assert_eq!(causes(&Box::<dyn Error + Send + Sync>::from("boxed")), 1);
/// assert_eq!(causes(&Box::<dyn Error>::from("boxed")), 1);
/// assert_eq!(causes(&"plain"), 0);
/// ```
///
/// A type that cannot be searched is refused, and the compiler names `.unmarked()`, which makes a run accept it. (A type
/// that implements `Error` and borrows is refused with a lifetime error; `.unmarked()` is the way there too.)
///
/// ```compile_fail,E0277
/// # use relent::error::AsError;
/// # fn causes<E: AsError<K>, K>(_: &E) {}
/// struct Foreign;
/// causes(&Foreign);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be searched for markers such as `NonRetryableError`",
    label = "neither an `Error` that owns its data, nor a box of one, nor plain data",
    note = "call `.unmarked()` on the run: it accepts any error type, and looks for no marker",
    note = "or implement `Error` for `{Self}`; in generic code, add the bound `Error + 'static`",
    note = "a breaker's `call_with` takes any error type, too"
)]
pub trait AsError<Kind> {
    /// The error to search, itself the first link of its chain; `None` for plain data.
    fn as_error(&self) -> Option<&(dyn Error + 'static)>;
}

/// The kind of types that implement `Error` and borrow nothing.
///
/// ```
/// use relent::error::{AsError, Typed};
///
/// fn typed(_: impl AsError<Typed>) {}
/// typed(std::io::Error::other("disk"));
/// typed(std::sync::Arc::<dyn std::error::Error + Send + Sync>::from(Box::from("shared")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Typed;

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> AsError<Typed> for E {
    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

/// The kind of types that own a `dyn Error + Send + Sync` and lead to it by `DerefMut`.
///
/// ```
/// use relent::error::{AsError, Dynamic};
///
/// fn dynamic(_: impl AsError<Dynamic>) {}
/// dynamic(Box::<dyn std::error::Error + Send + Sync>::from("boxed"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dynamic;

// `DerefMut`, not `Deref`: `Arc<dyn Error + Send + Sync>` has only the latter, and is an `Error` itself.
#[diagnostic::do_not_recommend]
impl<E: DerefMut<Target = dyn Error + Send + Sync>> AsError<Dynamic> for E {
    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self)
    }
}

/// The kind of the boxed errors that are not both `Send` and `Sync`.
///
/// ```
/// use relent::error::{AsError, Boxed};
///
/// fn boxed(_: impl AsError<Boxed>) {}
/// boxed(Box::<dyn std::error::Error>::from("boxed"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Boxed;

#[cfg(feature = "alloc")]
macro_rules! boxed {
    ($($error:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl AsError<Boxed> for Box<$error> {
            fn as_error(&self) -> Option<&(dyn Error + 'static)> {
                Some(&**self)
            }
        }
    )*};
}

#[cfg(feature = "alloc")]
boxed!(dyn Error, dyn Error + Send, dyn Error + Sync);

/// The kind of `dyn Error` itself, with or without `Send` and `Sync`.
///
/// ```
/// use relent::error::{AsError, Erased};
///
/// fn erased(_: &(impl AsError<Erased> + ?Sized)) {}
/// let error: &(dyn std::error::Error + 'static) = &std::fmt::Error;
/// erased(error);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Erased;

macro_rules! erased {
    ($($error:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl AsError<Erased> for $error {
            fn as_error(&self) -> Option<&(dyn Error + 'static)> {
                Some(self)
            }
        }
    )*};
}

erased!(dyn Error, dyn Error + Send, dyn Error + Sync, dyn Error + Send + Sync);

/// The kind of [plain data](PlainError).
///
/// ```
/// use relent::error::{AsError, Plain};
///
/// fn plain(error: impl AsError<Plain>) {
///     assert!(error.as_error().is_none());
/// }
/// plain("no such user");
/// plain((404_u16, String::from("no such user")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Plain;

#[diagnostic::do_not_recommend]
impl<E: PlainError> AsError<Plain> for E {
    fn as_error(&self) -> Option<&(dyn Error + 'static)> {
        None
    }
}

/// Data that serves as an error though it does not implement `Error`, and that no marker can hide in.
///
/// Implemented for unit, `bool`, `char`, numbers, strings, `Duration`, `std::io::ErrorKind`, and for options, tuples
/// of up to four, arrays and lists of these.
///
/// Implement it for a type of your own to retry on it without `.unmarked()`. Do not implement both this and `Error`:
/// the compiler then asks which of the two is meant.
///
/// ```
/// use relent::error::{AsError, PlainError};
///
/// enum Reply { Busy, Gone }
/// impl PlainError for Reply {}
///
/// assert!(Reply::Busy.as_error().is_none());
/// assert!(Some((404, "gone")).as_error().is_none());
/// # let _ = Reply::Gone;
/// ```
pub trait PlainError {}

macro_rules! plain {
    ($($data:ty),*) => {$(impl PlainError for $data {})*};
}

plain!((), bool, char, f32, f64, &str, Duration);
plain!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

#[cfg(feature = "alloc")]
plain!(String, Box<str>, Cow<'_, str>);

#[cfg(feature = "std")]
plain!(std::io::ErrorKind);

impl<T: PlainError> PlainError for Option<T> {}
impl<T: PlainError, const N: usize> PlainError for [T; N] {}
#[cfg(feature = "alloc")]
impl<T: PlainError> PlainError for Vec<T> {}

impl<A: PlainError> PlainError for (A,) {}
impl<A: PlainError, B: PlainError> PlainError for (A, B) {}
impl<A: PlainError, B: PlainError, C: PlainError> PlainError for (A, B, C) {}
impl<A: PlainError, B: PlainError, C: PlainError, D: PlainError> PlainError for (A, B, C, D) {}
