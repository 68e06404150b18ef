//! Requests to Splunk's collector.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::intake_hec(bytes));
