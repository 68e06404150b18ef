//! The JSON that says how to answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::response_options(bytes));
