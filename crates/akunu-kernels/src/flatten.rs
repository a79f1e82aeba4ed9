//! Includes, made flat: one string a translation unit.
//!
//! The Metal compiler has no include path when it compiles from a string, so every `#include "x.h"` is
//! replaced by the file's text, each file once, with `#line` directives so that messages still name
//! the file and line a person edits. `#include <metal_stdlib>` and other angle-bracket includes stay.
//!
//! The build script of this crate uses this file too: it embeds every flat source in the program.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Why a source could not be flattened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlattenError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An `#include "…"` names a file that is neither beside the including file nor in the include folder.
    #[error(
        "{file}:{line}: no file \"{include}\" beside it, in the kernels folder or in its include folder"
    )]
    MissingInclude {
        /// The including file.
        file: String,
        /// Its line.
        line: u32,
        /// The name that was asked for.
        include: String,
    },
    /// The closing quote of an include is missing.
    #[error("{file}:{line}: the include has no closing quote")]
    BadInclude {
        /// The including file.
        file: String,
        /// Its line.
        line: u32,
    },
}

/// One flat translation unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlatSource {
    /// The file it began with, relative to the kernels folder.
    pub file: String,
    /// The text, `#line` directives included.
    pub text: String,
}

/// Flattens `file` (relative to `root`). Quoted includes are looked up beside the including file, then
/// in `root`, then in `root/include`.
///
/// # Errors
/// When a file cannot be read or an include cannot be found.
pub fn flatten(root: &Path, file: &str) -> Result<FlatSource, FlattenError> {
    let mut flattener = Flattener {
        root,
        seen: HashSet::new(),
        text: String::new(),
    };
    flattener.add(Path::new(file))?;
    Ok(FlatSource {
        file: file.to_owned(),
        text: flattener.text,
    })
}

/// The `.metal` files under `root`, relative to it, sorted.
///
/// # Errors
/// When a folder cannot be listed.
pub fn metal_files(root: &Path) -> Result<Vec<String>, FlattenError> {
    let mut names = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| FlattenError::Read {
            path: folder.clone(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_metal = path.extension().is_some_and(|ending| ending == "metal");
            match path.strip_prefix(root) {
                _ if path.is_dir() => folders.push(path),
                Ok(name) if is_metal => names.push(display_name(name)),
                _ => {}
            }
        }
    }
    names.sort();
    Ok(names)
}

/// A name for what these sources compile to: FNV-1a over the names and texts.
pub fn sources_hash<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = BASIS;
    for (file, text) in sources {
        // A zero byte ends each part, so that a moved border is another hash.
        for byte in file.bytes().chain([0]).chain(text.bytes()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

/// The name of the Metal library that is compiled from sources of this hash.
pub fn library_name(hash: u64) -> String {
    format!("akunu-{hash:016x}.metallib")
}

struct Flattener<'a> {
    root: &'a Path,
    seen: HashSet<PathBuf>,
    text: String,
}

impl Flattener<'_> {
    /// Appends `file`, a path relative to the root, unless it was appended before.
    fn add(&mut self, file: &Path) -> Result<(), FlattenError> {
        if !self.seen.insert(file.to_owned()) {
            return Ok(());
        }
        let path = self.root.join(file);
        let source =
            std::fs::read_to_string(&path).map_err(|source| FlattenError::Read { path, source })?;
        let name = display_name(file);
        self.push_line_directive(1, &name);
        for (line, text) in (1u32..).zip(source.lines()) {
            match directive(text) {
                Some(Directive::Once) => self.text.push('\n'),
                Some(Directive::Include(rest)) => {
                    let include = rest.find('"').map(|end| &rest[..end]).ok_or_else(|| {
                        FlattenError::BadInclude {
                            file: name.clone(),
                            line,
                        }
                    })?;
                    let found =
                        self.find(file, include)
                            .ok_or_else(|| FlattenError::MissingInclude {
                                file: name.clone(),
                                line,
                                include: include.to_owned(),
                            })?;
                    self.add(&found)?;
                    self.push_line_directive(line + 1, &name);
                }
                None => {
                    self.text.push_str(text);
                    self.text.push('\n');
                }
            }
        }
        Ok(())
    }

    fn find(&self, from: &Path, include: &str) -> Option<PathBuf> {
        let beside = from.parent().unwrap_or(Path::new("")).join(include);
        [
            beside,
            PathBuf::from(include),
            Path::new("include").join(include),
        ]
        .into_iter()
        .map(|path| normalise(&path))
        .find(|path| self.root.join(path).is_file())
    }

    fn push_line_directive(&mut self, line: u32, name: &str) {
        self.text.push_str(&format!("#line {line} \"{name}\"\n"));
    }
}

enum Directive<'a> {
    Once,
    /// What follows the opening quote.
    Include(&'a str),
}

fn directive(line: &str) -> Option<Directive<'_>> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    if let Some(rest) = rest.strip_prefix("include") {
        return rest.trim_start().strip_prefix('"').map(Directive::Include);
    }
    let pragma = rest.strip_prefix("pragma")?;
    (pragma.trim() == "once").then_some(Directive::Once)
}

/// `a/../b` → `b`, so that one file has one name.
fn normalise(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts
}

fn display_name(file: &Path) -> String {
    file.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn each_file_stands_once_and_lines_keep_their_names() {
        let dir = folder(&[
            (
                "f/k.metal",
                "#include <metal_stdlib>\n#include \"a.h\"\n#include \"../f/b.h\"\nint k;\n",
            ),
            (
                "include/a.h",
                "#pragma once\n#include \"../f/b.h\"\nint a;\n",
            ),
            ("f/b.h", "int b;\n"),
        ]);
        let flat = flatten(dir.path(), "f/k.metal").unwrap();
        assert_eq!(
            flat.text,
            "#line 1 \"f/k.metal\"\n#include <metal_stdlib>\n#line 1 \"include/a.h\"\n\n\
             #line 1 \"f/b.h\"\nint b;\n#line 3 \"include/a.h\"\nint a;\n#line 3 \"f/k.metal\"\n\
             #line 4 \"f/k.metal\"\nint k;\n"
        );
    }

    /// A library that was compiled from other sources must not pass for the one of these.
    #[test]
    fn the_hash_tells_sources_apart() {
        let one = sources_hash([("a", "bc"), ("d", "e")]);
        assert_eq!(one, sources_hash([("a", "bc"), ("d", "e")]));
        assert_ne!(one, sources_hash([("a", "bc"), ("d", "f")]));
        assert_ne!(one, sources_hash([("ab", "c"), ("d", "e")]));
        assert_ne!(one, sources_hash([("a", "bc"), ("de", "")]));
        // The published value of FNV-1a for no bytes.
        assert_eq!(sources_hash([]), 0xcbf2_9ce4_8422_2325);
    }

    #[test]
    fn files_are_found_in_all_folders() {
        let dir = folder(&[("b/x.metal", ""), ("b/c/y.metal", ""), ("b/z.h", "")]);
        assert_eq!(
            metal_files(dir.path()).unwrap(),
            ["b/c/y.metal", "b/x.metal"]
        );
        assert!(metal_files(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_missing_include_names_file_and_line() {
        let dir = folder(&[("k.metal", "\n#include \"gone.h\"\n")]);
        let message = flatten(dir.path(), "k.metal").unwrap_err().to_string();
        assert!(
            message.starts_with("k.metal:2: no file \"gone.h\""),
            "{message}"
        );
        let message = flatten(dir.path(), "none.metal").unwrap_err().to_string();
        assert!(message.contains("none.metal"), "{message}");
    }
}
