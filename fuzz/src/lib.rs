//! A fuzz target for every decoder.
//!
//! A target is a function of any bytes. It must not panic, and it checks what must hold of
//! whatever was decoded: that it can be written and read again, that two ways to the same
//! answer agree. `cargo xtask fuzz` runs them; `tests/corpus.rs` runs the kept corpus in every
//! test run, without libFuzzer.

mod cel;
mod objects;
mod queries;
mod stored;

/// One decoder under test.
#[derive(Debug)]
pub struct Target {
    /// As `cargo xtask fuzz` calls it, and the folder of its corpus.
    pub name: &'static str,
    /// Runs it once.
    pub run: fn(&[u8]),
}

/// All of them, in the order of the data's way: store, configuration, objects, queries, expressions.
pub const TARGETS: &[Target] = &[
    Target { name: "envelopes", run: stored::envelopes },
    Target { name: "kms_object", run: stored::kms_object },
    Target { name: "snapshot", run: stored::snapshot },
    Target { name: "etcd_keys", run: stored::etcd_keys },
    Target { name: "encryption_configuration", run: stored::encryption_configuration },
    Target { name: "protobuf", run: objects::protobuf },
    Target { name: "json", run: objects::json },
    Target { name: "yaml", run: objects::yaml },
    Target { name: "json_patch", run: objects::json_patch },
    Target { name: "merge_patch", run: objects::merge_patch },
    Target { name: "strategic_patch", run: objects::strategic_patch },
    Target { name: "managed_fields", run: objects::managed_fields },
    Target { name: "server_side_apply", run: objects::server_side_apply },
    Target { name: "continue_token", run: queries::continue_token },
    Target { name: "label_selector", run: queries::label_selector },
    Target { name: "field_selector", run: queries::field_selector },
    Target { name: "jsonpath", run: queries::jsonpath },
    Target { name: "scalars", run: queries::scalars },
    Target { name: "cel_parser", run: cel::cel_parser },
    Target { name: "cel_checker", run: cel::cel_checker },
    Target { name: "cel_evaluator", run: cel::cel_evaluator },
];

/// Not a decoder: a panic behind six bytes, each seen only when those before it are right.
/// `cargo xtask fuzz` must find it, or its other results mean nothing.
pub const PLANTED: Target = Target { name: "planted", run: planted };

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain([&PLANTED]).find(|target| target.name == name)
}

fn planted(data: &[u8]) {
    let mut rest = data;
    for (depth, wanted) in b"coffer".iter().enumerate() {
        match rest.split_first() {
            Some((first, tail)) if first == wanted => rest = tail,
            // Seen by the fuzzer as a place of its own for each depth.
            _ => {
                std::hint::black_box(depth);
                return;
            }
        }
    }
    panic!("the planted fault was found");
}

/// Repeats parts of `data` in their place until the whole is about `length` bytes long.
pub fn pump(data: &[u8], length: usize, run: &mut dyn FnMut(&[u8])) {
    const PLACES: usize = 4;
    for width in [1, 2, 7, 32, data.len()] {
        if data.len() < width || width == 0 {
            continue;
        }
        let step = (data.len() / PLACES).max(1);
        for start in (0..=data.len() - width).step_by(step) {
            let (head, rest) = data.split_at(start);
            let (part, tail) = rest.split_at(width);
            let pumped = [head, &part.repeat(length / width), tail].concat();
            run(&pumped);
        }
    }
}
