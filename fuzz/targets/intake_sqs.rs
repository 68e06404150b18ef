//! Requests to SQS.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::intake_sqs(bytes));
