//! HTTP/2 frames, cut anywhere.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::h2_frames(bytes));
