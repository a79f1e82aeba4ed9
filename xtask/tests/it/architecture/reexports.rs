//! A crate that is usable alone shows the crates whose types its functions take and return.

use super::tree::{TextFile, text_files};
use std::collections::{BTreeMap, BTreeSet};

/// The crates that can be used alone. `akunu` is not one of them: it names what it shows, one by one, in `public-api.txt`.
const ALONE: [&str; 9] = [
    "gguf",
    "program",
    "kernels",
    "cpu",
    "cuda",
    "arch",
    "tokenizer",
    "engine",
    "sim",
];

/// The crates of the workspace that a crate depends on, without those of its tests and its build script.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let (_, after) = manifest.split_once("[dependencies]\n").unwrap_or_default();
    let lines = after.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter_map(|name| name.strip_prefix("akunu-"))
        .collect()
}

/// The crates that a crate shows as a whole: `pub use akunu_NAME as …`, or `pub use akunu_NAME::{self as …`.
fn shown(lib: &str) -> BTreeSet<&str> {
    let named = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub use akunu_"));
    let whole = named.filter_map(|rest| {
        let (name, _) = rest.split_once(" as ").or(rest.split_once("::{self as "))?;
        Some(name.trim_end_matches("::{self"))
    });
    whole
        .filter(|name| name.chars().all(char::is_alphanumeric))
        .collect()
}

fn violations(files: &[TextFile]) -> Vec<String> {
    let text = |path: String| {
        let file = files.iter().find(|file| file.path == path);
        file.map_or("", |file| file.text.as_str())
    };
    let shown: BTreeMap<&str, BTreeSet<&str>> = ALONE
        .map(|name| (name, shown(text(format!("crates/akunu-{name}/src/lib.rs")))))
        .into();
    let mut found = Vec::new();
    for name in ALONE {
        let mut reached = BTreeSet::from([name]);
        let mut next = vec![name];
        while let Some(at) = next.pop() {
            let further = shown.get(at).into_iter().flatten();
            next.extend(further.filter(|other| reached.insert(other)));
        }
        let manifest = text(format!("crates/akunu-{name}/Cargo.toml"));
        let hidden = dependencies(manifest)
            .into_iter()
            .filter(|other| !reached.contains(other));
        found.extend(hidden.map(|other| {
            format!("akunu-{name} does not show akunu-{other}: `pub use akunu_{other} as {other};`")
        }));
    }
    found
}

/// Breaks when somebody who uses one crate has to add another one, in the same version, to name a type of its functions.
#[test]
fn crates_show_those_whose_types_they_use() {
    let files = text_files();
    assert_eq!(violations(&files), Vec::<String>::new());
}

#[test]
fn a_crate_that_is_not_shown_is_found() {
    let file = |path: &str, text: &str| TextFile {
        path: path.into(),
        text: text.into(),
    };
    let files = [
        file(
            "crates/akunu-cpu/Cargo.toml",
            "[dependencies]\nakunu-kernels.workspace = true\nakunu-types = { workspace = true }\n",
        ),
        file(
            "crates/akunu-cpu/src/lib.rs",
            "pub use akunu_kernels as kernels;\n",
        ),
        file(
            "crates/akunu-kernels/Cargo.toml",
            "[dependencies]\nlibc = \"1\"\n\n[dev-dependencies]\nakunu-types = \"1\"\n",
        ),
        file(
            "crates/akunu-kernels/src/lib.rs",
            "pub use akunu_types::DType as Kind;\n",
        ),
    ];
    let found = violations(&files);
    assert_eq!(
        found,
        ["akunu-cpu does not show akunu-types: `pub use akunu_types as types;`"]
    );
}
