//! The C interface, as C sees it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod c_programs;
#[path = "../../../akunu/tests/support/classifier.rs"]
mod classifier;
mod generate;

/// Breaks when a function, a type or its documentation changes and the header does not.
#[test]
fn the_header_is_current() {
    let current = String::from_utf8(generate::header().unwrap()).unwrap();
    let committed = std::fs::read_to_string(generate::path()).unwrap();
    assert!(
        committed == current,
        "include/akunu.h is not current: run `cargo run -p akunu-c --example header`"
    );
}
