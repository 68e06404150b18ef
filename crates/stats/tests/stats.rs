//! Every test of this crate that needs only its public face.

#[path = "stats/calibrate.rs"]
mod calibrate;
#[path = "stats/golden.rs"]
mod golden;
#[path = "stats/order.rs"]
mod order;
#[path = "stats/paired.rs"]
mod paired;
#[path = "stats/power.rs"]
mod power;
#[path = "stats/sample.rs"]
mod sample;
#[path = "stats/student.rs"]
mod student;
