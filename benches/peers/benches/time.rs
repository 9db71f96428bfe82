//! The contenders under divan, for those who want its statistics: `cargo bench -p relent-peers`.
//!
//! The table is made by the runner, which takes its contenders in turn, so that they share the noise of the machine.

use divan::Bencher;
use divan::counter::ItemsCount;
use relent_peers::{Group, groups, runtime};

fn main() {
    let runtime = runtime();
    let _inside = runtime.enter();
    divan::main();
}

/// A contender by the places of its group and of itself.
#[derive(Clone, Copy)]
struct Place(usize, usize);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Group { name, contenders, .. } = &groups()[self.0];
        write!(f, "{name}: {}", contenders[self.1].name)
    }
}

fn places() -> Vec<Place> {
    let groups = groups();
    groups.iter().enumerate().flat_map(|(g, group)| (0..group.contenders.len()).map(move |c| Place(g, c))).collect()
}

#[divan::bench(args = places())]
fn thousand_calls(bencher: Bencher, place: Place) {
    let mut calls = (groups()[place.0].contenders[place.1].make)();
    bencher.counter(ItemsCount::new(1000_u32)).bench_local(|| calls(1000));
}
