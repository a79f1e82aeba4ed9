//! Folders of `fixtures/make_folder_fixtures.py`.

use std::path::{Path, PathBuf};

use super::files::tokenizer;

/// Their names.
pub const FOLDERS: [&str; 17] = [
    "gptq",
    "gptq-sorted",
    "gptq-3",
    "gptq-v2",
    "awq",
    "fp8",
    "fp8-tensor",
    "compressed-4",
    "compressed-8",
    "compressed-int",
    "compressed-float",
    "compressed-nvfp4",
    "compressed-mxfp4",
    "modelopt",
    "nf4",
    "nf4-nested",
    "bnb-8",
];

/// The folder of this name.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/folders")
        .join(name)
}

/// A copy of the folder with a vocabulary.
pub fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(fixture(name).join(file), folder.path().join(file)).expect("a fixture");
    }
    let text = tokenizer().to_string();
    std::fs::write(folder.path().join("tokenizer.json"), text).expect("written");
    folder
}
