//! relent beside the crates that do the same work, and beside what one would write by hand.
//!
//! A [`Group`] holds contenders that do one thing. The runner in `main.rs` measures each group and prints a table;
//! `benches/time.rs` times the same contenders with divan.

pub mod cost;
pub mod delays;
pub mod first;
pub mod guards;
pub mod measure;
pub mod operation;
pub mod retries;
pub mod sleepers;
pub mod table;
pub mod zero;

/// Whose a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What all are compared with; the first floor of a group is the one.
    Floor,
    Relent,
    Peer,
}

/// Makes so many calls of a contender.
pub type Calls = Box<dyn FnMut(u64)>;

/// The calls in a loop of their own, so that no call goes through a pointer; each has an argument that the compiler
/// does not know.
fn repeat(mut call: impl FnMut(u64) + 'static) -> Calls {
    Box::new(move |n| {
        for x in 0..n {
            call(std::hint::black_box(x));
        }
    })
}

pub struct Contender {
    pub name: &'static str,
    pub side: Side,
    /// The size of its future, where it has one.
    pub size: Option<usize>,
    /// Prepares what lives longer than a call.
    pub make: fn() -> Calls,
}

pub struct Group {
    pub name: &'static str,
    pub title: &'static str,
    /// How many of the things that are counted one call does.
    pub per_call: u64,
    pub contenders: Vec<Contender>,
}

/// The groups that are measured by instructions and time.
#[must_use]
pub fn groups() -> Vec<Group> {
    let mut groups = vec![first::group(), retries::group()];
    groups.extend(delays::groups());
    groups.extend(guards::groups());
    groups
}

/// A runtime to be in: tower makes tokio's sleeps, which ask for one.
///
/// # Panics
///
/// If the system has no resources for it.
#[must_use]
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}
