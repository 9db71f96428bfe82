use std::error::Error;
use std::time::Duration;

use relent::error::{NotExecuted, RetryAfterError};
use relent::{NonRetryableError, Policy, retry, transient};
use reqwest::{Client, Response, header::RETRY_AFTER};

const POLICY: Policy =
    Policy::exponential(Duration::from_millis(50)).max_elapsed(Duration::from_secs(20));
/// A server that accepts and says nothing would hold an attempt for ever.
const ATTEMPT: Duration = Duration::from_secs(5);

type BoxError = Box<dyn Error + Send + Sync>;

/// The text of a resource. All of it is one attempt: a body that breaks off is fetched again.
pub async fn get(client: &Client, url: &str) -> Result<String, BoxError> {
    let fetch = async |_| {
        let response = client.get(url).send().await.map_err(failed)?;
        Ok(accepted(response)?.text().await?)
    };
    retry(fetch, POLICY).attempt_timeout(ATTEMPT, Into::into).await
}

/// Places an order: sent again only where the server cannot have seen it.
pub async fn post(client: &Client, url: &str, order: &str) -> Result<(), BoxError> {
    let send = async |_| match client.post(url).body(order.to_owned()).send().await {
        Err(e) if e.is_connect() => Err(NotExecuted::new(e).into()),
        sent => accepted(sent.map_err(failed)?).map(drop),
    };
    retry(send, POLICY).idempotent(false).attempt_timeout(ATTEMPT, Into::into).await
}

/// A bad address and a loop of redirects stay what they are.
fn failed(error: reqwest::Error) -> BoxError {
    if error.is_builder() || error.is_redirect() {
        return NonRetryableError::new(error).into();
    }
    error.into()
}

fn accepted(response: Response) -> Result<Response, BoxError> {
    let Err(error) = response.error_for_status_ref() else {
        return Ok(response);
    };
    if !transient::http_status_strict(response.status().as_u16()) {
        return Err(NonRetryableError::new(error).into());
    }
    let hint = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match hint.and_then(|value| transient::parse_retry_after(value, transient::unix_now()))
    {
        Some(hint) => Err(RetryAfterError::new(error, hint).into()),
        None => Err(error.into()),
    }
}
