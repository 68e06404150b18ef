//! What a server of HTTP/3 says, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::h3_client(bytes));
