//! Inputs.

mod accept;
mod datagram;
mod grpc;
mod hec;
mod http;
mod reader;
mod socket;
mod stream;
mod tail;

use std::cell::Cell;
use std::rc::Rc;

use stillwell_scope::PartError;
use stillwell_wire::Listener;

use crate::core::Core;

pub(crate) use accept::accept;
pub(crate) use reader::InputReader;
pub(crate) use socket::{BoundInput, InputSocket};

/// Connections served at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 1024;

/// Takes events in until the relay is to end, and then what has arrived already.
pub(crate) async fn take_in(core: &Rc<Core>, input: BoundInput) -> Result<(), PartError> {
    let BoundInput { socket, file } = input;
    match socket {
        InputSocket::Tcp(socket) => {
            let listener = Listener::tcp(socket)?;
            accept(core, listener, CONNECTIONS_MAX, stream::serve).await?;
        }
        InputSocket::UnixStream(socket) => {
            let listener = Listener::unix(socket)?;
            accept(core, listener, CONNECTIONS_MAX, stream::serve).await?;
        }
        InputSocket::Http(socket) => {
            let listener = Listener::tcp(socket)?;
            accept(core, listener, CONNECTIONS_MAX, http::serve).await?;
        }
        InputSocket::Grpc(socket) => {
            let listener = Listener::tcp(socket)?;
            accept(core, listener, CONNECTIONS_MAX, grpc::serve).await?;
        }
        InputSocket::SplunkHec(socket) => {
            let listener = Listener::tcp(socket)?;
            let acks = Rc::new(Cell::new(0));
            let serve =
                |core, stream, activity| hec::serve(core, stream, activity, Rc::clone(&acks));
            accept(core, listener, CONNECTIONS_MAX, serve).await?;
        }
        InputSocket::Tail(folder) => tail::follow(core, &folder).await?,
        InputSocket::Udp(socket) => datagram::udp(core, socket).await?,
        InputSocket::UnixDatagram(socket) => datagram::unix(core, socket).await?,
    }
    drop(file);
    Ok(())
}
