//! One target under libFuzzer: `FUZZ_TARGET=name fuzz [libFuzzer's options] corpus`. `make fuzz` is the way to run it.
#![no_main]

use omnibus_fuzz::Target;
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    TARGET
        .get_or_init(|| {
            let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
            omnibus_fuzz::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name} is no target"))
        })
        .run(input);
});
