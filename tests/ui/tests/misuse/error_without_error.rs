use relent::{Policy, retry};

struct Opaque;

fn main() {
    let _ = Box::pin(async { retry(async |_| Err::<(), _>(Opaque), Policy::DEFAULT).await });
}
