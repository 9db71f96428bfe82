//! The look-up of names: a table of one, which fails now and then.

use std::future::{Ready, ready};
use std::io;
use std::iter::{Once, once};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::faults::Faults;

#[derive(Clone, Debug)]
pub(super) struct Resolver {
    pub(super) address: SocketAddr,
    pub(super) faults: Arc<Faults>,
}

impl Service<Name> for Resolver {
    type Response = Once<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<io::Result<Once<SocketAddr>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        // Without a kind, as std has it.
        let failed = || io::Error::other("failed to lookup address information: Temporary failure in name resolution");
        ready(if self.faults.fails_lookup() { Err(failed()) } else { Ok(once(self.address)) })
    }
}
