//! Tells the crate how it is optimised, for a warning in the log: debug assertions say less, because a dev build may have them
//! and be optimised all the same.

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=AKUNU_OPT_LEVEL={level}");
}
