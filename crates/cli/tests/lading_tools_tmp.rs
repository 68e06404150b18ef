#![allow(dead_code, clippy::all)]
#[path = "cli/captool.rs"]
mod captool;
#[path = "cli/lab.rs"]
mod lab;
#[path = "cli/lading_name.rs"]
mod lading_name;
#[path = "cli/lint.rs"]
mod lint;
#[path = "cli/payloadtool.rs"]
mod payloadtool;
