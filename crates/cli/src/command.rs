//! One module per command, and what they share.

pub(crate) mod check;
pub(crate) mod compare;
mod output;
mod places;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod rig;
pub(crate) mod run;
pub(crate) mod schema;
mod select;
