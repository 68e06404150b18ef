//! A capture that another tool wrote.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::lading_capture(bytes));
