//! A scenario, whose requests have templates.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::scenario(bytes));
