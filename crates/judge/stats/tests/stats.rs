//! Every test of this crate that needs only its public face.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::float_cmp,
    reason = "what is exact by definition is compared exactly"
)]

#[path = "stats/calibrate.rs"]
mod calibrate;
#[path = "stats/change.rs"]
mod change;
#[path = "stats/components.rs"]
mod components;
#[path = "stats/disturbed.rs"]
mod disturbed;
#[path = "stats/golden.rs"]
mod golden;
#[path = "stats/inference.rs"]
mod inference;
#[path = "stats/modes.rs"]
mod modes;
#[path = "stats/order.rs"]
mod order;
#[path = "stats/paired.rs"]
mod paired;
#[path = "stats/power.rs"]
mod power;
#[path = "stats/sample.rs"]
mod sample;
#[path = "stats/simulate.rs"]
mod simulate;
#[path = "stats/simulated.rs"]
mod simulated;
#[path = "stats/soak.rs"]
mod soak;
#[path = "stats/student.rs"]
mod student;
#[path = "stats/usl.rs"]
mod usl;
#[path = "stats/warmup.rs"]
mod warmup;
