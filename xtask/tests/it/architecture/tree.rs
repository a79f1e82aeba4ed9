//! The files of the workspace.

use std::path::{Path, PathBuf};

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
    collect(&root(), &mut files);
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

fn collect(folder: &Path, files: &mut Vec<TextFile>) {
    for entry in std::fs::read_dir(folder)
        .expect("a readable folder")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name();
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        // A crate has links to what it takes along from elsewhere in the tree.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let relative = path.strip_prefix(root()).expect("below the root");
            files.push(TextFile {
                path: relative.to_string_lossy().replace('\\', "/"),
                text,
            });
        }
    }
}
