//! All types that `akunu` shows, its own and those of other crates: each has an example, and can grow.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the declarations are looked for, if not in the crate that a `use` names: crates show some of others themselves.
const CRATES: [&str; 11] = [
    "akunu",
    "akunu-engine",
    "akunu-arch",
    "akunu-audio",
    "akunu-cpu",
    "akunu-fetch",
    "akunu-gguf",
    "akunu-image",
    "akunu-program",
    "akunu-tokenizer",
    "akunu-types",
];
/// Types that every user of them must handle as a whole, so that a new part does not compile until each does.
const WHOLE: [&str; 5] = ["KvFormat", "Model", "Pooling", "PromptPart", "Size"];

/// A type that a user of `akunu` can name.
struct Shown {
    /// The name in its own crate.
    name: String,
    /// The crate that the `use` names.
    from: PathBuf,
    /// What the `use` adds to its documentation.
    docs: String,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The types of each `pub use`, by its text and the documentation before it.
fn shown() -> Vec<Shown> {
    let text = read(&crates().join("akunu/src/lib.rs"));
    let (mut shown, mut docs, mut statement) = (Vec::new(), String::new(), String::new());
    for line in text.lines() {
        match line.starts_with("///") {
            true => docs.push_str(line),
            false if statement.is_empty() && !line.starts_with("pub use ") => {
                if !line.starts_with("#[") {
                    docs.clear();
                }
            }
            false => statement.push_str(line),
        }
        if let Some(of) = statement.strip_suffix(';') {
            let path = of.trim_start_matches("pub use ");
            let (from, names) = path.rsplit_once("::").unwrap_or(("", path));
            for name in names.trim_matches(['{', '}', ' ']).split(',') {
                let name = name.split(" as ").next().unwrap_or(name).trim();
                let is_type = name.starts_with(char::is_uppercase)
                    && name.contains(|c: char| c.is_lowercase());
                if is_type {
                    let from = match from.split_once("::") {
                        Some(("akunu_engine", "arch")) => "akunu-arch".into(),
                        Some((of, _)) => of.replace('_', "-"),
                        None => from.replace('_', "-"),
                    };
                    let from = if from.starts_with("akunu-") {
                        from
                    } else {
                        "akunu".into()
                    };
                    let from = crates().join(from).join("src");
                    let (name, docs) = (name.to_string(), docs.clone());
                    shown.push(Shown { name, from, docs });
                }
            }
            statement.clear();
            docs.clear();
        }
    }
    shown
}

/// A declaration: documentation and attributes, and the lines from its name to its end.
struct Declared {
    before: String,
    kind: &'static str,
    body: Vec<String>,
}

/// The declaration of a type in a file.
fn declared(name: &str, text: &str) -> Option<Declared> {
    let kinds = ["struct", "enum", "trait", "type"];
    let begins = kinds.map(|kind| (kind, format!("pub {kind} {name}")));
    if !begins.iter().any(|(_, begin)| text.contains(begin)) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let kind_of = |line: &&str| {
        let is_named = |begin: &str| {
            let rest = line.trim_start().strip_prefix(begin);
            rest.is_some_and(|rest| rest.starts_with(|c: char| !c.is_alphanumeric() && c != '_'))
        };
        begins
            .iter()
            .find(|(_, begin)| is_named(begin))
            .map(|(kind, _)| *kind)
    };
    let mut numbered = lines.iter().enumerate();
    let (begin, kind) = numbered.find_map(|(n, line)| Some((n, kind_of(line)?)))?;
    let is_before = |line: &&&str| !matches!(line.trim(), "" | "}") && !line.ends_with(';');
    let before: Vec<&str> = lines[..begin]
        .iter()
        .rev()
        .take_while(is_before)
        .copied()
        .collect();
    let indent = lines[begin].len() - lines[begin].trim_start().len();
    let is_within =
        |line: &&&str| line.len() - line.trim_start().len() > indent || line.trim() != "}";
    let body = lines[begin..].iter().take_while(is_within);
    let length = if lines[begin].ends_with('{') {
        usize::MAX
    } else {
        1
    };
    Some(Declared {
        before: before.join("\n"),
        kind,
        body: body.take(length).map(|line| (*line).into()).collect(),
    })
}

/// The text of every file below a folder.
fn texts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |entry: fs::DirEntry| match entry.path() {
        path if path.is_dir() => texts(&path),
        path => vec![read(&path)],
    };
    entries.flat_map(text).collect()
}

fn all() -> Vec<(Shown, Declared)> {
    let sources: Vec<(PathBuf, Vec<String>)> = CRATES
        .map(|name| crates().join(name).join("src"))
        .into_iter()
        .map(|folder| (folder.clone(), texts(&folder)))
        .collect();
    let find = |shown: Shown| {
        let own = sources.iter().filter(|(folder, _)| *folder == shown.from);
        let mut texts = own.chain(&sources).flat_map(|(_, texts)| texts);
        let declared = texts.find_map(|text| declared(&shown.name, text));
        let declared = declared.unwrap_or_else(|| panic!("{} is declared nowhere", shown.name));
        (shown, declared)
    };
    shown().into_iter().map(find).collect()
}

impl Declared {
    /// Whether a further field or variant breaks no program of users.
    fn can_grow(&self) -> bool {
        let fields = self.body.iter().skip(1).map(|line| line.trim());
        let fields: Vec<&str> = fields
            .filter(|line| !line.starts_with(['/', '#']))
            .collect();
        let is_private = fields.iter().any(|line| !line.starts_with("pub "));
        let is_private_tuple = fields.is_empty() && !self.body[0].contains("(pub ");
        let has_room = fields.iter().any(|line| line.starts_with("pub _more:"));
        match self.kind {
            "struct" if is_private || is_private_tuple || has_room => true,
            "struct" | "enum" => self.before.contains("#[non_exhaustive]"),
            _ => true,
        }
    }
}

/// Breaks when a type that `akunu` shows has no example, where it is declared or where it is shown.
#[test]
fn every_type_has_an_example() {
    let all = all();
    assert!(all.len() > 70, "{}", all.len());
    let without = all.iter().filter(|(shown, declared)| {
        !shown.docs.contains("```") && !declared.before.contains("```")
    });
    let without: Vec<&str> = without.map(|(shown, _)| shown.name.as_str()).collect();
    assert!(without.is_empty(), "no example: {without:?}");
}

/// Breaks when a further field or variant would break the programs of users: a struct whose fields are all public needs
/// `#[non_exhaustive]`, or a hidden field for `..Default::default()`.
#[test]
fn every_type_can_grow() {
    let is_whole = |shown: &Shown| WHOLE.contains(&shown.name.as_str());
    let all = all();
    let found = all
        .iter()
        .filter(|(shown, declared)| !declared.can_grow() && !is_whole(shown));
    let found: Vec<&str> = found.map(|(shown, _)| shown.name.as_str()).collect();
    assert!(found.is_empty(), "cannot grow: {found:?}");
}

/// Breaks when the scanner takes a type for one that can grow, or for another one.
#[test]
fn types_that_cannot_grow_are_found() {
    let text = "/// Docs.\npub struct AB {\n    pub c: u8,\n    d: u8,\n}\n\n#[non_exhaustive]\npub enum E {\n    F,\n}\n\n\
                /// Docs.\n#[derive(Clone)]\npub struct A {\n    /// Docs.\n    pub c: u8,\n}\n\npub enum G {\n    F,\n}\n";
    for (name, can_grow) in [("AB", true), ("E", true), ("A", false), ("G", false)] {
        assert_eq!(declared(name, text).unwrap().can_grow(), can_grow, "{name}");
    }
    assert!(declared("F", text).is_none());
}
