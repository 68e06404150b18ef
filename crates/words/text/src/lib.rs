//! YAML trees with spans, diagnostics, and typed fields.
//!
//! Everything here is pure: text goes in, values and [`Diagnostics`] come out.
//! A reader never stops at its first error. It collects all of them, each with
//! its place in the file, and continues with what it could read.
//!
//! * [`Source`], [`Place`], [`Diagnostic`]: what is wrong, and where;
//! * [`Node`], [`parse`]: YAML as a tree in which every node has a place;
//! * [`Reader`], [`MapReader`]: typed reading of that tree.
//!
//! The native format and the formats of other tools use the same reader, so all
//! messages have the same form.

pub mod code;
mod command;
mod diagnostic;
mod network;
mod node;
mod reader;
mod render;
mod source;

pub use command::split_command;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use network::{check_address, check_any_url, check_url};
pub use node::{Entry, Key, Node, Value, parse, parse_repeated, parse_tagged};
pub use reader::{Keys, MapReader, NamedFiles, Reader, nearest};
pub use source::{Place, Position, Source, Span};
