//! A part in a process of its own.

use super::part::Planned;
use super::record::{Ended, PartReport, Record};
use super::redact::{Replacement, end_of, of_this_user};
use super::target::Which;
use akunu_repo::{Failure, workspace};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a part goes on after a crash.
const RESTARTS: usize = 20;
/// A process that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What turns on Metal's validation of calls and of memory accesses, and has it write what it finds.
const VALIDATION: [(&str, &str); 4] = [
    ("METAL_DEVICE_WRAPPER_TYPE", "1"),
    ("MTL_DEBUG_LAYER", "1"),
    ("MTL_SHADER_VALIDATION", "1"),
    ("MTL_SHADER_VALIDATION_REPORT_TO_STDERR", "1"),
];

/// The arguments of every process.
pub struct Arguments {
    pub which: Which,
    pub filter: String,
    pub ptx: Option<PathBuf>,
}

/// The records of a process, and how it ended.
struct Run {
    records: Vec<Record>,
    ended: Ended,
}

/// Runs a part, again after each crash.
pub fn run(planned: &Planned, arguments: &Arguments) -> Result<PartReport, Failure> {
    let root = workspace::root().to_string_lossy().into_owned();
    let replacements = of_this_user(&root);
    let begin = Instant::now();
    let mut report = PartReport {
        name: planned.name(),
        validated: planned.validated,
        seconds: 0.0,
        ended: Vec::new(),
        records: Vec::new(),
    };
    let mut after: Option<String> = None;
    for _ in 0..=RESTARTS {
        let mut command = command(planned, arguments)?;
        if let Some(after) = &after {
            command.args(["--after", after]);
        }
        let run = run_once(&mut command, &replacements)?;
        let during = run.ended.during.clone();
        let is_over = run.ended.how == "ok" || during.is_none() || during == after;
        report.records.extend(run.records);
        report.ended.push(run.ended);
        if is_over {
            break;
        }
        after = during;
    }
    report.seconds = begin.elapsed().as_secs_f64();
    show(&report);
    Ok(report)
}

fn command(planned: &Planned, arguments: &Arguments) -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::io("this program".as_ref(), error))?;
    let mut command = Command::new(program);
    command.args(["mac-report", "--device", arguments.which.name(), "--part"]);
    command.arg(planned.name());
    command.args(["--filter", &arguments.filter]);
    if let Some(folder) = &arguments.ptx {
        command.arg("--ptx").arg(folder);
    }
    for (name, value) in VALIDATION {
        match planned.validated {
            true => command.env(name, value),
            false => command.env_remove(name),
        };
    }
    Ok(command)
}

fn run_once(command: &mut Command, replacements: &[Replacement]) -> Result<Run, Failure> {
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let spawned = pipes.stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| Failure::io("this program".as_ref(), error))?;
    let records = child.stdout.take().map(|stdout| {
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let read = lines.map(|line| serde_json::from_str(&line));
            read.filter_map(Result::ok).collect::<Vec<Record>>()
        })
    });
    let said = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was written before an error is what there is.
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let how = wait(&mut child, LIMIT);
    let (records, said) = (joined(records), joined(said));
    let begun = records.iter().rev().find_map(|record| match record {
        Record::Begin { what } => Some(what.clone()),
        _ => None,
    });
    let is_kept = |record: &Record| !matches!(record, Record::Begin { .. });
    Ok(Run {
        records: records.into_iter().filter(is_kept).collect(),
        ended: Ended {
            during: begun.filter(|_| how != "ok"),
            said: end_of(&said, replacements),
            how,
        },
    })
}

fn joined<T: Default>(thread: Option<JoinHandle<T>>) -> T {
    let result = thread.map(|thread| thread.join().unwrap_or_default());
    result.unwrap_or_default()
}

/// Waits for a process, and ends it when it takes longer than the limit.
fn wait(child: &mut Child, limit: Duration) -> String {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return words(status),
            Ok(None) if begin.elapsed() < limit => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return format!("no end after {} s", limit.as_secs());
            }
            Err(error) => return error.to_string(),
        }
    }
}

fn words(status: ExitStatus) -> String {
    match status.success() {
        true => "ok".to_owned(),
        false => status.to_string(),
    }
}

/// A line for each part: a report takes many minutes.
fn show(report: &PartReport) {
    let (name, records) = (&report.name, report.records.len());
    let validated = if report.validated { ", validated" } else { "" };
    let ends: Vec<&str> = report
        .ended
        .iter()
        .map(|ended| ended.how.as_str())
        .collect();
    eprintln!(
        "{name}{validated}: {records} records in {:.1} s, {}",
        report.seconds,
        ends.join(", ")
    );
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    const BEGIN: &str = r#"echo '{"kind":"begin","what":"gemv_q4_0"}'"#;
    const MICRO: &str = r#"echo '{"kind":"micro","name":"launch","value":1.5,"unit":"us"}'"#;

    /// Breaks when a crash of the driver is lost, or takes what was found before with it.
    #[test]
    fn a_crash_is_recorded_with_what_it_was_in() {
        let script = format!("{BEGIN}; {MICRO}; echo assertion of bob >&2; kill -ABRT $$");
        let replacements = [("bob".to_owned(), "<user>")];
        let run = run_once(&mut shell(&script), &replacements).unwrap();
        assert_eq!(run.records.len(), 1);
        assert!(run.ended.how.contains("signal"), "{}", run.ended.how);
        assert_eq!(run.ended.during.as_deref(), Some("gemv_q4_0"));
        assert_eq!(run.ended.said, "assertion of <user>");
    }

    #[test]
    fn a_part_that_ends_well_was_in_nothing() {
        let run = run_once(&mut shell(&format!("{BEGIN}; echo noise")), &[]).unwrap();
        assert_eq!((run.ended.how.as_str(), run.ended.during), ("ok", None));
        assert!(run.records.is_empty());
    }

    #[test]
    fn a_process_that_hangs_is_ended() {
        let mut child = shell("exec sleep 1000").spawn().unwrap();
        let how = wait(&mut child, Duration::from_millis(1));
        assert!(how.starts_with("no end"), "{how}");
    }
}
