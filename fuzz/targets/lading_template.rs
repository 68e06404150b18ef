//! A template of JSON as lading has them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::lading_template(bytes));
