//! The series of a run that was cut off.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::capture(bytes));
