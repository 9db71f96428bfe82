//! What the warehouse keeps: orders, and the idempotency keys of the last seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::client::{IDEMPOTENCY_KEY, REQUEST_ID};
use crate::ledger::{Ledger, count};

/// They are numbered from 0.
pub const ORDERS: usize = 1000;

/// A run is over long before.
const KEY_LIFETIME: Duration = Duration::from_secs(10);

pub struct Orders {
    ledger: Arc<Ledger>,
    state: Mutex<State>,
}

struct State {
    items: Vec<u32>,
    /// When each was used first. In a database this is a unique column, written in the same transaction.
    keys: HashMap<String, Instant>,
    swept: Instant,
}

impl Orders {
    pub fn new(ledger: Arc<Ledger>) -> Self {
        let state = State { items: vec![0; ORDERS], keys: HashMap::new(), swept: Instant::now() };
        Self { ledger, state: Mutex::new(state) }
    }

    /// Does what a request asks for, unless it was done under the same key.
    pub fn execute(&self, head: &Parts, body: &[u8]) -> Result<String, StatusCode> {
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let order = head.uri.path().split('/').nth(2).and_then(|id| id.parse::<usize>().ok());
        let order = order.filter(|order| *order < ORDERS).ok_or(StatusCode::NOT_FOUND)?;
        let page = header(REQUEST_ID).and_then(|id| self.ledger.page(id)).ok_or(StatusCode::BAD_REQUEST)?;

        count(&page.executions);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = header(IDEMPOTENCY_KEY).is_none_or(|key| state.is_new(key));
        let items = &mut state.items[order];
        match head.method {
            Method::GET => return Ok(text(order, *items)),
            Method::PUT => *items = number(body)?,
            Method::POST if is_new => *items = items.saturating_add(number(body)?),
            Method::POST => return Ok(text(order, *items)),
            _ => return Err(StatusCode::METHOD_NOT_ALLOWED),
        }
        count(&page.effects);
        Ok(text(order, *items))
    }
}

impl State {
    fn is_new(&mut self, key: &str) -> bool {
        let now = Instant::now();
        if now - self.swept >= Duration::from_secs(1) {
            self.swept = now;
            self.keys.retain(|_, first| now - *first < KEY_LIFETIME);
        }
        self.keys.insert(key.to_owned(), now).is_none()
    }
}

fn number(body: &[u8]) -> Result<u32, StatusCode> {
    str::from_utf8(body).ok().and_then(|text| text.parse().ok()).ok_or(StatusCode::BAD_REQUEST)
}

fn text(order: usize, items: u32) -> String {
    format!("order {order}: {items} items\n")
}
