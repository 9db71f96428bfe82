use std::time::Duration;

use tower::retry::backoff::{
    Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff,
};
use tower::retry::{Policy, Retry};
use tower::util::rng::HasherRng;
use tower::{BoxError, Service, ServiceExt};

use crate::Response;

#[derive(Clone)]
struct WhileBusy {
    retries_left: u32,
    backoff: ExponentialBackoff,
}

impl<E> Policy<String, Response, E> for WhileBusy {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut String,
        result: &mut Result<Response, E>,
    ) -> Option<Self::Future> {
        let busy = result.as_ref().is_ok_and(|response| response.status == 503);
        if !busy || self.retries_left == 0 {
            return None;
        }
        self.retries_left -= 1;
        Some(self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &String) -> Option<String> {
        Some(request.clone())
    }
}

pub async fn fetch<S>(service: S, path: &str) -> Result<Response, BoxError>
where
    S: Service<String, Response = Response> + Clone,
    S::Error: Into<BoxError>,
{
    let (base, cap) = (Duration::from_millis(100), Duration::from_secs(2));
    let backoff =
        ExponentialBackoffMaker::new(base, cap, 0.0, HasherRng::new())?.make_backoff();
    Retry::new(WhileBusy { retries_left: 3, backoff }, service)
        .oneshot(path.to_owned())
        .await
        .map_err(Into::into)
}
