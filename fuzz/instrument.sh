#!/bin/sh
# Cargo's RUSTC_WORKSPACE_WRAPPER for `cargo xtask fuzz`: the project's own crates count which of
# their edges run and what they compare, as libFuzzer wants to know; other crates stay as they are.
exec "$@" -Copt-level=2 -Ccodegen-units=4 -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares
