//! The public face of the crate: each item has an example, and none comes, goes or changes unnoticed.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the list is kept.
const LIST: &str = "public-api.txt";

/// The files of the crate, in a fixed order.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![root], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    files.into_iter().map(read).collect()
}

/// The part of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests")
        .map_or(text, |(before, _)| before)
}

/// A declaration that begins with this line, up to its body or end, in one line.
fn declaration(first: &str, rest: &[&str]) -> String {
    let mut whole = first.trim().to_string();
    let ends: &[char] = match whole.starts_with("pub use") {
        true => &[';'],
        false => &['{', ';', ','],
    };
    for line in rest {
        if whole.ends_with(ends) && is_closed(&whole) {
            break;
        }
        whole = format!("{whole} {}", line.trim());
    }
    let end = whole.trim_end_matches(['{', ';', ',', ' ']);
    end.replace("( ", "(")
        .replace(", )", ")")
        .replace("< ", "<")
}

fn is_closed(text: &str) -> bool {
    text.matches('(').count() == text.matches(')').count()
}

/// The types that a file declares as public.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    let kinds = ["pub struct ", "pub enum ", "pub trait "];
    let named = move |line| kinds.iter().find_map(|kind| str::strip_prefix(line, kind));
    text.lines().filter_map(named).map(type_name)
}

/// The name with which a type begins, without its parameters.
fn type_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The type that an `impl` is for.
fn implemented(head: &str) -> &str {
    let head = head.split_once(" for ").map_or(head, |(_, of)| of);
    let after_parameters = match head.strip_prefix('<') {
        Some(rest) => rest.split_once("> ").map_or(rest, |(_, of)| of),
        None => head,
    };
    type_name(after_parameters.trim_start())
}

/// All that a file declares as public: items, methods below their `impl`, fields and variants below their types. Methods of
/// types that are not in `types` are not public.
fn public_items(text: &str, types: &[&str]) -> Vec<String> {
    let lines: Vec<&str> = without_tests(text).lines().collect();
    let (mut items, mut owner, mut is_public_enum) = (Vec::new(), String::new(), false);
    for (at, line) in lines.iter().enumerate() {
        let rest = &lines[at + 1..];
        if let Some(head) = line.strip_prefix("impl") {
            owner.clear();
            is_public_enum = false;
            if types.contains(&implemented(head)) {
                owner = format!("impl{}", head.trim_end_matches([' ', '{']));
            }
            if owner.contains(" for ") {
                items.push(owner.clone());
            }
        } else if line.starts_with("pub ") {
            owner = declaration(line, rest);
            is_public_enum = owner.starts_with("pub enum");
            items.push(owner.clone());
        } else if line.starts_with("    pub ") && !owner.is_empty() {
            items.push(format!("{owner}: {}", declaration(line, rest)));
        } else if is_public_enum && line.starts_with("    ") && !line.starts_with("     ") {
            let name = line.trim().split(['(', '{', ',', ' ']).next().unwrap();
            if name.starts_with(char::is_uppercase) {
                items.push(format!("{owner}: {name}"));
            }
        } else if *line == "}" {
            is_public_enum = false;
            owner.clear();
        }
    }
    items
}

/// The list of all public items, which is reviewed with each change of it.
fn list() -> String {
    let mut list = String::from(
        "# The public items of `akunu`, by file. `cargo test -p akunu --test it` compares it.\n",
    );
    let sources = sources();
    let types: Vec<&str> = sources
        .iter()
        .flat_map(|(_, text)| public_types(text))
        .collect();
    for (path, text) in &sources {
        let items = public_items(text, &types);
        if !items.is_empty() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let path = path.strip_prefix(root).unwrap().display();
            list.push_str(&format!("\n## {path}\n{}\n", items.join("\n")));
        }
    }
    list
}

/// Breaks when a public item is added, removed or changed without a look at the list.
#[test]
fn the_public_items_are_those_of_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LIST);
    let (written, found) = (fs::read_to_string(&path).unwrap_or_default(), list());
    let proposed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(LIST);
    fs::write(&proposed, &found).unwrap();
    let is_same = written == found;
    assert!(
        is_same,
        "the public items have changed; if that is intended: cp {} {}",
        proposed.display(),
        path.display()
    );
}

/// Breaks when a function has no example; `reexported.rs` looks at the types.
#[test]
fn every_public_function_has_an_example() {
    let mut missing = Vec::new();
    for (path, text) in sources() {
        let mut docs = String::new();
        for line in without_tests(&text).lines() {
            if line.starts_with("///") {
                docs.push_str(line);
            } else if !line.starts_with("#[") {
                if line.starts_with("pub fn ") && !docs.contains("```") {
                    missing.push(format!("{}: {line}", path.display()));
                }
                docs.clear();
            }
        }
    }
    assert!(missing.is_empty(), "no example:\n{}", missing.join("\n"));
}

/// Breaks when the scanner overlooks something.
#[test]
fn the_list_has_items_of_every_kind() {
    let text = "pub struct A<'a> {\n    pub b: u8,\n    c: u8,\n}\n\nimpl A<'_> {\n    pub fn d(\n        &self,\n        \
                e: u8,\n    ) -> u8 {\n        0\n    }\n}\n\npub enum F {\n    G(u8),\n    H {\n        i: u8,\n    },\n}\n\n\
                impl Drop for A<'_> {\n    fn drop(&mut self) {}\n}\n\nstruct J {\n    pub k: u8,\n}\n\nimpl<T> J<T> {\n    \
                pub fn l() {}\n}\n\npub use m::{\n    N,\n    O,\n};\n";
    let types: Vec<&str> = public_types(text).collect();
    assert_eq!(types, ["A", "F"]);
    let found = public_items(text, &types);
    let wanted = [
        "pub struct A<'a>",
        "pub struct A<'a>: pub b: u8",
        "impl A<'_>: pub fn d(&self, e: u8) -> u8",
        "pub enum F",
        "pub enum F: G",
        "pub enum F: H",
        "impl Drop for A<'_>",
        "pub use m::{ N, O, }",
    ];
    assert_eq!(found, wanted);
}
