//! One target under libFuzzer: `COFFER_FUZZ_TARGET` names it, the arguments are libFuzzer's.
//!
//! With `COFFER_FUZZ_PUMP` each input is also run with parts of it repeated until it is so many bytes
//! long, which is how time or memory that grows faster than the input is found.

#![no_main]

use std::sync::LazyLock;

use coffer_fuzz::{Target, pump, target};

static TARGET: LazyLock<(&'static Target, Option<usize>)> = LazyLock::new(|| {
    let name = std::env::var("COFFER_FUZZ_TARGET").expect("COFFER_FUZZ_TARGET names the target");
    let target = target(&name).expect("COFFER_FUZZ_TARGET names one of the targets");
    let pumped = std::env::var("COFFER_FUZZ_PUMP").ok();
    (target, pumped.map(|length| length.parse().expect("COFFER_FUZZ_PUMP is a number")))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (target, pumped) = &*TARGET;
    (target.run)(data);
    if let Some(length) = pumped {
        pump(data, *length, &mut |pumped| (target.run)(pumped));
    }
});
