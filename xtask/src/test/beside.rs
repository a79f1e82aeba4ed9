//! A step that runs beside the others, as a process of its own.
//!
//! cargo leaves cores idle: a chain of crates compiles one after another, a test program waits for its last
//! test. A step that waits for the network, or has a target folder of its own, can use them. Its output goes to a file and is shown when its
//! turn comes, so that two steps never mix on the terminal.

use akunu_repo::{Failure, LACKING};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A command of this program that is under way.
pub struct Beside {
    child: Child,
    output: File,
}

impl Beside {
    /// Starts `cargo xtask` with these arguments.
    pub fn start(arguments: &[&str]) -> Result<Beside, Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::io(Path::new("xtask"), e))?;
        Beside::spawn(Command::new(program).args(arguments))
    }

    fn spawn(command: &mut Command) -> Result<Beside, Failure> {
        let io = |error| Failure::io(Path::new("temporary file"), error);
        let output = tempfile::tempfile().map_err(io)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(io)?)
            .stderr(output.try_clone().map_err(io)?)
            .spawn()
            .map_err(|error| Failure::io(Path::new(command.get_program()), error))?;
        Ok(Beside { child, output })
    }

    /// Waits for its end, shows what it wrote, and says how it ended.
    pub fn finish(mut self) -> Result<(), Failure> {
        let io = |error| Failure::io(Path::new("temporary file"), error);
        let status = self.child.wait().map_err(io)?;
        let mut said = Vec::new();
        self.output.rewind().map_err(io)?;
        self.output.read_to_end(&mut said).map_err(io)?;
        let said = String::from_utf8_lossy(&said);
        print!("{said}");
        ended(status, &said)
    }
}

/// What the end of such a process means: its last line is its error.
fn ended(status: ExitStatus, said: &str) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let last = said.lines().next_back().unwrap_or_default();
    let error = last.strip_prefix("error: ").unwrap_or(last).to_owned();
    if status.code() != Some(i32::from(LACKING)) {
        return Err(Failure::Found(error));
    }
    let (why, fix) = error.split_once("; ").unwrap_or((&error, ""));
    Err(Failure::Unavailable {
        why: why.to_owned(),
        fix: fix.to_owned(),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn finish(script: &str) -> Result<(), Failure> {
        let started = Beside::spawn(Command::new("sh").args(["-c", script]));
        started.expect("a shell").finish()
    }

    /// Breaks when a failure of the process is lost, or is taken for a lack of the machine.
    #[test]
    fn the_exit_code_tells_a_failure_from_a_lack() {
        assert!(finish("echo fine").is_ok());
        let failed = finish("echo 'error: a bug' >&2; exit 1");
        assert!(
            matches!(&failed, Err(Failure::Found(words)) if words == "a bug"),
            "{failed:?}"
        );
        let lacking = finish("echo 'error: rustc is wanted; install it; or not' >&2; exit 3");
        let Err(Failure::Unavailable { why, fix }) = lacking else {
            panic!("{lacking:?}");
        };
        assert_eq!((&*why, &*fix), ("rustc is wanted", "install it; or not"));
    }
}
