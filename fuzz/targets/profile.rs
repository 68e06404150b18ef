//! Profiles of a target: pprof files, and the text of `perf script`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::profile(bytes));
