//! A short soak, with every check but that of memory, which needs two minutes.

use relent_service::{BoxError, log, soak};
use tracing::level_filters::LevelFilter;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_seconds() -> Result<(), BoxError> {
    log::show(LevelFilter::WARN)?;
    soak::run(10, 7).await
}
