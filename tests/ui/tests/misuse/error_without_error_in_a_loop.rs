use relent::Policy;
use relent::backoff::Backoff;

struct Opaque;

async fn wait(backoff: &mut Backoff<Policy>) -> Result<(), Opaque> {
    backoff.retry_or(Opaque).await
}

fn main() {}
