//! What a broker of AMQP answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::broker_amqp(bytes));
