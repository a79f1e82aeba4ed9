//! The folders and files of the workspace.

use std::path::{Path, PathBuf};

/// The workspace's root folder.
///
/// `cargo run` and `cargo test` name the package's folder at run time; a program started by hand falls back on the
/// folder it was built from.
#[must_use]
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let is_root = |folder: &&Path| folder.join("Cargo.lock").is_file();
    let root = package.ancestors().find(is_root).unwrap_or(&package);
    root.to_path_buf()
}

/// The generated header that Rust, C++ and MSL share.
#[must_use]
pub fn shader_types() -> PathBuf {
    root().join("kernels/ShaderTypes.h")
}

/// The generated header that includes those of all formats.
pub fn all_formats() -> PathBuf {
    root().join("kernels/include/format/all.h")
}

/// The header with the grids, which is generated.
pub fn grids() -> PathBuf {
    root().join("kernels/include/format/grids.h")
}

/// The folder of downloaded assets. It does not follow `CARGO_TARGET_DIR`: tests look for it here.
#[must_use]
pub fn assets() -> PathBuf {
    root().join("target/assets")
}

#[cfg(test)]
mod tests {
    /// Fails if a package's folder is taken for the root.
    #[test]
    fn the_root_has_the_list_of_members() {
        let manifest = std::fs::read_to_string(super::root().join("Cargo.toml"));
        assert!(manifest.expect("a manifest").starts_with("[workspace]"));
    }
}
