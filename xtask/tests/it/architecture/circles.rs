//! No circles between the files of a crate: a file can be read after those that it imports from.
//!
//! A file points at the one that an item it imports is written in. Modules that only hand an item on (`mod x; pub use x::…`) are
//! looked through, so that a module and its own children are no circle unless it uses one of their items itself and they use one
//! of its own; tests, and the cases of kernels, which only tests compile, may import what they like. Files that can all be reached from each other are a *knot*.

use super::rust_text::code_only;
use super::tree::{TextFile, text_files};
use std::collections::{BTreeMap, BTreeSet};

/// The crates that still have circles, and the files of their largest knot: exactly as many as there are, so that the figures can
/// only shrink. A crate that is not named has none.
const UNFINISHED: [(&str, usize); 6] = [
    ("crates/akunu-cli/src/", 18),
    ("crates/akunu-cuda/src/", 3),
    ("crates/akunu-gguf/src/", 6),
    ("crates/akunu-sim/src/", 5),
    ("crates/akunu-tokenizer/src/", 4),
    ("crates/akunu/src/", 3),
];

/// A module by its path in the crate; the root is empty.
type Module = Vec<String>;

/// What a file says of others.
#[derive(Default)]
struct Source {
    /// What it imports or names in full, as paths from the crate's root.
    imports: Vec<Module>,
    /// The names that it hands on, and where they come from.
    handed_on: BTreeMap<String, Module>,
}

/// The sources of a crate, by their modules.
fn read(files: &[TextFile], folder: &str) -> BTreeMap<Module, Source> {
    let mut texts = BTreeMap::new();
    for file in files {
        let Some(name) = file.path.strip_prefix(folder) else {
            continue;
        };
        let is_of_tests = |name: &str| name.ends_with("/tests") || name.ends_with("/cases");
        let Some(name) = name.strip_suffix(".rs").filter(|name| !is_of_tests(name)) else {
            continue;
        };
        let module = if name == "lib" || name == "main" {
            Module::new()
        } else {
            name.split('/').map(String::from).collect()
        };
        texts.insert(module, without_tests(&code_only(&file.text)).to_string());
    }
    let modules: BTreeSet<Module> = texts.keys().cloned().collect();
    let source = |(module, text): (Module, String)| {
        let source = Source::of(&module, &text, &modules);
        (module, source)
    };
    texts.into_iter().map(source).collect()
}

/// The code before the tests, which are the last in a file.
fn without_tests(code: &str) -> &str {
    const MARK: &str = "#[cfg(test)]\n";
    let begins = |at: usize| {
        let line = code[at + MARK.len()..].lines().next().unwrap_or_default();
        line.contains("mod ") && line.contains('{')
    };
    let mut marks = code.match_indices(MARK).map(|(at, _)| at);
    let end = marks.find(|&at| begins(at)).unwrap_or(code.len());
    &code[..end]
}

impl Source {
    fn of(module: &Module, text: &str, modules: &BTreeSet<Module>) -> Source {
        let mut source = Source::default();
        let mut code = String::new();
        for statement in text.split(';') {
            let Some((before, tree)) = import(statement) else {
                code.push_str(statement);
                continue;
            };
            code.push_str(before);
            let is_public = before.rsplit('\n').next();
            let is_public = is_public.is_some_and(|line| line.trim_start().starts_with("pub"));
            for path in leaves(tree) {
                let Some(path) = from_root(module, &path, modules) else {
                    continue;
                };
                if let Some(name) = path.last() {
                    source.handed_on.insert(name.clone(), path.clone());
                }
                if !is_public {
                    source.imports.push(path);
                }
            }
        }
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in code.split(|c| !is_path(c)) {
            if path.contains("::") {
                source.imports.extend(from_root(module, path, modules));
            }
        }
        source
    }
}

/// What stands before an import, and what is imported.
fn import(statement: &str) -> Option<(&str, &str)> {
    let (before, tree) = statement.rsplit_once("use ")?;
    let is_word = before.is_empty() || before.ends_with([' ', '\n']);
    is_word.then_some((before, tree))
}

/// The paths of a tree of imports: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, inside)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or(tree).to_string()];
    };
    let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
    let (mut depth, mut branches) = (0, vec![String::new()]);
    for c in inside.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            branches.push(String::new());
        } else if let Some(branch) = branches.last_mut() {
            branch.push(c);
        }
    }
    let branches = branches.iter().filter(|branch| !branch.trim().is_empty());
    branches
        .flat_map(|branch| leaves(&format!("{start}{}", branch.trim())))
        .collect()
}

/// A path of this crate from its root; `None` for other crates.
fn from_root(module: &Module, path: &str, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut at = module.clone();
    match parts.peek().copied()? {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            at.pop();
        }
        // A module below this one, named without `self`.
        child => {
            let mut below = module.clone();
            below.push(child.to_string());
            if !modules.contains(&below) {
                return None;
            }
            at = below;
        }
    }
    parts.next();
    for part in parts {
        if part == "super" {
            at.pop();
        } else {
            at.push(part.to_string());
        }
    }
    Some(at)
}

/// The file that an item is written in.
fn home(path: &Module, sources: &BTreeMap<Module, Source>, depth: usize) -> Option<Module> {
    let n = (0..=path.len())
        .rev()
        .find(|&n| sources.contains_key(&path[..n]))?;
    let module = path[..n].to_vec();
    let handed = path
        .get(n)
        .and_then(|name| sources[&module].handed_on.get(name));
    match handed {
        Some(from) if depth < 8 && from[..] != path[..=n] => {
            let longer = [from, &path[n + 1..]].concat();
            home(&longer, sources, depth + 1)
        }
        _ => Some(module),
    }
}

/// The files that each file points at.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

fn arrows(sources: &BTreeMap<Module, Source>) -> Arrows {
    let homes = |(module, source): (&Module, &Source)| {
        let homes = source.imports.iter();
        let homes = homes.filter_map(|path| home(path, sources, 0));
        (
            module.clone(),
            homes.filter(|home| home != module).collect(),
        )
    };
    sources.iter().map(homes).collect()
}

/// One way round for each file that is on a circle.
fn circles(arrows: &Arrows) -> Vec<String> {
    let ways = arrows.keys().filter_map(|start| way_round(start, arrows));
    let names = ways.map(|way| way.iter().map(|m| m.join("::")).collect::<Vec<_>>());
    names.map(|names| names.join(" -> ")).collect()
}

/// A shortest way from a file back to itself.
fn way_round(start: &Module, arrows: &Arrows) -> Option<Vec<Module>> {
    let mut ways = vec![vec![start.clone()]];
    let mut seen = BTreeSet::new();
    let mut at = 0;
    while at < ways.len() {
        let way = ways[at].clone();
        at += 1;
        for next in &arrows[&way[way.len() - 1]] {
            let longer = [&way[..], std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push(longer);
            }
        }
    }
    None
}

/// The files that can be reached from this one.
fn reached<'a>(start: &Module, arrows: &'a Arrows) -> BTreeSet<&'a Module> {
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut open: Vec<&Module> = arrows[start].iter().collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(&arrows[module]);
        }
    }
    seen
}

/// How many files the largest knot has; 0 without circles.
fn largest_knot(arrows: &Arrows) -> usize {
    let from: BTreeMap<&Module, BTreeSet<&Module>> = arrows
        .keys()
        .map(|module| (module, reached(module, arrows)))
        .collect();
    let knot = |module: &Module| {
        from[module]
            .iter()
            .filter(|to| from[**to].contains(module))
            .count()
    };
    arrows.keys().map(knot).max().unwrap_or(0)
}

/// The folders of all crates' sources.
fn crates(files: &[TextFile]) -> BTreeSet<&str> {
    let roots = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("lib.rs");
        folder.or_else(|| file.path.strip_suffix("main.rs"))
    });
    roots.filter(|folder| folder.ends_with("/src/")).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let files = text_files();
    let crates = crates(&files);
    assert!(crates.len() > 15, "{crates:?}");
    let mut found = Vec::new();
    for folder in crates {
        let arrows = arrows(&read(&files, folder));
        let known = UNFINISHED.iter().find(|(name, _)| *name == folder);
        let known = known.map_or(0, |(_, n_files)| *n_files);
        let largest = largest_knot(&arrows);
        if largest != known {
            let circles = circles(&arrows).join("\n");
            found.push(format!(
                "{folder}: the largest knot has {largest} files, and {known} are known\n{circles}"
            ));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn planted_circles_are_found() {
    let planted = |texts: &[(&str, &str)]| {
        let files: Vec<TextFile> = texts
            .iter()
            .map(|(name, text)| TextFile {
                path: format!("c/src/{name}.rs"),
                text: text.to_string(),
            })
            .collect();
        arrows(&read(&files, "c/src/"))
    };
    let check = |texts: &[(&str, &str)]| circles(&planted(texts));
    let both = [("a", "use crate::b::{B, C};"), ("b", "use super::a::A;")];
    assert_eq!(check(&both), ["a -> b -> a", "b -> a -> b"]);
    let two = [
        ("a", "use crate::b::B;"),
        ("b", "use crate::a::A; use crate::c::C;"),
        ("c", "use crate::d::D;"),
        ("d", "use crate::e::E;"),
        ("e", "use crate::c::C;"),
        ("f", "use crate::a::A;"),
    ];
    assert_eq!(largest_knot(&planted(&two)), 3, "c, d and e");
    assert_eq!(largest_knot(&planted(&two[2..4])), 0);
    let through_a_module = [
        ("lib", "mod a; mod m; pub use m::T;"),
        ("a", "fn f() -> crate::T {}"),
        ("m", "mod t;\npub(crate) use self::t::T;"),
        ("m/t", "use crate::a::f;"),
    ];
    assert_eq!(check(&through_a_module).len(), 2);
    let below = [("m", "mod t;\nfn f() { t::g() }"), ("m/t", "use super::f;")];
    assert_eq!(check(&below).len(), 2, "m names t without importing it");
    let in_tests = [
        ("a", "use crate::b::B;"),
        (
            "b",
            "struct B;\n#[cfg(test)]\npub mod tests { use crate::a::A; }",
        ),
    ];
    assert_eq!(check(&in_tests), Vec::<String>::new());
    let handed_on = [("m", "mod t;\npub use t::T;"), ("m/t", "use super::U;")];
    assert_eq!(
        check(&handed_on),
        Vec::<String>::new(),
        "m needs nothing of t"
    );
}
