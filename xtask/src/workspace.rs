//! Where things lie in the workspace.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The workspace's root folder.
///
/// `cargo run` names the package's folder at run time; a binary started by hand falls back on the
/// folder it was built from.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or(package.clone(), Path::to_path_buf)
}

/// The generated header that Rust, C++ and MSL share.
pub fn shader_types() -> PathBuf {
    root().join("kernels/ShaderTypes.h")
}

/// The generated header that includes those of all formats.
pub fn all_formats() -> PathBuf {
    root().join("kernels/include/format/all.h")
}

/// The files of all kernels.
pub fn metal_files() -> Result<Vec<PathBuf>, Failure> {
    let folder = root().join("kernels");
    let files = akunu_kernels::flatten::metal_files(&folder);
    let files = files.map_err(|error| Failure::Found(error.to_string()))?;
    Ok(files.iter().map(|file| folder.join(file)).collect())
}

/// The folder of downloaded assets. It does not follow `CARGO_TARGET_DIR`: tests look for it here.
pub fn assets() -> PathBuf {
    root().join("target/assets")
}
