//! The table of features in `docs/library.md`: every name in it exists in its language.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder, as one text.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    text
}

/// The names in a cell: what stands between backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The rows below the heading, without the first two: the feature, and its names in Rust, C and Python.
fn rows<'p>(page: &'p str) -> Vec<[&'p str; 4]> {
    let (_, after) = page.split_once("# In Rust, C and Python").expect("a table");
    let lines = after.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|')).skip(2);
    let row = |line: &'p str| -> [&'p str; 4] {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        cells.try_into().expect("four columns")
    };
    lines.map(row).collect()
}

/// Breaks when a name is changed in one language and not in the table, or a feature is left out of one of them.
#[test]
fn every_name_of_the_table_exists() {
    let page = read("docs/library.md");
    let rust = ["akunu", "akunu-engine"].map(|name| sources(&format!("crates/{name}/src")));
    let rust = rust.concat();
    let (header, options) = (
        read("crates/akunu-c/include/akunu.h"),
        read("crates/akunu-c/src/options.rs"),
    );
    let python = read("python/akunu/__init__.py");
    let rows = rows(&page);
    assert!(rows.len() > 15, "{}", rows.len());
    for [feature, in_rust, in_c, in_python] in rows {
        for cell in [in_rust, in_c, in_python] {
            assert!(!names(cell).is_empty(), "{feature}: {cell}");
        }
        for name in names(in_rust) {
            let last = name.rsplit("::").next().unwrap();
            let wanted = [
                format!("pub fn {last}("),
                format!("pub fn {last}<"),
                format!("pub {last}:"),
            ];
            let is_there = wanted.iter().any(|wanted| rust.contains(wanted));
            assert!(is_there, "{feature}: Rust has no `{name}`");
        }
        for name in names(in_c) {
            let is_there = header.contains(&format!("{name}("))
                || header.contains(&format!("}} {name};"))
                || options.contains(&format!("\"{name}\" =>"));
            assert!(is_there, "{feature}: C has no `{name}`");
        }
        for name in names(in_python) {
            let last = name.rsplit('.').next().unwrap();
            let wanted = [
                format!("def {last}("),
                format!("        {last}: "),
                format!("from .{last} import"),
            ];
            let is_there = wanted.iter().any(|wanted| python.contains(wanted));
            assert!(is_there, "{feature}: Python has no `{name}`");
        }
    }
}
