//! One module per command.

pub(crate) mod check;
pub(crate) mod rig;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
mod select;
