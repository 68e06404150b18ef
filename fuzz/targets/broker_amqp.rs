//! Answers of an AMQP broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::broker_amqp(bytes));
