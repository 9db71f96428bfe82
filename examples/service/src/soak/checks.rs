//! What must hold afterwards, each with its figures.

use std::collections::BTreeMap;

use relent::breaker::State;
use relent::clock::SystemClock;

use super::hang_up::{Crowd, Probe, Stop};
use super::load::{LAP, Seen};
use super::process::{comes_true, has_thread, tasks};
use super::scrape::Scrape;
use crate::BoxError;
use crate::client::{RETRIES_PER_RUN, RETRIES_PER_SECOND, WINDOW};
use crate::faults::Faults;
use crate::front::{FREE_PLACES, PLACES};
use crate::ledger::{Kind, Ledger, Page, read};

/// How much resident memory may change between these seconds, in percent.
const MEMORY: u64 = 5;
const WARM: usize = 30;
const LATE: usize = 120;

#[derive(Default)]
pub struct Checks {
    broken: usize,
}

impl Checks {
    fn that(&mut self, holds: bool, rule: &str, figures: &str) {
        self.broken += usize::from(!holds);
        println!("{} {rule}: {figures}", if holds { "ok    " } else { "BROKEN" });
    }

    /// # Errors
    ///
    /// If anything was broken.
    pub fn finish(self) -> Result<(), BoxError> {
        if self.broken == 0 { Ok(()) } else { Err(format!("{} checks do not hold", self.broken).into()) }
    }

    /// Every request was answered once, and did what the answer says.
    pub fn ledger(&mut self, ledger: &Ledger, seen: &Seen) {
        let pages = ledger.pages();
        let (successes, failures) = (sum(pages, |page| read(&page.successes)), sum(pages, |page| read(&page.failures)));
        let once = pages.iter().all(|page| read(&page.successes) + read(&page.failures) == 1);
        let figures = match &seen.lost {
            None => format!("{} sent, {successes} successes and {failures} failures", pages.len()),
            Some((times, first)) => format!("{} sent, {times} without an answer, the first is {first}", pages.len()),
        };
        self.that(once && seen.lost.is_none(), "every request answered once", &figures);

        let honest = |page: &Page| read(&page.successes) == 0 || read(&page.executions) > 0;
        let repeated = sum(pages, |page| read(&page.executions).saturating_sub(1));
        self.that(
            pages.iter().all(honest) && repeated > 0,
            "every success executed",
            &format!("{} executions, {repeated} of them repetitions", sum(pages, |page| read(&page.executions))),
        );

        let adds: Vec<_> = pages.iter().filter(|page| page.kind == Kind::Add).collect();
        self.that(
            adds.iter().all(|page| read(&page.executions) <= 1 && read(&page.executions) == read(&page.effects)),
            "what must not be repeated executed at most once",
            &format!("{} requests, {} executions", adds.len(), sum(adds, |page| read(&page.executions))),
        );

        let keyed: Vec<_> = pages.iter().filter(|page| page.kind == Kind::AddWithKey).collect();
        let executions = sum(keyed.iter().copied(), |page| read(&page.executions));
        let effects = sum(keyed.iter().copied(), |page| read(&page.effects));
        let exact = |page: &Page| match read(&page.successes) {
            0 => read(&page.effects) <= 1,
            _ => read(&page.effects) == 1,
        };
        self.that(
            keyed.iter().all(|page| exact(page)) && executions > effects,
            "what has a key took effect once",
            &format!("{} requests, {executions} executions, {effects} effects", keyed.len()),
        );
    }

    /// Everything that can go wrong did, and was met in every way there is.
    pub fn faults(&mut self, faults: &Faults, scrape: &Scrape) {
        self.that(faults.met().all(|(_, met)| met > 0), "every fault met", &faults.to_string());
        let runs: BTreeMap<_, _> = scrape.family("upstream_runs_total").collect();
        // A deadline, a refused hint and a declined error come as chance will have it.
        let expected = ["succeeded", "exhausted", "not_idempotent", "budget"];
        self.that(
            expected.iter().all(|outcome| runs.contains_key(outcome)),
            "runs ended well, used up, for the budget and as not idempotent",
            &format!("{runs:?}"),
        );
        let entered: BTreeMap<_, _> = scrape.family("upstream_breaker_total").collect();
        let expected = [State::Open, State::HalfOpen, State::Closed].map(|state| state.to_string());
        self.that(
            expected.iter().all(|state| entered.contains_key(state.as_str())),
            "the breaker opened and closed",
            &format!("{entered:?}"),
        );
        let refused: BTreeMap<_, _> = scrape.family("upstream_refused_total").collect();
        self.that(refused.len() == 2, "calls refused by whoever may refuse", &format!("{refused:?}"));
    }

    /// What the service shows agrees with what its callers saw, and with itself.
    pub fn counters(&mut self, scrape: &Scrape, seen: &Seen, sent: usize) {
        let shown: BTreeMap<_, _> = scrape
            .family("responses_total")
            .filter_map(|(status, times)| Some((status.parse().ok()?, times)))
            .collect();
        self.that(shown == seen.statuses, "answers scraped as seen", &format!("{shown:?}, seen {:?}", seen.statuses));

        let runs = scrape.total("upstream_runs_total");
        let refused = scrape.total("upstream_refused_total");
        self.that(
            runs + refused == sent as u64,
            "every request a run or a refusal",
            &format!("{runs} runs, {refused} refusals, {sent} sent"),
        );
        let [attempts, retries] = ["upstream_attempts_total", "upstream_retries_total"].map(|name| scrape.value(name));
        self.that(
            attempts == runs + retries,
            "every attempt the first of a run or a retry",
            &format!("{attempts} attempts, {runs} runs, {retries} retries"),
        );
        let in_flight = scrape.value("upstream_in_flight");
        self.that(in_flight == 0, "no call under way when all are answered", &format!("{in_flight}"));
    }

    /// Each event of a run is in the log, and so is what the breaker did.
    pub fn log(&mut self, scrape: &Scrape, logged: u64) {
        let retries = scrape.value("upstream_retries_total");
        let [runs, refused, entered] = ["upstream_runs_total", "upstream_refused_total", "upstream_breaker_total"]
            .map(|family| scrape.total(family));
        self.that(
            logged == retries + runs + refused + entered,
            "every event logged",
            &format!("{logged} logged: {retries} retries, {runs} ends, {refused} refusals, {entered} of the breaker"),
        );
    }

    /// No more retries than the budget allows: over its windows, the last of which may lie at either end, and with runs
    /// that stay for a slice longer, a twentieth of the window.
    pub fn budget(&mut self, scrape: &Scrape, seconds: usize) {
        let retries = scrape.value("upstream_retries_total");
        let of_runs = scrape.total("upstream_runs_total") as f64 * RETRIES_PER_RUN * 1.05;
        let allowed = of_runs as u64 + (seconds as u64 + WINDOW.as_secs()) * u64::from(RETRIES_PER_SECOND);
        self.that(retries <= allowed, "retries within the budget", &format!("{retries}, at most {allowed}"));
    }

    /// A caller that hangs up leaves no slot of the breaker taken.
    pub fn permits(&mut self, Probe { state, second_refused, slot_freed }: &Probe) {
        self.that(
            *state == State::HalfOpen && *second_refused && *slot_freed,
            "no permit of the breaker kept",
            &format!("{state} with a probe, second refused: {second_refused}, free when it hung up: {slot_freed}"),
        );
        let free = FREE_PLACES.available_permits();
        self.that(free == PLACES, "no place of the service kept", &format!("{free} of {PLACES} free"));
    }

    /// A service that stops ends the waits of its runs, and answers their callers.
    pub fn stop(&mut self, Stop { cancelled, answered, callers }: &Stop) {
        self.that(
            *cancelled > 0 && answered == callers,
            "a stop ended waits and was answered for",
            &format!("{cancelled} runs cancelled, {answered} of {callers} callers answered"),
        );
    }

    /// Neither a task nor a wait is left, although there were many.
    pub async fn left_behind(&mut self, tasks_before: usize, Crowd { calls, timers, all_ended }: &Crowd) {
        let gone = comes_true(|| tasks() == tasks_before).await;
        self.that(
            gone && *calls > 0 && *all_ended,
            "no task left",
            &format!("{} now, {tasks_before} before; {calls} calls hung up on ended: {all_ended}", tasks()),
        );
        let pending = SystemClock::pending();
        let ended = comes_true(|| !has_thread("relent-timer")).await;
        self.that(
            pending == 0 && *timers > 0 && ended,
            "no timer left",
            &format!("{pending} waits, {timers} when callers hung up; the timer's thread ended: {ended}"),
        );
    }

    /// Resident memory does not grow between 30 s and 120 s. Of a shorter soak it says nothing.
    pub fn memory(&mut self, seen: &Seen, seconds: usize) {
        if seconds < LATE {
            return;
        }
        let holds = match [WARM, LATE].map(|second| seen.at_rest.get(second / LAP - 1)) {
            [Some(warm), Some(late)] => warm.abs_diff(*late) * 100 <= warm * MEMORY,
            _ => false,
        };
        let figures = format!("{:?} KiB at rest, each {LAP} s", seen.at_rest);
        self.that(holds, "resident memory at 120 s within 5 % of that at 30 s", &figures);
    }
}

fn sum<'a>(pages: impl IntoIterator<Item = &'a Page>, of: impl Fn(&Page) -> u8) -> u64 {
    pages.into_iter().map(|page| u64::from(of(page))).sum()
}
