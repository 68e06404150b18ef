//! Bytes of an HTTP/3 server, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::h3_client(bytes));
