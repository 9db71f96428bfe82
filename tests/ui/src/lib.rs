//! Nothing: the member is its tests.
