//! Answers to a load, cut anywhere, known again or not.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::load_answer(bytes));
