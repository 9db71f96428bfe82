//! A page of counters, read as Prometheus would.

use std::collections::BTreeMap;

pub struct Scrape(BTreeMap<String, u64>);

impl Scrape {
    pub fn parse(page: &str) -> Self {
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.strip_prefix("shop_")?.to_owned(), value.parse().ok()?))
        };
        Self(samples.filter_map(sample).collect())
    }

    /// The value of one sample; zero if there is none, as of a label that was never used.
    pub fn value(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The sum of a family.
    pub fn total(&self, name: &str) -> u64 {
        self.family(name).map(|(_, value)| value).sum()
    }

    /// The values of a family, by the value of its only label.
    pub fn family<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        self.0.iter().filter_map(move |(sample, value)| {
            let (_, label) = sample.strip_prefix(name)?.strip_prefix('{')?.split_once('"')?;
            Some((label.strip_suffix("\"}")?, *value))
        })
    }
}
