//! What must, and what may not, stand in a `Cargo.toml`.

use super::tree::{TextFile, text_files};

/// The manifests that may name Apple's frameworks, and CUDA's driver: the owner, and for CUDA the list of versions.
const OWNERS: [(&str, &[&str]); 2] = [
    ("objc2", &["crates/akunu-kernels/Cargo.toml"]),
    ("cudarc", &["crates/akunu-cuda/Cargo.toml", "Cargo.toml"]),
];

/// Without it, debug builds panic at the first call under Metal's validation, whose classes forward calls.
const FORWARDING: &str = "disable-encoding-assertions";

fn asserts_encodings(line: &str) -> bool {
    line.starts_with("objc2 = ") && !line.contains(FORWARDING)
}

fn violations(files: &[TextFile]) -> Vec<String> {
    let manifests = || {
        files
            .iter()
            .filter(|file| file.path.ends_with("Cargo.toml"))
    };
    let foreign = manifests().flat_map(|file| {
        let named = OWNERS.iter().filter(move |(name, owners)| {
            !owners.contains(&&*file.path) && lines(file).any(|line| line.contains(name))
        });
        named.map(|(name, owners)| format!("{}: only {} may name {name}", file.path, owners[0]))
    });
    let no_lints = manifests()
        .filter(|file| lines(file).any(|line| line == "[package]") && !has_workspace_lints(file))
        .map(|file| format!("{}: `[lints] workspace = true` is missing", file.path));
    let no_docs_lint = manifests()
        .filter(|file| lines(file).any(|line| line == "[workspace.lints.rust]"))
        .filter(|file| !lines(file).any(|line| line.starts_with("missing_docs = ")))
        .map(|file| format!("{}: the lint table lacks missing_docs", file.path));
    let asserting = manifests()
        .filter(|file| lines(file).any(asserts_encodings))
        .map(|file| format!("{}: objc2 needs the feature {FORWARDING}", file.path));
    foreign
        .chain(no_lints)
        .chain(no_docs_lint)
        .chain(asserting)
        .collect()
}

/// The lines without comments and outer spaces.
fn lines(file: &TextFile) -> impl Iterator<Item = &str> {
    file.text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
}

fn has_workspace_lints(file: &TextFile) -> bool {
    let mut after = lines(file).skip_while(|line| *line != "[lints]").skip(1);
    after.find(|line| !line.is_empty()) == Some("workspace = true")
}

/// cargo-fuzz and Python want workspaces of their own, which cannot inherit our lint table.
fn is_ours(file: &TextFile) -> bool {
    !file.path.starts_with("fuzz/") && !file.path.starts_with("python/")
}

#[test]
fn manifests_keep_the_rules() {
    let files: Vec<TextFile> = text_files().into_iter().filter(is_ours).collect();
    assert_eq!(violations(&files), Vec::<String>::new());
}

#[test]
fn planted_violations_are_found() {
    let check = |path: &str, text: &str| {
        violations(&[TextFile {
            path: path.into(),
            text: text.into(),
        }])
    };
    let good = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";
    assert!(check("crates/a/Cargo.toml", good).is_empty());
    assert_eq!(
        check("crates/a/Cargo.toml", "[package]\n[lints]\n").len(),
        1
    );
    let metal = format!("{good}[dependencies]\nobjc2-metal = \"0.3\"\n");
    assert!(check(OWNERS[0].1[0], &metal).is_empty());
    let cuda = metal.replace("objc2", "cudarc");
    assert!(check(OWNERS[1].1[0], &cuda).is_empty());
    assert_eq!(check(OWNERS[0].1[0], &cuda).len(), 1);
    assert_eq!(check("crates/a/Cargo.toml", &metal).len(), 1);
    assert_eq!(
        check(
            "Cargo.toml",
            "[workspace.dependencies]\nobjc2-metal = \"0.3\"\n"
        )
        .len(),
        1
    );
    let asserting = format!("{good}[dependencies]\nobjc2 = \"0.6\"\n");
    assert_eq!(check(OWNERS[0].1[0], &asserting).len(), 1);
    assert_eq!(
        check("Cargo.toml", "[workspace.lints.rust]\nunused = \"warn\"\n").len(),
        1
    );
    assert!(
        check(
            "Cargo.toml",
            "[workspace.lints.rust]\nmissing_docs = \"warn\"\n"
        )
        .is_empty()
    );
}
