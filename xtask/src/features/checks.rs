//! The table of features in `docs/library.md`: every name in it exists in its language, and every row has a test in each, which
//! has passed.

use super::table;
use akunu_repo::workspace;

fn read(path: &str) -> String {
    let path = workspace::root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder, as one text.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![workspace::root().join(folder)];
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

/// Breaks when a name is changed in one language and not in the table, or a feature is left out of one of them.
#[test]
fn every_name_of_the_table_exists() {
    let page = read(table::PAGE);
    let rust = ["akunu", "akunu-engine"].map(|name| sources(&format!("crates/{name}/src")));
    let rust = rust.concat();
    let (header, options) = (
        read("crates/akunu-c/include/akunu.h"),
        read("crates/akunu-c/src/options.rs"),
    );
    let python = read("python/akunu/__init__.py");
    let rows: Vec<table::Row> = table::rows(&page).collect();
    assert!(rows.len() > 15, "{}", rows.len());
    for row in rows {
        let (feature, [in_rust, in_c, in_python]) = (row.feature, row.cells);
        for cell in row.cells {
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

/// Breaks when a row is added without a test in one of the languages, or its tests have not run or not passed.
#[test]
fn every_row_has_a_test_that_has_passed() {
    let page = read(table::PAGE);
    let tests = [
        ("crates/akunu/tests/it/features.rs", "fn NAME() {"),
        ("crates/akunu-c/tests/it/features.c", "    FEATURE(NAME),"),
        ("python/tests/test_features.py", "\ndef test_NAME("),
    ];
    let tests = tests.map(|(path, wanted)| (path, wanted, read(path)));
    for row in table::rows(&page) {
        let name = row.test();
        for ((path, wanted, text), is_marked) in tests.iter().zip(row.marked) {
            let is_there = text.contains(&wanted.replace("NAME", &name));
            assert!(is_there, "{path} has no test `{name}`");
            assert!(
                is_marked,
                "{}: `{}` has no mark for {path}; `cargo xtask features` runs the tests and writes the marks",
                table::PAGE,
                row.feature
            );
        }
    }
}
