//! Outputs.

mod backoff;
mod batch;
mod datagram;
mod file;
mod http;
mod stream;

use std::path::PathBuf;

use crate::core::Core;
use crate::endpoint::Endpoint;
use crate::run::RelayError;

/// An output whose options have been checked.
#[derive(Debug)]
pub(crate) struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Datagram(Endpoint),
    Discard,
    File(PathBuf),
    Http(http::Destination),
    Stream(Endpoint),
}

impl Output {
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, RelayError> {
        Ok(Self(match endpoint {
            Endpoint::Discard => Kind::Discard,
            Endpoint::File(path) => Kind::File(path.clone()),
            Endpoint::Grpc(_) | Endpoint::Tail(_) => {
                let endpoint = endpoint.to_string();
                return Err(RelayError::OutputOnlyIn { endpoint });
            }
            Endpoint::Tcp(_) | Endpoint::UnixStream(_) => Kind::Stream(endpoint.clone()),
            Endpoint::Udp(_) | Endpoint::UnixDatagram(_) => Kind::Datagram(endpoint.clone()),
            Endpoint::Http(target) | Endpoint::SplunkHec(target) => {
                let destination = http::Destination::new(target);
                Kind::Http(destination.map_err(|source| RelayError::Output {
                    endpoint: endpoint.to_string(),
                    source,
                })?)
            }
        }))
    }
}

/// Sends events on until the buffer is closed and empty.
pub(crate) async fn send_on(core: &Core, output: Output) {
    match output.0 {
        Kind::Datagram(endpoint) => datagram::send_on(core, &endpoint).await,
        Kind::Discard => discard(core).await,
        Kind::File(path) => file::send_on(core, &path).await,
        Kind::Http(destination) => http::send_on(core, &destination).await,
        Kind::Stream(endpoint) => stream::send_on(core, &endpoint).await,
    }
}

async fn discard(core: &Core) {
    while core.buffer.wait().await {
        core.gate.pass().await;
        let (mut events, mut bytes) = (0, 0);
        core.buffer.take_while(|event| {
            events += 1;
            bytes += event.len() as u64 + 1;
            true
        });
        core.handed_over(events, bytes);
    }
}
