use core::fmt;
use core::time::Duration;

use super::Policy;
use super::config::Excerpt;
use super::text::Compact;

/// How many rows are printed at most.
const PRINTED: usize = 20;

/// A policy as an operator reads it: what is waited before each attempt, when it begins, and when the policy gives up.
///
/// The times that attempts themselves take come on top. Made by [`Policy::table`]; needs no allocation.
///
/// ```
/// use relent::Policy;
///
/// let table = Policy::DEFAULT.table();
/// assert_eq!(table.rows().map(|row| row.attempt).collect::<Vec<_>>(), [1, 2, 3]);
/// assert!(table.to_string().ends_with("attempt 3 fails, after waiting at most 300ms"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a table does nothing until it is printed or asked for its rows"]
pub struct Table {
    policy: Policy,
}

/// One attempt in a [`Table`].
///
/// ```
/// use relent::Policy;
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let last = Policy::DEFAULT.table().rows().last().unwrap();
/// assert_eq!(last.attempt, 3);
/// assert_eq!((last.shortest, last.longest), (ms(100), ms(200)));
/// assert_eq!((last.earliest, last.latest), (ms(150), ms(300)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The shortest wait before it; zero for the first.
    pub shortest: Duration,
    /// The longest wait before it.
    pub longest: Duration,
    /// The sum of the shortest waits so far: when the attempt begins at the earliest.
    pub earliest: Duration,
    /// The sum of the longest waits so far, at most the limit of elapsed time: when it begins at the latest.
    pub latest: Duration,
}

impl Policy {
    /// The table of this policy, to print or to walk through.
    ///
    /// ```
    /// use relent::Policy;
    ///
    /// assert_eq!(
    ///     Policy::DEFAULT.max_attempts(4).table().to_string(),
    ///     "\
    /// attempt       wait before it         begins after
    ///       1                    -                    -
    ///       2          50ms..100ms          50ms..100ms
    ///       3         100ms..200ms         150ms..300ms
    ///       4         200ms..400ms         350ms..700ms
    /// gives up when attempt 4 fails, after waiting at most 700ms"
    /// );
    /// ```
    pub const fn table(self) -> Table {
        Table { policy: self }
    }
}

impl Table {
    /// A row for each attempt that may begin: up to the attempts allowed, and as long as the shortest waits stay within
    /// the limit of elapsed time. Goes on to attempt `u32::MAX` if nothing bounds it.
    pub const fn rows(&self) -> Rows {
        Rows { policy: self.policy, previous: None }
    }
}

impl IntoIterator for Table {
    type Item = Row;
    type IntoIter = Rows;

    fn into_iter(self) -> Rows {
        self.rows()
    }
}

/// The iterator of the rows of a [`Table`].
#[derive(Clone, Debug)]
#[must_use = "iterators are lazy"]
pub struct Rows {
    policy: Policy,
    previous: Option<Row>,
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let zero = Duration::ZERO;
        let row = match self.previous {
            None => Row { attempt: 1, shortest: zero, longest: zero, earliest: zero, latest: zero },
            Some(Row { attempt, .. }) if attempt == self.policy.attempts() => return None,
            Some(Row { attempt: failures, earliest, latest, .. }) => {
                let (shortest, longest) = self.policy.bounds_after(failures);
                let limit = self.policy.elapsed_limit().unwrap_or(Duration::MAX);
                let earliest = earliest.saturating_add(shortest);
                if earliest > limit {
                    return None;
                }
                let latest = latest.saturating_add(longest).min(limit);
                Row { attempt: failures.checked_add(1)?, shortest, longest, earliest, latest }
            }
        };
        self.previous = Some(row);
        Some(row)
    }
}

/// At most 20 rows, and none that repeats the wait at the cap; then what follows, and when the policy gives up.
///
/// ```
/// use relent::Policy;
/// use std::time::Duration;
///
/// let minutes = |n: u64| Duration::from_secs(60 * n);
/// let policy = Policy::linear(minutes(1)).max_delay(minutes(2)).unbounded();
/// assert_eq!(
///     policy.table().to_string(),
///     "\
/// attempt       wait before it         begins after
///       1                    -                    -
///       2                   1m                   1m
///       3                   2m                   3m
///     ...                   2m            and so on
/// never gives up"
/// );
/// ```
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.policy;
        let settled = policy.bounds_after(u32::MAX);
        let mut rows = self.rows();
        writeln!(f, "attempt {:>20} {:>20}", "wait before it", "begins after")?;
        for row in rows.by_ref().take(PRINTED) {
            let (wait, begin) = (span(row.shortest, row.longest), span(row.earliest, row.latest));
            writeln!(f, "{:>7} {wait:>20} {begin:>20}", row.attempt)?;
            if row.attempt > 1 && (row.shortest, row.longest) == settled {
                break;
            }
        }
        if let Some(row) = rows.next() {
            let repeats = (row.shortest, row.longest) == settled;
            let wait = if repeats { span(row.shortest, row.longest) } else { Excerpt::of(&"growing") };
            writeln!(f, "    ... {wait:>20} {:>20}", "and so on")?;
        }
        match (policy.attempts(), policy.elapsed_limit().map(Compact)) {
            (0, None) => f.write_str("never gives up"),
            (0, Some(limit)) => write!(f, "gives up when a wait would end later than {limit} after the start"),
            (attempts, Some(limit)) => {
                write!(
                    f,
                    "gives up when attempt {attempts} fails, or a wait would end later than {limit} after the start"
                )
            }
            (attempts, None) => {
                let total = Compact(policy.worst_case_total().unwrap_or(Duration::MAX));
                write!(f, "gives up when attempt {attempts} fails, after waiting at most {total}")
            }
        }
    }
}

fn span(from: Duration, to: Duration) -> Excerpt {
    if to.is_zero() {
        Excerpt::of(&"-")
    } else if from == to {
        Excerpt::of(&Compact(to))
    } else {
        Excerpt::of(&format_args!("{}..{}", Compact(from), Compact(to)))
    }
}
