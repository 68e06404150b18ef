//! `stillwell ui`: results, comparisons and forms as pages of a local server.
//!
//! [`WebServer`] listens, [`Guard`] decides about each request, and a [`Program`] does what commands do: the crate knows
//! no format of results. Commands that a form starts are child processes of the same program.
//!
//! Pages are made by the server and work without scripts. One small script adds live progress, filters and line
//! numbers.

mod answer;
mod fields;
mod guard;
mod jobs;
mod orders;
mod pages;
mod program;
mod routes;
mod server;
mod work_queue;

pub use guard::{Admission, Guard, Reason, RequestFacts};
pub use program::{CheckedFile, ClusterJobView, FileFinding, Program, Refusal};
pub use server::{BindError, WebOptions, WebServer};
