//! How a backoff reads errors whose types it learns only when they are reported.

use crate::error::{Auto, Undecided, Unmarked};

/// The way to read errors of kind `K`.
pub trait Reading<K> {
    /// Finds the markers.
    type Marking;
}

/// Every kind in its own way.
impl<K> Reading<K> for Auto<Undecided> {
    type Marking = Auto<K>;
}

/// No kind at all.
impl Reading<Undecided> for Unmarked {
    type Marking = Unmarked;
}
