use relent::{Policy, retry};
use std::future::{pending, ready};
use std::rc::Rc;

fn spawn(_: impl Future + Send) {}

fn main() {
    let run = retry(|_| ready(Err::<(), Rc<str>>("down".into())), Policy::DEFAULT).unmarked();
    spawn(run.cancel_on(pending::<()>()));
}
