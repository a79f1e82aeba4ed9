//! The kernels inside the program: flat sources, and the Metal library compiled from them.
//!
//! A Mac without Apple's compiler builds and runs Akunu: Metal compiles these texts at the first run.
//! Where `cargo xtask shaders` has compiled them before the build, the library is embedded as well.

/// The flat text of each `.metal` file, by its name below `kernels/`, sorted by name.
pub const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// A name for these sources, see [`crate::flatten::sources_hash`].
pub const HASH: u64 = include!(concat!(env!("OUT_DIR"), "/hash.rs"));

/// The Metal library of these sources, where one was compiled before the build for macOS.
pub const METAL_LIBRARY: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// The flat text of a `.metal` file.
pub fn source(file: &str) -> Option<&'static str> {
    let at = SOURCES.binary_search_by_key(&file, |(name, _)| name).ok()?;
    Some(SOURCES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flatten::{flatten, metal_files, sources_hash};
    use crate::table::KernelId;
    use std::path::Path;

    /// Breaks when the build script does not run again after a change, or leaves a file out.
    #[test]
    fn what_is_embedded_is_what_the_folder_holds() {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
        let files = metal_files(&kernels).unwrap();
        assert_eq!(files.len(), SOURCES.len());
        for file in &files {
            let flat = flatten(&kernels, file).unwrap();
            assert_eq!(source(file), Some(&*flat.text), "{file}");
        }
        assert_eq!(HASH, sources_hash(SOURCES.iter().copied()));
        assert_eq!(source("none.metal"), None);
    }

    /// Metal has no include path for a text: only its own headers may be left.
    #[test]
    fn no_quoted_include_is_left() {
        for (file, text) in SOURCES {
            let left = text
                .lines()
                .find(|line| line.contains("#include") && line.contains('"'));
            assert_eq!(left, None, "{file}");
        }
    }

    #[test]
    fn every_kernel_has_its_source() {
        for row in KernelId::all().into_iter().map(KernelId::row) {
            let text = source(&row.source_path());
            assert!(text.is_some(), "{}: {}", row.name(), row.source_path());
        }
    }
}
