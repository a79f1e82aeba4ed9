//! A `SAFETY` note says which promise holds and why. One that only points at its caller says nothing.

use super::tree::{TextFile, text_files};

/// Where the promises have names, which are in the crate's README.
const FOLDER: &str = "crates/akunu-cpu/src/";
/// What a note may not say: who promised, instead of what.
const EMPTY: [&str; 4] = [
    "as the caller says",
    "caller's promise",
    "as the caller promises",
    "the CPU has the instructions",
];

fn violations(files: &[TextFile]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let ours = rust.filter(|file| file.path.starts_with(FOLDER));
    let lines = ours.flat_map(|file| file.text.lines().map(move |line| (&file.path, line)));
    lines
        .filter(|(_, line)| {
            line.contains("SAFETY:") && EMPTY.iter().any(|empty| line.contains(empty))
        })
        .map(|(path, line)| format!("{path}: {}", line.trim()))
        .collect()
}

#[test]
fn safety_notes_name_the_promise() {
    assert_eq!(violations(&text_files()), Vec::<String>::new());
}

#[test]
fn planted_violations_are_found() {
    let check = |text: &str| {
        let file = TextFile {
            path: format!("{FOLDER}a.rs"),
            text: text.into(),
        };
        violations(&[file]).len()
    };
    assert_eq!(check("// SAFETY: as the caller says.\n"), 1);
    assert_eq!(check("    // SAFETY: by the caller's promise.\n"), 1);
    assert_eq!(check("// SAFETY: passes on `level` and `reach`.\n"), 0);
}
