//! Finds clang, and the shim headers that it compiles against.

use crate::error::SimError;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names clang goes by, best first. Debian's has the version in its name.
const NAMES: [&str; 6] = [
    "clang++-19",
    "clang++-20",
    "clang++-21",
    "clang++-22",
    "clang++-23",
    "clang++",
];
/// The oldest that has `__bf16` arithmetic and vectors of it on every target we use.
const OLDEST: u32 = 19;
/// The first of Apple's clangs that is made from LLVM 19. Apple counts by Xcode, not by LLVM.
const APPLE_OF_LLVM_19: u32 = 17;

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
        let there = NAMES
            .into_iter()
            .filter_map(|program| Some((program, version_of(program)?)));
        let (program, version) = choose(there)?;
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        let shim_hash = hash_folder(&shim)?;
        Ok(Toolchain {
            program: program.to_owned(),
            version,
            shim,
            shim_hash,
        })
    }

    /// Whether this clang was built with the code generator for NVIDIA GPUs: Debian's was, Apple's
    /// was not.
    #[must_use]
    pub fn makes_ptx(&self) -> bool {
        let targets = Command::new(&self.program).arg("--print-targets").output();
        targets.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("nvptx64"))
    }

    /// The include flags for one flavour of the shim, `sim` or `ptx`.
    pub(crate) fn include_flags(&self, flavour: &str) -> Vec<String> {
        vec![
            "-nostdinc".to_owned(),
            // Headers of the system, which may be newer C++ than kernels.
            format!("-isystem{}", self.shim.display()),
            format!("-isystem{}", self.shim.join(flavour).display()),
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

/// The first clang that is new enough, of the names and versions that are there.
fn choose<'a>(
    there: impl Iterator<Item = (&'a str, String)>,
) -> Result<(&'a str, String), SimError> {
    let mut too_old = Vec::new();
    for (program, version) in there {
        if llvm_major(&version).is_some_and(|major| major >= OLDEST) {
            return Ok((program, version));
        }
        too_old.push(format!("{program} is {version}"));
    }
    let found = if too_old.is_empty() {
        format!("none of {} is there", NAMES.join(", "))
    } else {
        too_old.join(", ")
    };
    Err(SimError::NoCompiler { found })
}

/// Which LLVM a clang is made from: `Debian clang version 19.1.7 (3)` → 19, and Apple's 17 too.
fn llvm_major(version: &str) -> Option<u32> {
    let rest = version.split("clang version ").nth(1)?;
    let major: u32 = rest.split('.').next()?.parse().ok()?;
    let is_apples = version.starts_with("Apple") && major >= APPLE_OF_LLVM_19;
    Some(if is_apples { major.max(19) } else { major })
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
        for (said, llvm) in [
            ("Debian clang version 19.1.7 (3+b1)", Some(19)),
            ("clang version 22.1.0", Some(22)),
            ("Ubuntu clang version 14.0.0-1ubuntu1", Some(14)),
            ("Apple clang version 16.0.0 (clang-1600.0.26.6)", Some(16)),
            ("Apple clang version 17.0.0 (clang-1700.0.13.3)", Some(19)),
            ("Apple clang version 21.0.0 (clang-2100.0.1)", Some(21)),
            ("gcc (Debian 14.2.0)", None),
        ] {
            assert_eq!(llvm_major(said), llvm, "{said}");
        }
    }

    /// Breaks when an old clang of the first name hides a new one of a later name, or when the error
    /// does not say what was found.
    #[test]
    fn the_first_clang_that_is_new_enough_is_chosen() {
        let clang = |name, version: &str| (name, format!("clang version {version}"));
        let there = [clang("clang++-21", "21.1.0"), clang("clang++", "14.0.6")];
        let (program, _) = choose(there.into_iter()).unwrap();
        assert_eq!(program, "clang++-21");
        let (program, _) = choose([clang("clang++", "19.1.0")].into_iter()).unwrap();
        assert_eq!(program, "clang++");
        let old = choose([clang("clang++", "14.0.6")].into_iter()).unwrap_err();
        assert!(
            old.to_string().contains("clang++ is clang version 14.0.6"),
            "{old}"
        );
        let none = choose(std::iter::empty()).unwrap_err().to_string();
        assert!(
            none.contains("clang++-19") && none.contains("19 or newer"),
            "{none}"
        );
    }
}
