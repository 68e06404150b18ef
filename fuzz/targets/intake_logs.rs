//! Requests to Elasticsearch and S3.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::intake_logs(bytes));
