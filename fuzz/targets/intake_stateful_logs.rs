//! A batch of stateful logs.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::intake_stateful_logs(bytes));
