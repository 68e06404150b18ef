//! Expressions of faults and delays.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::expression(bytes));
