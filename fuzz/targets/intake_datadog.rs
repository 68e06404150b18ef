//! Requests to Datadog's intake.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::intake_datadog(bytes));
