//! NVIDIA's `compute-sanitizer` on the kernels, after it has found a race that was planted. It comes with the CUDA toolkit.

use akunu_repo::{Failure, process};
use akunu_sim::ptx::race;
use std::path::Path;
use std::process::{Command, Stdio};

/// The sanitizer.
const PROGRAM: &str = "compute-sanitizer";

/// What a run of the racecheck has found.
#[derive(Debug, PartialEq, Eq)]
enum Hazards {
    None,
    Some,
    /// It said nothing of hazards.
    Unknown,
}

/// Reads `RACECHECK SUMMARY: 4 hazards displayed (4 errors, 0 warnings)`.
fn hazards(said: &str) -> Hazards {
    const SUMMARY: &str = "RACECHECK SUMMARY: ";
    let Some((_, rest)) = said.split_once(SUMMARY) else {
        return Hazards::Unknown;
    };
    let count = rest.split_whitespace().next().and_then(|n| n.parse().ok());
    match count {
        Some(0u64) => Hazards::None,
        Some(_) => Hazards::Some,
        None => Hazards::Unknown,
    }
}

/// Looks for races in the kernels whose names contain `filter`, after the planted one.
pub fn racecheck(ptx: &Path, filter: &str) -> Result<(), Failure> {
    if !process::exists(PROGRAM) {
        return Err(Failure::Unavailable {
            why: format!("there is no {PROGRAM} on PATH"),
            fix: "it comes with NVIDIA's CUDA toolkit, often in /usr/local/cuda/bin".to_owned(),
        });
    }
    println!("==> a race that was planted in {}", race::KERNEL);
    let said = run(ptx, &["--filter", race::KERNEL, "--planted-race"])?;
    if hazards(&said) != Hazards::Some {
        let why = format!("racecheck did not find the planted race; it said:\n{said}");
        return Err(Failure::Found(why));
    }
    println!("found");
    println!("==> races in the kernels themselves");
    let said = run(ptx, &["--filter", filter])?;
    print!("{said}");
    match hazards(&said) {
        Hazards::None => Ok(()),
        Hazards::Some => Err(Failure::Found("racecheck found races".to_owned())),
        Hazards::Unknown => Err(Failure::Found("racecheck did not finish".to_owned())),
    }
}

/// Everything that a run of this program under the racecheck says.
fn run(ptx: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::Found(error.to_string()))?;
    let mut command = Command::new(PROGRAM);
    command.args(["--tool", "racecheck"]).arg(own);
    command.args(["gpu", "--exact", "--ptx"]).arg(ptx);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::io(Path::new(PROGRAM), error))?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was cut short must not pass for one without hazards.
    #[test]
    fn a_summary_is_read_and_missed() {
        let said = "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n";
        assert_eq!(hazards(said), Hazards::Some);
        assert_eq!(
            hazards("RACECHECK SUMMARY: 0 hazards displayed"),
            Hazards::None
        );
        assert_eq!(hazards("========= COMPUTE-SANITIZER\n"), Hazards::Unknown);
    }
}
