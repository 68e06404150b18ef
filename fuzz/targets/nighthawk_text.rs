//! Nighthawk's messages as text proto.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::nighthawk_text(bytes));
