//! What can be a schedule, and what each kind of schedule answers.

use core::time::Duration;

use relent::rng::Rng;
use relent::schedule::{Progress, Schedule, schedule_fn};

/// The schedules of this file take no draw.
struct NoRng;

impl Rng for NoRng {
    fn next_f64(&mut self) -> f64 {
        panic!("a schedule without jitter took a draw")
    }
}

/// The answers after failures `1..=n`.
fn answers<const N: usize>(schedule: &(impl Schedule + ?Sized)) -> [Option<Duration>; N] {
    let mut progress = Progress::new();
    [(); N].map(|()| {
        progress.count_failure();
        schedule.next(&mut progress, &mut NoRng)
    })
}

fn assert_send_sync(_: &(impl Send + Sync + ?Sized)) {}

const SECOND: Duration = Duration::from_secs(1);

const _: fn(&dyn Schedule) = |_| {};

#[test]
fn a_list_ends_after_its_last_wait() {
    let list = [SECOND, 2 * SECOND];
    assert_eq!(answers(&list), [Some(SECOND), Some(2 * SECOND), None]);
    assert_eq!(list.waits(), Some(2));
    assert_eq!((list.max_attempts(), list.max_elapsed()), (0, None));
}

/// Field case 19: a list that has run out does not start again.
#[test]
fn a_list_that_has_run_out_stays_so() {
    let list = [1, 2, 4, 8, 10].map(Duration::from_secs);
    assert_eq!(answers::<12>(&list)[4..], [Some(10 * SECOND), None, None, None, None, None, None, None]);

    let mut progress = Progress::new();
    for _ in 0..12 {
        progress.count_failure();
    }
    assert_eq!(list.next(&mut progress, &mut NoRng), None);
}

#[test]
fn asking_a_list_counts_nothing() {
    let mut progress = Progress::new();
    assert_eq!([SECOND].next(&mut progress, &mut NoRng), None, "nothing has failed yet");
    progress.count_failure();
    assert_eq!([SECOND].next(&mut progress, &mut NoRng), Some(SECOND));
    assert_eq!([SECOND].next(&mut progress, &mut NoRng), Some(SECOND), "asking counts nothing");
}

#[test]
fn an_empty_list_allows_one_attempt() {
    let list: [Duration; 0] = [];
    assert_eq!(answers(&list), [None]);
    assert_eq!(list.waits(), Some(0));
}

#[test]
fn a_listed_wait_is_exact() {
    let list = [Duration::from_nanos(1), Duration::from_micros(1500), Duration::MAX];
    assert_eq!(answers(&list), list.map(Some));

    let progress = Progress::new();
    assert_eq!(list.lower_bound(&progress, list[1]), list[1]);
}

#[test]
fn a_slice_and_a_reference_answer_as_the_list() {
    let list = [SECOND, 2 * SECOND];
    let slice: &[Duration] = &list;
    assert_eq!(answers::<3>(slice), answers(&list));
    assert_eq!(answers::<3>(&slice), answers(&list));
    assert_eq!((slice.waits(), Schedule::waits(&slice)), (Some(2), Some(2)));
}

/// A schedule that overrides every method, to see each of them forwarded.
struct Everything;

impl Schedule for Everything {
    fn next(&self, progress: &mut Progress, rng: &mut dyn Rng) -> Option<Duration> {
        progress.set_previous_ms(7.0);
        progress.enter_level(2, 3);
        [SECOND].next(progress, rng)
    }

    fn max_attempts(&self) -> u32 {
        11
    }

    fn max_elapsed(&self) -> Option<Duration> {
        Some(12 * SECOND)
    }

    fn waits(&self) -> Option<u32> {
        Some(13)
    }

    fn lower_bound(&self, _progress: &Progress, wait: Duration) -> Duration {
        wait / 2
    }
}

/// Takes its schedule by value, as a run does: what is called is the holder's own implementation.
fn assert_answers_as_everything<S: Schedule>(holder: S) {
    let mut progress = Progress::new();
    progress.count_failure();
    assert_eq!(holder.next(&mut progress, &mut NoRng), Some(SECOND));
    assert_eq!((progress.previous_ms(), progress.level(), progress.level_failures()), (7.0, 2, 3));
    assert_eq!(holder.max_attempts(), 11);
    assert_eq!(holder.max_elapsed(), Some(12 * SECOND));
    assert_eq!(holder.waits(), Some(13));
    assert_eq!(holder.lower_bound(&progress, SECOND), SECOND / 2);
}

#[test]
fn a_reference_answers_as_what_it_refers_to() {
    assert_answers_as_everything(Everything);
    assert_answers_as_everything(&Everything);
    assert_answers_as_everything(&Everything as &dyn Schedule);
}

#[test]
fn a_closure_takes_the_failures_and_gives_exact_waits() {
    let schedule = schedule_fn(|failures| (failures <= 2).then(|| Duration::from_nanos(3) * failures));
    assert_eq!(answers(&schedule), [Some(Duration::from_nanos(3)), Some(Duration::from_nanos(6)), None]);
    assert_eq!(schedule.waits(), None);
    assert_eq!((schedule.max_attempts(), schedule.max_elapsed()), (0, None));
    assert_eq!(format!("{schedule:?}"), "ScheduleFn { .. }");
}

#[test]
fn a_closure_may_borrow() {
    let waits = [3 * SECOND, SECOND];
    let schedule = schedule_fn(|failures| waits.get(failures as usize - 1).copied());
    let copy = schedule;
    assert_eq!(answers::<3>(&copy), answers(&schedule));
    assert_eq!(answers::<3>(&schedule), answers(&waits));
    assert_send_sync(&schedule);
}

#[test]
fn one_schedule_serves_several_runs() {
    let list = [SECOND, 2 * SECOND];
    let (mut one, mut other) = (Progress::new(), Progress::new());
    one.count_failure();
    assert_eq!(list.next(&mut one, &mut NoRng), Some(SECOND));
    one.count_failure();
    assert_eq!(list.next(&mut one, &mut NoRng), Some(2 * SECOND));
    other.count_failure();
    assert_eq!(list.next(&mut other, &mut NoRng), Some(SECOND));
}

#[cfg(feature = "alloc")]
mod owned {
    use std::rc::Rc;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_vec_answers_as_the_list() {
        let list = vec![SECOND, Duration::from_nanos(1)];
        assert_eq!(answers(&list), [Some(SECOND), Some(Duration::from_nanos(1)), None]);
        assert_eq!(Schedule::waits(&list), Some(2));
        assert_eq!(answers::<3>(&list.clone().into_boxed_slice()), answers(&list));
    }

    #[test]
    fn a_holder_answers_as_what_it_holds() {
        assert_answers_as_everything(Box::new(Everything));
        assert_answers_as_everything(Rc::new(Everything));
        assert_answers_as_everything(Arc::new(Everything));
        assert_answers_as_everything(Box::new(Everything) as Box<dyn Schedule>);
        assert_answers_as_everything(Rc::new(Everything) as Rc<dyn Schedule>);
        assert_answers_as_everything(Arc::new(Everything) as Arc<dyn Schedule + Send + Sync>);
    }

    #[test]
    fn schedules_of_several_kinds_are_chosen_at_run_time() {
        let schedules: Vec<Box<dyn Schedule + Send + Sync>> = vec![
            Box::new([SECOND]),
            Box::new(vec![SECOND]),
            Box::new(schedule_fn(|failures| (failures == 1).then_some(SECOND))),
        ];
        for schedule in &schedules {
            assert_send_sync(schedule);
            assert_eq!(answers(schedule), [Some(SECOND), None]);
        }
        assert_eq!(schedules.iter().map(Schedule::waits).collect::<Vec<_>>(), [Some(1), Some(1), None]);
    }
}
