//! Capsules with datagrams, one after the other.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::capsules(bytes));
