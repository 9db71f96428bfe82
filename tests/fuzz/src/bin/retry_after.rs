#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relent_fuzz::retry_after(data));
