//! `unsafe` stands in few places, and every other crate forbids it.

use super::rust_text::{code_only, has_word};
use super::tree::{TextFile, text_files};

/// Where `unsafe` may stand.
const ALLOWED: [&str; 6] = [
    "crates/akunu-kernels/src/metal/",
    "crates/akunu-gguf/src/mmap.rs",
    "crates/akunu-cpu/",
    "crates/akunu-cuda/",
    "crates/akunu-sim/",
    "crates/akunu-c/",
];
/// The macros of `pyo3` write unsafe code into this crate, which may write none itself.
const PYTHON: &str = "python/src/lib.rs";
/// A bench that counts allocations is an allocator itself; the crate it measures still forbids `unsafe`.
const COUNTING: &str = "benches/scheduler.rs";
const FORBID: &str = "#![forbid(unsafe_code)]";
const DENY: &str = "#![deny(unsafe_code)]";

fn violations(files: &[TextFile]) -> Vec<String> {
    let rust = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let misplaced = rust()
        .filter(|file| !ALLOWED.iter().any(|allowed| file.path.starts_with(allowed)))
        .filter(|file| file.path != COUNTING)
        .filter(|file| has_word(&code_only(&file.text), "unsafe"))
        .map(|file| format!("{}: unsafe is not allowed here", file.path));
    let unguarded = rust()
        .filter(|file| is_crate_root(&file.path) && !has_allowed_place(&file.path))
        .map(|file| (file, guard(&file.path)))
        .filter(|(file, guard)| !code_only(&file.text).contains(guard))
        .map(|(file, guard)| format!("{}: `{guard}` is missing", file.path));
    misplaced.chain(unguarded).collect()
}

fn guard(path: &str) -> &'static str {
    if path == PYTHON { DENY } else { FORBID }
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs")
}

/// Whether some place of this root's crate may hold `unsafe`, so that it cannot forbid all of it.
fn has_allowed_place(root: &str) -> bool {
    let package = root.split("/src/").next().unwrap_or(root);
    ALLOWED
        .iter()
        .any(|allowed| allowed.starts_with(&format!("{package}/")))
}

#[test]
fn unsafe_stands_only_where_the_design_allows_it() {
    assert_eq!(violations(&text_files()), Vec::<String>::new());
}

#[test]
fn planted_violations_are_found() {
    let check = |path: &str, text: &str| {
        violations(&[TextFile {
            path: path.into(),
            text: text.into(),
        }])
    };
    let block = "fn f() { unsafe { g() } }";
    assert_eq!(check("crates/akunu-engine/src/plan.rs", block).len(), 1);
    assert_eq!(check("crates/akunu-gguf/src/parse.rs", block).len(), 1);
    assert!(check("crates/akunu-gguf/src/mmap.rs", block).is_empty());
    assert!(check("crates/akunu-kernels/src/metal/device.rs", block).is_empty());
    assert!(check("crates/akunu-arch/src/llama.rs", "// unsafe\nfn f() {}").is_empty());
    assert_eq!(
        check("crates/akunu-arch/src/lib.rs", "//! Docs.\n").len(),
        1
    );
    assert_eq!(
        check("crates/akunu-arch/src/lib.rs", &format!("// {FORBID}\n")).len(),
        1
    );
    assert!(check("crates/akunu-arch/src/lib.rs", &format!("{FORBID}\n")).is_empty());
    assert!(check("crates/akunu-sim/src/lib.rs", "//! Docs.\n").is_empty());
    assert_eq!(check(PYTHON, "//! Docs.\n").len(), 1);
    assert!(check(PYTHON, &format!("{DENY}\n")).is_empty());
}
