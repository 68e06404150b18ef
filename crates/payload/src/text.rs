//! What the text formats are written with.

mod clock;
mod digits;
mod message;
mod pen;
mod vocabulary;

pub(crate) use clock::Clock;
pub(crate) use message::Messages;
pub(crate) use pen::{Fragment, Paper, Pen};
pub(crate) use vocabulary::{Vocabulary, address, application, path};
