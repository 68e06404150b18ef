//! Tables, columns and results of other tools.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::tables(bytes));
