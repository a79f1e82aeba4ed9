//! The test programs of the workspace: one for each crate, and for most one of the modules in its `tests/it`.
//!
//! `cargo test` runs them one after another, and a program whose last test is a long one leaves the other
//! cores idle. Here cargo only builds them; as many run at once as there are cores, the longest first.
//! Of a program that passes one line is shown, of one that fails everything that it wrote.

use crate::parallel;
use crate::test::summary::seconds;
use akunu_repo::{Failure, process, workspace};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What a test program needs beside Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A clang that the simulator takes.
    Simulator,
    /// A clang that also compiles to PTX.
    Ptx,
}

/// A test program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The crate's folder, where the program is to run.
    folder: PathBuf,
    /// `lib`, `bin`, or the name of the folder or file in `tests/`.
    name: String,
    executable: PathBuf,
}

/// The package whose tests all use the simulator, and the one of them that also makes PTX.
const SIMULATOR: &str = "akunu-sim";
const PTX: (&str, &str) = (SIMULATOR, "ptx");
/// Programs of other packages that use the simulator.
const WITH_SIMULATOR: [(&str, &str); 2] = [("akunu-engine", "simulator"), ("akunu-bench", "it")];
/// These run real models or every kernel, and start first: a short program fills a gap at the end, a long one
/// would make it.
const LONGEST: [(&str, &str); 5] = [
    ("akunu-engine", "parity"),
    ("akunu-engine", "it"),
    ("akunu-cli", "it"),
    ("akunu-cpu", "it"),
    ("akunu-sim", "it"),
];

impl Program {
    fn package(&self) -> &str {
        let folder = self.folder.file_name().and_then(|name| name.to_str());
        folder.unwrap_or_default()
    }

    fn is(&self, (package, name): (&str, &str)) -> bool {
        self.package() == package && self.name == name
    }

    /// Its place in the order of running; all short ones share the last.
    fn turn(&self) -> usize {
        let long = LONGEST.iter().position(|&it| self.is(it));
        long.unwrap_or(LONGEST.len())
    }

    fn needs(&self) -> Needs {
        if self.is(PTX) {
            Needs::Ptx
        } else if self.package() == SIMULATOR || WITH_SIMULATOR.iter().any(|&it| self.is(it)) {
            Needs::Simulator
        } else {
            Needs::Nothing
        }
    }
}

/// Builds all test programs, and runs those that need just this.
pub fn run(needs: Needs) -> Result<(), Failure> {
    let mut programs = build()?;
    programs.retain(|program| program.needs() == needs);
    programs.sort_by_key(Program::turn);
    if programs.is_empty() {
        return Err(Failure::Found(format!("no test program needs {needs:?}")));
    }
    let failed: Vec<String> = parallel::map(&programs, run_one)
        .into_iter()
        .flatten()
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Found(format!(
        "{} of {} test programs failed: {}",
        failed.len(),
        programs.len(),
        failed.join(", ")
    )))
}

/// Runs a program and shows what became of it; its name, when it failed.
fn run_one(program: &Program) -> Option<String> {
    let start = Instant::now();
    let ended = Command::new(&program.executable)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .output();
    let took = seconds(start.elapsed());
    let name = format!("{} {}", program.package(), program.name);
    match ended {
        Ok(ended) if ended.status.success() => {
            let said = String::from_utf8_lossy(&ended.stdout);
            println!("  {name:<32} {took:>8}  {}", result_line(&said));
            None
        }
        Ok(ended) => {
            let (said, complaints) = (&ended.stdout, &ended.stderr);
            println!(
                "  {name:<32} {took:>8}  FAILED ({})\n{}{}",
                ended.status,
                String::from_utf8_lossy(said),
                String::from_utf8_lossy(complaints)
            );
            Some(name)
        }
        Err(error) => {
            println!("  {name:<32} could not be started: {error}");
            Some(name)
        }
    }
}

/// `12 passed; 0 failed; 1 ignored` of what a test program wrote.
fn result_line(said: &str) -> String {
    let line = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("test result: ok. "));
    let counts: Vec<&str> = line.unwrap_or_default().split("; ").take(3).collect();
    counts.join(", ")
}

/// The test programs. Cargo builds them once: a second call would wait for a step that runs beside this one and has the same target
/// folder.
pub fn build() -> Result<Vec<Program>, Failure> {
    static BUILT: Mutex<Option<Vec<Program>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(programs) = &*built {
        return Ok(programs.clone());
    }
    let programs = build_now()?;
    *built = Some(programs.clone());
    Ok(programs)
}

/// Lets cargo build the test programs; its messages go to the terminal.
fn build_now() -> Result<Vec<Program>, Failure> {
    let mut cargo = process::cargo();
    cargo
        .args(["test", "--workspace", "--no-run"])
        .args(["--exclude", "akunu-benches"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(workspace::root());
    let messages = process::output_with_visible_errors(&mut cargo)?;
    messages
        .lines()
        .filter_map(|line| artifact(line).transpose())
        .collect()
}

/// One message of cargo, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The test program that a message of cargo tells of.
fn artifact(line: &str) -> Result<Option<Program>, Failure> {
    let message: Message = serde_json::from_str(line)
        .map_err(|error| Failure::Found(format!("cargo wrote `{line}`: {error}")))?;
    let is_test = message.profile.is_some_and(|profile| profile.test);
    let (Some(manifest), Some(target), Some(executable), true) = (
        message.manifest_path,
        message.target,
        message.executable,
        is_test,
    ) else {
        return Ok(None);
    };
    let kind = target.kind.first().map_or("", String::as_str);
    Ok(Some(Program {
        folder: manifest.parent().unwrap_or(Path::new("")).to_owned(),
        name: match kind {
            "test" => target.name,
            kind => kind.to_owned(),
        },
        executable,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(package: &str, name: &str) -> Program {
        Program {
            folder: Path::new("crates").join(package),
            name: name.to_owned(),
            executable: PathBuf::new(),
        }
    }

    #[test]
    fn the_programs_are_read_from_cargos_messages() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/akunu/crates/akunu-sim/Cargo.toml",
            "target":{"kind":["test"],"name":"ptx"},"profile":{"test":true},"executable":"/t/ptx-1"}"#;
        let read = artifact(test).expect("valid").expect("a program");
        assert_eq!(read.executable, Path::new("/t/ptx-1"));
        assert_eq!(read.folder, Path::new("/akunu/crates/akunu-sim"));
        assert_eq!(read.needs(), Needs::Ptx);
        let library = test.replace("\"test\":true", "\"test\":false");
        assert_eq!(artifact(&library).expect("valid"), None);
        assert_eq!(
            artifact(r#"{"reason":"build-finished"}"#).expect("valid"),
            None
        );
        assert!(artifact("{").is_err());
    }

    /// Breaks when a test that needs clang runs where there may be none.
    #[test]
    fn what_needs_clang_is_known() {
        for (package, name, needs) in [
            ("akunu-types", "lib", Needs::Nothing),
            ("akunu-engine", "parity", Needs::Nothing),
            ("akunu-engine", "simulator", Needs::Simulator),
            ("akunu-sim", "it", Needs::Simulator),
            ("akunu-sim", "ptx", Needs::Ptx),
        ] {
            assert_eq!(program(package, name).needs(), needs, "{package} {name}");
        }
    }

    /// Breaks when cargo's order decides what starts last.
    #[test]
    fn the_longest_programs_start_first() {
        let turn = |package, name| program(package, name).turn();
        assert!(turn("akunu-engine", "parity") < turn("akunu-cli", "it"));
        assert!(turn("akunu-cli", "it") < turn("akunu-c", "it"));
        assert_eq!(turn("akunu-c", "it"), turn("xtask", "bin"));
    }

    #[test]
    fn a_passing_program_is_one_line() {
        let said = "running 3 tests\n...\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; \
                    0 measured; 0 filtered out; finished in 0.01s\n\n";
        assert_eq!(result_line(said), "2 passed, 0 failed, 1 ignored");
    }
}
