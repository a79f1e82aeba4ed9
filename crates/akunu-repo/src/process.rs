//! Running other programs.

use std::process::{Command, Stdio};

/// Why another program did not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The program could not be started.
    #[error("{program} could not be started ({source}); is it installed and on PATH?")]
    NotStarted {
        /// Its name.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program ended with a failure.
    #[error("{program} failed ({status}){said}")]
    Failed {
        /// The program and its arguments.
        program: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// What it wrote, after a colon, when it was captured.
        said: String,
    },
}

/// Runs a program with its output visible.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn run(command: &mut Command) -> Result<(), ProcessError> {
    let status = command
        .status()
        .map_err(|source| not_started(command, source))?;
    if status.success() {
        return Ok(());
    }
    Err(ProcessError::Failed {
        program: line(command),
        status,
        said: String::new(),
    })
}

/// The same with all of its output on stderr: stdout is for the results of this command.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn run_beside(command: &mut Command) -> Result<(), ProcessError> {
    run(command.stdout(std::io::stderr()))
}

/// Runs a program and returns what it wrote on stdout; on failure, what it wrote on stderr is in the
/// error.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<String, ProcessError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| not_started(command, source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(ProcessError::Failed {
        program: line(command),
        status: output.status,
        said: format!(":\n{}", String::from_utf8_lossy(&output.stderr).trim_end()),
    })
}

/// Runs a program and returns what it wrote on stdout; what it writes on stderr is visible.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn output_with_visible_errors(command: &mut Command) -> Result<String, ProcessError> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| not_started(command, source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(ProcessError::Failed {
        program: line(command),
        status: output.status,
        said: String::new(),
    })
}

/// The cargo that started us.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Whether a program of this name can be started.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

fn not_started(command: &Command, source: std::io::Error) -> ProcessError {
    ProcessError::NotStarted {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    }
}

/// The command as one would type it, for messages.
fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
