#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| relent_fuzz::driver(data));
