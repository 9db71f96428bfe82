use std::time::Duration;

use relent::{Jitter, Policy, retry};
use tower::{BoxError, Service, ServiceExt};

use crate::Response;

const POLICY: Policy = Policy::exponential(Duration::from_millis(100))
    .max_delay(Duration::from_secs(2))
    .jitter(Jitter::None)
    .max_attempts(4);

pub async fn fetch<S>(service: S, path: &str) -> Result<Response, BoxError>
where
    S: Service<String, Response = Response> + Clone,
    S::Error: Into<BoxError>,
{
    let call = async |_| match service.clone().oneshot(path.to_owned()).await {
        // a failed attempt, and the answer if it is the last
        Ok(response) if response.status == 503 => Err(Ok(response)),
        Ok(response) => Ok(response),
        Err(e) => Err(Err(e.into())),
    };
    retry(call, POLICY)
        .unmarked()
        .when(Result::is_ok)
        .sleep(tokio::time::sleep)
        .await
        .or_else(|last| last)
}
