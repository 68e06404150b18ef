//! One module per command, and what they share.

pub(crate) mod bisect;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod history;
pub(crate) mod load;
mod output;
mod places;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod rig;
pub(crate) mod run;
pub(crate) mod schema;
mod select;
pub(crate) mod serve;
pub(crate) mod transform;
