//! The files of the workspace.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is not part of the project: what `.gitignore` names, and git's own folder (a file in a
/// worktree).
const SKIPPED: [&str; 5] = [".git", "target", "corpus", "artifacts", "__pycache__"];

/// One text file.
pub struct TextFile {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The workspace's root.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("xtask lies in the workspace")
        .to_path_buf()
}

/// Every text file of the workspace.
pub fn text_files() -> Vec<TextFile> {
    let mut files = Vec::new();
    collect(&root(), &ignored(), &mut files);
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "the walk finds the root"
    );
    assert!(
        files.iter().any(|file| file.path == "xtask/src/main.rs"),
        "the walk goes deep"
    );
    files
}

/// What else a developer lets git ignore in this folder; nothing where there is no git.
fn ignored() -> HashSet<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--others", "--ignored"])
        .args(["--exclude-standard", "--directory"])
        .current_dir(root())
        .output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let names = String::from_utf8_lossy(&listed).into_owned();
    names.split('\0').map(|name| root().join(name)).collect()
}

fn collect(folder: &Path, ignored: &HashSet<PathBuf>, files: &mut Vec<TextFile>) {
    for entry in std::fs::read_dir(folder)
        .expect("a readable folder")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name();
        if SKIPPED.iter().any(|skipped| name == *skipped) || ignored.contains(&path) {
            continue;
        }
        // A crate has links to what it takes along from elsewhere in the tree.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, ignored, files);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let relative = path.strip_prefix(root()).expect("below the root");
            files.push(TextFile {
                path: relative.to_string_lossy().replace('\\', "/"),
                text,
            });
        }
    }
}
