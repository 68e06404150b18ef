//! Messages of Nighthawk's gRPC services.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stillwell_fuzz::nighthawk_wire(bytes));
