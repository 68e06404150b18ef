//! Tools for the text formats.

mod clock;
mod digits;
mod message;
mod pen;
mod vocabulary;

pub(crate) use clock::Clock;
pub(crate) use digits::{PAIRS, TRIPLES, hexadecimal_word};
pub(crate) use message::Messages;
pub(crate) use pen::{Fragment, Paper, Pen};
pub(crate) use vocabulary::{Vocabulary, address, application, path, word};
