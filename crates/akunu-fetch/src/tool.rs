//! Running a program that downloads, while somebody watches how much has arrived.

use crate::error::FetchError;
use crate::watch::Watch;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

/// How a tool ended and what it said on stderr.
pub struct Ran {
    pub status: ExitStatus,
    pub said: String,
}

impl Ran {
    /// What it said in one line: the last one that tells of an error, or the last one.
    pub fn reason(&self) -> String {
        reason(&self.said)
    }
}

/// The last line that tells of an error, or the last one.
pub fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = |line: &&str| line.to_ascii_lowercase().contains("error");
    let line = lines().rfind(telling).or_else(|| lines().next_back());
    line.unwrap_or("it gave no reason").to_string()
}

/// Runs a tool until it ends, reporting the size of what it writes to: a file, or a folder. Its
/// temporary files go into a folder beside, so that a download counts from the first byte and leaves
/// nothing behind.
pub fn run(mut command: Command, writes: &Path, watch: &dyn Watch) -> Result<Ran, FetchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let scratch = tempfile::tempdir_in(writes.parent().unwrap_or(writes))
        .map_err(|source| FetchError::io(writes, source))?;
    let log_path = scratch.path().join("stderr");
    let log = File::create(&log_path).map_err(|source| FetchError::io(&log_path, source))?;
    let mut child = command
        .env("TMPDIR", scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|_| FetchError::NoTool { program })?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => watch.at(size_of(writes).max(size_of(scratch.path()))),
            Err(source) => return Err(FetchError::io(writes, source)),
        }
        if watch.is_cancelled() {
            // It may have ended by itself just now; either way it is to be gone.
            let _ = child.kill();
            let _ = child.wait();
            return Err(FetchError::Cancelled);
        }
        std::thread::sleep(POLL);
    };
    let said = std::fs::read(&log_path).unwrap_or_default();
    Ok(Ran {
        status,
        said: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// Bytes of a file or below a folder. Files come and go while a tool works; what cannot be read counts
/// nothing.
fn size_of(path: &Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| size_of(&entry.path())).sum()
        }
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_line_is_found() {
        assert_eq!(
            reason("WARNING: x\nERROR: no space\nnote\n"),
            "ERROR: no space"
        );
        assert_eq!(reason("one\ntwo\n\n"), "two");
        assert_eq!(reason(""), "it gave no reason");
    }

    /// Cancels at the first question.
    struct Impatient;

    impl Watch for Impatient {
        fn begin(&self, _what: &str, _bytes: u64) {}
        fn at(&self, _bytes: u64) {}
        fn end(&self) {}
        fn is_cancelled(&self) -> bool {
            true
        }
    }

    /// Fails if a stopped tool goes on, or if its temporary folder stays.
    #[test]
    fn a_cancelled_tool_is_ended() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let writes = folder.path().join("file");
        let mut command = Command::new("sleep");
        command.arg("600");
        let ended = run(command, &writes, &Impatient);
        assert!(matches!(ended, Err(FetchError::Cancelled)));
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0);
    }
}
