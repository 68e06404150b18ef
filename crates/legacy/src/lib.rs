//! Shapes of other tools: lading and SMP YAML, read into plans.
//!
//! Everything here is pure: text goes in, plan pieces and [`Diagnostics`] come
//! out. A reader never stops at its first error; it collects all of them, each
//! with its place in the file, and goes on with what it could understand.
//!
//! * [`Source`], [`Place`], [`Diagnostic`]: what was wrong, and where;
//! * [`Node`], [`parse`]: YAML as a tree in which everything knows its place;
//! * [`Reader`], [`MapReader`]: typed reading of that tree;
//! * [`lading`]: `lading.yaml`, list and map shape;
//! * [`lint`]: old spellings in both, and today's;
//! * [`smp`]: `experiment.yaml` and `config.yaml` of SMP cases;
//! * [`tremor`]: the keys of its `bench` connector;
//! * [`kubernetes`], [`kubeconfig`]: manifests, and where a cluster is;
//! * [`results`]: what others measured: Nighthawk and fortio JSON, and columns.
//!
//! The native formats of the configuration door stand on the same reader, so
//! that every message of every format looks alike.

pub mod code;
mod command;
mod diagnostic;
pub mod harness;
pub mod kubeconfig;
pub mod kubernetes;
pub mod lading;
pub mod lint;
mod network;
pub mod nighthawk;
mod node;
mod reader;
mod render;
pub mod results;
mod rules;
pub mod smp;
mod source;
pub mod tremor;

pub use command::split_command;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use network::{check_address, check_any_url, check_url, ready_probe_of};
pub use node::{Entry, Key, Node, Value, parse, parse_tagged};
pub use reader::{Keys, MapReader, NamedFiles, Reader, nearest};
pub use rules::{Ids, Placed, check_past_subject, check_sink_addresses, listening_place};
pub use source::{Place, Position, Source, Span};
