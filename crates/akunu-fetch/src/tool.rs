//! Running a program that downloads, and reporting how much has arrived.
//!
//! The program must not outlive us, however we end. It runs in a process group of its own, together with
//! a shell that reads from a pipe whose other end we hold: when the pipe closes, because we closed it or
//! because we were killed, the shell ends the whole group.

use crate::error::FetchError;
use crate::space;
use crate::watch::Watch;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);
/// What a shell exits with when there is no such program.
const NOT_FOUND: i32 = 127;
/// Bytes of complaint that are kept; the rest is read and forgotten.
const MAX_SAID: u64 = 1 << 20;

/// Runs its arguments; ends its process group when standard input closes.
#[cfg(unix)]
const GUARD: &str = "exec 3<&0; { read -r _ <&3; kill -9 0; } & \"$@\" 3<&- </dev/null";

/// How a tool ended and what it said on stderr.
pub struct Ran {
    pub status: ExitStatus,
    pub said: String,
}

impl Ran {
    /// What it printed, in one line: the last line about an error, or the last line.
    pub fn reason(&self) -> String {
        reason(&self.said)
    }

    /// Whether it ended because the disk is full.
    pub fn met_full_disk(&self) -> bool {
        !self.status.success() && space::is_told(&self.said)
    }
}

/// The last line about an error, or the last line.
pub fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = |line: &&str| line.to_ascii_lowercase().contains("error");
    let line = lines().rfind(telling).or_else(|| lines().next_back());
    line.unwrap_or("it gave no reason").to_string()
}

/// Runs a tool until it ends, reporting the size of what it writes to: a file, or a folder. Its
/// temporary files go into a folder beside, so that a download counts from the first byte and leaves
/// nothing behind.
pub fn run(command: Command, writes: &Path, watch: &dyn Watch) -> Result<Ran, FetchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let scratch = Scratch::new(writes)?;
    let mut child = guarded(&command)
        .env("TMPDIR", &scratch.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| FetchError::NoTool {
            program: program.clone(),
        })?;
    // Not in a file: a full disk would swallow the complaint about it.
    let said = child.stderr.take().map(listen);
    let arrived = || size_of(writes).max(size_of(&scratch.0));
    let ended = wait(&mut child, watch, arrived);
    end(&mut child);
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    let status = ended?.map_err(|source| FetchError::io(writes, source))?;
    if status.code() == Some(NOT_FOUND) {
        return Err(FetchError::NoTool { program });
    }
    Ok(Ran { status, said })
}

/// The folder for the temporary files of a tool that writes to this path. Its name is always the same,
/// so that the next run removes what a killed one left.
pub fn scratch_of(writes: &Path) -> PathBuf {
    let name = writes.file_name().unwrap_or_default().to_string_lossy();
    writes.with_file_name(format!(".{name}.scratch"))
}

/// A scratch folder, empty at first and gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(writes: &Path) -> Result<Scratch, FetchError> {
        let path = scratch_of(writes);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|source| FetchError::io(&path, source))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next run removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same command below a guard that ends it when we are gone.
#[cfg(unix)]
fn guarded(command: &Command) -> Command {
    use std::os::unix::process::CommandExt;
    let mut guard = Command::new("/bin/sh");
    guard.args(["-c", GUARD, "akunu-fetch"]);
    guard.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        guard.current_dir(folder);
    }
    guard.process_group(0);
    guard
}

#[cfg(not(unix))]
fn guarded(command: &Command) -> Command {
    let mut same = Command::new(command.get_program());
    same.args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        same.current_dir(folder);
    }
    same
}

/// Waits for the end, which may be that the caller gives up.
fn wait(
    child: &mut Child,
    watch: &dyn Watch,
    arrived: impl Fn() -> u64,
) -> Result<std::io::Result<ExitStatus>, FetchError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Ok(status)),
            Ok(None) => watch.at(arrived()),
            Err(source) => return Ok(Err(source)),
        }
        if watch.is_cancelled() {
            return Err(FetchError::Cancelled);
        }
        std::thread::sleep(POLL);
    }
}

/// Closes the pipe, upon which the guard ends what is left of the group, and waits for that.
fn end(child: &mut Child) {
    drop(child.stdin.take());
    if cfg!(not(unix)) {
        // It may have ended by itself just now; either way it is to be gone.
        let _ = child.kill();
    }
    let _ = child.wait();
}

/// Reads to the end, so that the tool never waits for us.
fn listen(mut stderr: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.by_ref().take(MAX_SAID).read_to_end(&mut said);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// Bytes of a file or below a folder. Files come and go while a tool works; what cannot be read counts
/// nothing.
pub fn size_of(path: &Path) -> u64 {
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
    use std::time::Instant;

    #[test]
    fn the_telling_line_is_found() {
        assert_eq!(
            reason("WARNING: x\nERROR: no space\nnote\n"),
            "ERROR: no space"
        );
        assert_eq!(reason("one\ntwo\n\n"), "two");
        assert_eq!(reason(""), "it gave no reason");
    }

    /// Cancels when a file is there.
    struct Impatient<'a>(&'a Path);

    impl Watch for Impatient<'_> {
        fn begin(&self, _what: &str, _bytes: u64) {}
        fn at(&self, _bytes: u64) {}
        fn end(&self) {}
        fn is_cancelled(&self) -> bool {
            self.0.exists()
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Fails if a stopped tool goes on, or one that it started, or if its temporary folder stays. Both
    /// hold the pipe of stderr open: were one of them not ended, this would take ten minutes.
    #[cfg(unix)]
    #[test]
    fn a_cancelled_tool_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let started = folder.path().join("started");
        let script = format!("sleep 600 & echo > '{}'; sleep 600", started.display());
        let writes = folder.path().join("file");
        let begin = Instant::now();
        let ended = run(shell(&script), &writes, &Impatient(&started));
        assert!(matches!(ended, Err(FetchError::Cancelled)));
        assert!(begin.elapsed() < Duration::from_secs(300), "not by itself");
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 1, "what it wrote, but no temporary folder");
    }

    /// Fails if the guard changes the exit status, or if the last words are lost.
    #[test]
    fn status_and_words_are_the_tools_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let writes = folder.path().join("file");
        let never = folder.path().join("never");
        let run = |command| run(command, &writes, &Impatient(&never));
        let ran = run(shell("echo 'ERROR: enospc' >&2; exit 5")).expect("it ran");
        assert_eq!((ran.status.code(), ran.met_full_disk()), (Some(5), true));
        assert_eq!(ran.reason(), "ERROR: enospc");
        let missing = run(Command::new("akunu-no-such-program"));
        assert!(matches!(missing, Err(FetchError::NoTool { .. })));
    }
}
