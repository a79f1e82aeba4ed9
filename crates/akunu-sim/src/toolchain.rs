//! Finds clang, and the shim headers that it compiles against.

use crate::error::SimError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names clang goes by, best first. Debian's has the version in its name.
const NAMES: [&str; 5] = [
    "clang++-19",
    "clang++-20",
    "clang++-21",
    "clang++-22",
    "clang++",
];
/// The oldest that has `__bf16` arithmetic and vectors of it on every target we use.
const OLDEST: u32 = 19;

/// A clang that can compile kernels.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The program.
    pub program: String,
    /// Its first line of `--version`, part of every cache key.
    pub version: String,
    shim: PathBuf,
    shim_hash: String,
}

impl Toolchain {
    /// Looks for a clang that is new enough.
    ///
    /// # Errors
    /// When there is none, or the shim headers cannot be read.
    pub fn find() -> Result<Toolchain, SimError> {
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        for program in NAMES {
            let Some(version) = version_of(program) else {
                continue;
            };
            if major(&version).is_some_and(|major| major >= OLDEST) {
                let shim_hash = hash_folder(&shim)?;
                return Ok(Toolchain {
                    program: program.to_owned(),
                    version,
                    shim,
                    shim_hash,
                });
            }
        }
        Err(SimError::NoCompiler {
            tried: NAMES.join(", "),
        })
    }

    /// The include flags for one flavour of the shim, `sim` or `ptx`.
    pub(crate) fn include_flags(&self, flavour: &str) -> Vec<String> {
        vec![
            "-nostdinc".to_owned(),
            format!("-I{}", self.shim.display()),
            format!("-I{}", self.shim.join(flavour).display()),
        ]
    }

    /// A name for what these inputs compile to.
    pub(crate) fn key(&self, text: &str, flags: &[String]) -> String {
        let mut hash = Sha256::new();
        for part in [&self.version, &self.shim_hash, &flags.join("\n"), text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hex(&hash.finalize()[..12])
    }
}

fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// `Debian clang version 19.1.7 (3)` → 19.
fn major(version: &str) -> Option<u32> {
    let rest = version.split("clang version ").nth(1)?;
    rest.split('.').next()?.parse().ok()
}

fn hash_folder(folder: &Path) -> Result<String, SimError> {
    let mut files = Vec::new();
    list_files(folder, &mut files).map_err(|source| SimError::Io {
        path: folder.to_owned(),
        source,
    })?;
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|source| SimError::Io {
            path: path.clone(),
            source,
        })?;
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Ok(hex(&hash.finalize()))
}

/// Every file under `folder`.
pub(crate) fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_clangs_own_words() {
        assert_eq!(major("Debian clang version 19.1.7 (3+b1)"), Some(19));
        assert_eq!(
            major("Apple clang version 17.0.0 (clang-1700.0.13.3)"),
            Some(17)
        );
        assert_eq!(major("gcc (Debian 14.2.0)"), None);
    }
}
