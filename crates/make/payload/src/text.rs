//! Tools for the text formats.

mod clock;
mod digits;
mod message;
mod piece_writer;
mod vocabulary;

pub(crate) use clock::Clock;
pub(crate) use digits::{PAIRS, TRIPLES, hexadecimal_word};
pub(crate) use message::Messages;
pub(crate) use piece_writer::{EventBuffer, Fragment, PieceWriter};
pub(crate) use vocabulary::{Vocabulary, address, application, path, word};
