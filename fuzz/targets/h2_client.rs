//! Bytes of an HTTP/2 server, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::h2_client(bytes));
