//! Messages of a NATS server.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::broker_nats(bytes));
