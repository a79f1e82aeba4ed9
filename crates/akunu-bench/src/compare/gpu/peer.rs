//! The peer on a GPU: llama.cpp's `llama-bench`, and `llama-batched-bench` for several sequences.

use super::build::{self, Built};
use super::round::{GpuSizes, RUNS, Speeds};
use akunu_repo::{Failure, process};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// llama.cpp rounds the context of each sequence up to this.
const CONTEXT_STEP: u32 = 256;

/// The programs, and the GPU that they are told to use.
pub struct GpuPeer {
    programs: Built,
    /// As llama.cpp names it: `CUDA0`.
    device: String,
}

/// A test of `llama-bench -o json`.
#[derive(Deserialize)]
struct Tested {
    n_prompt: u32,
    n_gen: u32,
    n_depth: u32,
    /// Tokens a second, the mean of the runs.
    avg_ts: f64,
}

/// A line of `llama-batched-bench --output-format jsonl`.
#[derive(Deserialize)]
struct Line {
    /// Sequences.
    pl: u32,
    /// Tokens a second that all of them have written.
    speed_tg: f64,
}

impl GpuPeer {
    /// The programs of a folder, or of one of our own, which is made at the first time.
    pub fn open(folder: Option<&Path>, number: u32) -> Result<GpuPeer, Failure> {
        let programs = build::ensure(folder)?;
        let device = format!("CUDA{number}");
        let listed = process::output(Command::new(&programs.bench).arg("--list-devices"))?;
        if !has_device(&listed, &device) {
            return Err(Failure::Found(format!(
                "{} finds no {device}: it was built without CUDA, or the driver does not have that GPU",
                programs.bench.display()
            )));
        }
        Ok(GpuPeer { programs, device })
    }

    /// One round.
    pub fn speeds(&self, model: &Path, sizes: &GpuSizes) -> Result<Speeds, Failure> {
        let decode = sizes.decode.to_string();
        let depths = sizes.depths.map(|depth| depth.to_string()).join(",");
        let prompts = sizes.prompts.map(|tokens| tokens.to_string()).join(",");
        let written = self.bench(model, &["-p", "0", "-n", &decode, "-d", &depths])?;
        let read = self.bench(model, &["-p", &prompts, "-n", "0"])?;
        let [few, many] = sizes.sequences;
        Ok(Speeds {
            depths: both(sizes.depths, |depth| {
                find(&written, (0, sizes.decode, depth))
            })?,
            prompts: both(sizes.prompts, |tokens| find(&read, (tokens, 0, 0)))?,
            sequences: [
                self.together(model, sizes.decode, few)?,
                self.together(model, sizes.decode, many)?,
            ],
        })
    }

    fn command(&self, program: &Path, model: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(["-ngl", "99", "-fa", "on", "-dev", &self.device]);
        command.arg("-m").arg(model);
        command
    }

    fn bench(&self, model: &Path, tests: &[&str]) -> Result<Vec<Tested>, Failure> {
        let mut command = self.command(&self.programs.bench, model);
        command.args(["-o", "json", "-r", &RUNS.to_string()]);
        let text = process::output(command.args(tests))?;
        let wrong =
            |error| Failure::Found(format!("llama-bench did not print its figures: {error}"));
        serde_json::from_str(&text).map_err(wrong)
    }

    /// Tokens a second of this many sequences, each of which writes after a prompt of one token.
    fn together(&self, model: &Path, tokens: u32, sequences: u32) -> Result<f64, Failure> {
        let context = sequences * (1 + tokens).next_multiple_of(CONTEXT_STEP);
        // The program has no runs: the same number once more than that, and the first one warms up.
        let runs = vec![sequences.to_string(); 1 + RUNS as usize].join(",");
        let mut command = self.command(&self.programs.batched, model);
        command.args(["--output-format", "jsonl", "-npp", "1", "-npl", &runs]);
        command.args(["-c", &context.to_string(), "-ntg", &tokens.to_string()]);
        mean_speed(&process::output(&mut command)?, sequences)
    }
}

/// Whether `--list-devices` has this device: a line for each, as `  CUDA0: NVIDIA H200 (…)`.
fn has_device(listed: &str, device: &str) -> bool {
    let names = listed.lines().filter_map(|line| line.split_once(':'));
    names.into_iter().any(|(name, _)| name.trim() == device)
}

/// A value for both tests of a pair.
fn both(sizes: [u32; 2], value: impl Fn(u32) -> Result<f64, Failure>) -> Result<[f64; 2], Failure> {
    Ok([value(sizes[0])?, value(sizes[1])?])
}

/// The speed of the test with these numbers of prompt, written and earlier tokens.
fn find(tests: &[Tested], wanted: (u32, u32, u32)) -> Result<f64, Failure> {
    let same = |test: &&Tested| (test.n_prompt, test.n_gen, test.n_depth) == wanted;
    let (prompt, written, depth) = wanted;
    let missing = || {
        Failure::Found(format!(
            "llama-bench printed no test of {prompt} tokens read and {written} written after {depth}"
        ))
    };
    tests
        .iter()
        .find(same)
        .map(|test| test.avg_ts)
        .ok_or_else(missing)
}

/// The mean of all runs but the first one. Lines that are no JSON are empty or of the log.
fn mean_speed(text: &str, sequences: u32) -> Result<f64, Failure> {
    let mut speeds = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let wrong = |error| {
            Failure::Found(format!(
                "llama-batched-bench did not print its figures: {error}"
            ))
        };
        let line: Line = serde_json::from_str(line).map_err(wrong)?;
        if line.pl == sequences {
            speeds.push(line.speed_tg);
        }
    }
    if speeds.len() != 1 + RUNS as usize {
        return Err(Failure::Found(format!(
            "llama-batched-bench printed {} of {} runs of {sequences} sequences",
            speeds.len(),
            1 + RUNS
        )));
    }
    Ok(speeds[1..].iter().sum::<f64>() / f64::from(RUNS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::gpu::tests::fakes;

    /// What the programs of llama.cpp print was copied from runs of those of llama-cpp-python 0.3.36; only the
    /// figures, GPUs and paths are made up.
    fn printed(name: &str) -> String {
        std::fs::read_to_string(fakes().join("printed").join(name)).expect(name)
    }

    /// Fails if a test is taken for another one, which differs by one number only.
    #[test]
    fn the_tests_of_llama_bench_are_told_apart() {
        let tests: Vec<Tested> = serde_json::from_str(&printed("written.json")).expect("JSON");
        assert_eq!(find(&tests, (0, 128, 0)).ok(), Some(1013.5));
        assert_eq!(find(&tests, (0, 128, 4096)).ok(), Some(869.25));
        let said = find(&tests, (0, 64, 0))
            .expect_err("no such test")
            .to_string();
        assert!(said.contains("64 written after 0"), "{said}");
    }

    /// Fails if the run that warms up counts, or if a run that was left out (too little context) is not noticed.
    #[test]
    fn the_first_run_of_llama_batched_bench_does_not_count() {
        let text = printed("together-16.jsonl");
        assert_eq!(mean_speed(&text, 16).ok(), Some(6000.0));
        let without_last: Vec<&str> = text.trim_end().rsplitn(2, '\n').collect();
        let said = mean_speed(without_last[1], 16)
            .expect_err("three runs")
            .to_string();
        assert!(said.contains("3 of 4 runs of 16"), "{said}");
        assert!(mean_speed(&text, 64).is_err());
        let said = mean_speed("{\"pl\": 16}\n", 16)
            .expect_err("no speed")
            .to_string();
        assert!(said.contains("speed_tg"), "{said}");
    }

    #[test]
    fn devices_are_found_by_their_whole_name() {
        let listed = printed("devices.txt");
        assert!(has_device(&listed, "CUDA0") && has_device(&listed, "CUDA12"));
        assert!(!has_device(&listed, "CUDA1") && !has_device(&listed, "CUDA"));
        assert!(!has_device("Available devices:\n  (none)\n", "CUDA0"));
    }

    /// Fails if a build without CUDA is compared, which would be measured on the CPU.
    #[test]
    fn a_peer_without_the_gpu_is_refused() {
        let said = GpuPeer::open(Some(&fakes()), 5)
            .err()
            .expect("no CUDA5")
            .to_string();
        assert!(said.contains("finds no CUDA5"), "{said}");
    }
}
