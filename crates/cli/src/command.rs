//! One module per command, and what they share.

pub(crate) mod bench;
pub(crate) mod bisect;
pub(crate) mod calibrate;
pub(crate) mod captool;
pub(crate) mod check;
pub(crate) mod compare;
mod conduct;
pub(crate) mod find_capacity;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod lading;
pub(crate) mod lint;
pub(crate) mod load;
mod output;
pub(crate) mod payloadtool;
mod places;
mod random;
pub(crate) mod relay;
pub(crate) mod report;
pub(crate) mod rig;
pub(crate) mod run;
pub(crate) mod schema;
mod select;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod test_bench;
pub(crate) mod transform;
