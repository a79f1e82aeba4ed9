//! What will grow is public in a way that lets it: a new error or option must not break the programs that use a crate.
//!
//! An enum of errors is `#[non_exhaustive]`. A struct of options ends with a hidden field, `_more`, so that it can only be
//! written with `..Default::default()`; `#[non_exhaustive]` would forbid that, too.

use super::rust_text::code_only;
use super::tree::{TextFile, text_files};

/// Nobody depends on these.
const PROGRAMS: [&str; 2] = ["crates/akunu-cli/", "crates/akunu-assets/"];
/// Complete: these two questions are all that a tokenizer is asked.
const COMPLETE: [&str; 1] = ["EncodeOptions"];

fn violations(files: &[TextFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_of_a_library(&file.path)) {
        for item in public_items(&code_only(&file.text)) {
            if let Some(why) = item.problem() {
                found.push(format!("{}: {} {why}", file.path, item.name));
            }
        }
    }
    found
}

fn is_of_a_library(path: &str) -> bool {
    let in_src = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    in_src && !PROGRAMS.iter().any(|program| path.starts_with(program))
}

/// A public struct or enum.
struct Item<'a> {
    keyword: &'a str,
    name: &'a str,
    /// What stands between the item before and this one.
    attributes: &'a str,
    /// From its name to the next brace that closes a line of its own.
    body: &'a str,
}

impl Item<'_> {
    fn problem(&self) -> Option<&'static str> {
        let is_open = self.attributes.contains("#[non_exhaustive]");
        let is_error = self.keyword == "enum" && self.attributes.contains("Error");
        if is_error && !is_open {
            return Some("is an error and not #[non_exhaustive]");
        }
        let has_fields = self.body.trim_start().starts_with('{');
        let is_options = self.keyword == "struct" && self.name.ends_with("Options") && has_fields;
        if is_options && !COMPLETE.contains(&self.name) && !self.body.contains("pub _more: ()") {
            return Some("has options and no field `_more`");
        }
        None
    }
}

fn public_items(code: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for keyword in ["enum", "struct"] {
        let start = format!("pub {keyword} ");
        for (at, _) in code.match_indices(&start) {
            let before = &code[..at];
            let attributes = &before[before.rfind(['}', ';']).map_or(0, |end| end + 1)..];
            let rest = &code[at + start.len()..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let closing = rest.find("\n}").or_else(|| rest.find("\n        }"));
            items.push(Item {
                keyword,
                name,
                attributes,
                body: &rest[..closing.unwrap_or(rest.len())],
            });
        }
    }
    items
}

#[test]
fn errors_and_options_can_grow() {
    assert_eq!(violations(&text_files()), Vec::<String>::new());
}

#[test]
fn planted_violations_are_found() {
    let check = |text: &str| {
        violations(&[TextFile {
            path: "crates/akunu-gguf/src/error.rs".into(),
            text: text.into(),
        }])
    };
    let derive = "fn f() {}\n/// Why.\n#[derive(Debug, thiserror::Error)]\n";
    let variants = "pub enum Fault {\n    A,\n}\n";
    assert_eq!(check(&format!("{derive}{variants}")).len(), 1);
    assert!(check(&format!("{derive}#[non_exhaustive]\n{variants}")).is_empty());
    assert!(check(&format!("#[derive(Debug)]\n{variants}")).is_empty());
    let options = "pub struct OpenOptions {\n    pub kv: u32,\n";
    assert_eq!(check(&format!("{options}}}\n")).len(), 1);
    assert!(check(&format!("{options}    pub _more: (),\n}}\n")).is_empty());
    let elsewhere = format!("{options}}}\npub struct Other {{\n    pub _more: (),\n}}\n");
    assert_eq!(check(&elsewhere).len(), 1);
}
