//! What was measured, as a table or as JSON.

use super::form::FormOutcome;
use super::speed_test::Test;
use super::texts::{self, TextOutcome};
use crate::failure::Failure;
use crate::floor;
use crate::units;
use akunu::Model;
use akunu_gguf::WeightStore;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Everything about one model.
#[derive(Serialize)]
pub struct Report {
    pub model: String,
    pub size_bytes: u64,
    pub parameters: u64,
    pub groups: Vec<Group>,
}

/// All tests with one number of threads.
#[derive(Serialize)]
pub struct Group {
    pub device: &'static str,
    pub threads: usize,
    /// From nothing to a session that can be asked.
    pub load_ms: f64,
    /// Memory of the process after the tests, mapped weights included; where the system tells.
    pub resident_bytes: Option<u64>,
    pub read_bytes_per_second: Option<f64>,
    /// What it costs that all threads wait for each other once.
    pub barrier_us: Option<f64>,
    pub results: Vec<Outcome>,
    /// Texts with and without guesses, where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextOutcome>,
    /// An answer of a given form beside a free one, where texts are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<FormOutcome>,
}

/// One test.
#[derive(Serialize)]
pub struct Outcome {
    pub test: String,
    pub mean_tok_s: f64,
    pub deviation: f64,
    pub samples: Vec<f64>,
    /// Time of a step, which writes one token of each sequence.
    pub ms_a_step: Option<f64>,
    /// How near decoding comes to reading memory and nothing else, from 0 to 1.
    pub share_of_floor: Option<f64>,
    #[serde(skip)]
    kind: Test,
}

impl Report {
    pub fn new(store: &WeightStore, path: &Path) -> Report {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Report {
            model: name.to_string_lossy().into_owned(),
            size_bytes: store.iter().map(|weight| weight.size() as u64).sum(),
            parameters: store.iter().map(|w| w.dims.n_elements() as u64).sum(),
            groups: Vec::new(),
        }
    }

    /// One row a test, in Markdown.
    pub fn write_table(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let width = self.model.chars().count().max(5);
        writeln!(
            out,
            "| {:<width$} | {:>9} | {:>7} | {:<6} | {:>7} | {:<14} | {:>18} | {:>9} | {:>12} |",
            "model",
            "size",
            "params",
            "device",
            "threads",
            "test",
            "t/s",
            "ms a step",
            "of the floor"
        )?;
        writeln!(
            out,
            "|-{:-<width$}-|----------:|--------:|--------|--------:|----------------|-------------------:|----------:|-------------:|",
            ""
        )?;
        for group in &self.groups {
            for result in &group.results {
                let speed = format!("{:.2} ± {:.2}", result.mean_tok_s, result.deviation);
                let share = result
                    .share_of_floor
                    .map(|share| format!("{:.0} %", 100.0 * share));
                let step = result.ms_a_step.map(|ms| format!("{ms:.2}"));
                writeln!(
                    out,
                    "| {:<width$} | {:>9} | {:>7} | {:<6} | {:>7} | {:<14} | {speed:>18} | {:>9} | {:>12} |",
                    self.model,
                    units::bytes(self.size_bytes),
                    units::count(self.parameters),
                    group.device,
                    group.threads,
                    result.test,
                    step.unwrap_or_default(),
                    share.unwrap_or_default()
                )?;
            }
        }
        for group in &self.groups {
            if let Some(speed) = group.read_bytes_per_second {
                let (threads, gigabytes) = (group.threads, speed / 1e9);
                writeln!(out, "memory read, threads {threads}: {gigabytes:.1} GB/s")?;
            }
            if let Some(barrier) = group.barrier_us {
                writeln!(out, "a barrier, threads {}: {barrier:.2} µs", group.threads)?;
            }
        }
        for group in self.groups.iter().filter(|group| !group.texts.is_empty()) {
            texts::write_table(&group.texts, out)?;
            if let Some(form) = &group.form {
                form.write_table(out)?;
            }
        }
        Ok(())
    }
}

impl Group {
    /// Compares decoding with a memory of this speed.
    pub fn measure_floor(&mut self, model: &Model, bytes_per_second: f64) -> Result<(), Failure> {
        let weights = floor::weight_bytes(&WeightStore::open(model.path())?);
        self.read_bytes_per_second = Some(bytes_per_second);
        for result in &mut self.results {
            let test = result.kind;
            if let Some(sequences) = test.tokens_a_step() {
                let cache = floor::cache_bytes(model, test.middle());
                let bytes = weights + u64::from(sequences) * cache;
                let steps = result.mean_tok_s / f64::from(sequences);
                result.share_of_floor = Some(steps * bytes as f64 / bytes_per_second);
            }
        }
        Ok(())
    }
}

impl Outcome {
    pub fn new(test: &Test, samples: Vec<f64>) -> Outcome {
        let mean_tok_s = mean(&samples);
        let ms_a_step = |tokens| 1e3 * f64::from(tokens) / mean_tok_s;
        Outcome {
            test: test.to_string(),
            mean_tok_s,
            ms_a_step: test.tokens_a_step().map(ms_a_step),
            deviation: deviation(&samples),
            samples,
            share_of_floor: None,
            kind: *test,
        }
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}

/// The standard deviation of a sample; 0 of a single one.
fn deviation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
    match samples.len() {
        0 | 1 => 0.0,
        n => (squares / (n - 1) as f64).sqrt(),
    }
}

/// Memory of this process, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_a_sample() {
        assert_eq!(
            (mean(&[2.0, 4.0]), deviation(&[2.0, 4.0])),
            (3.0, 2f64.sqrt())
        );
        assert_eq!(deviation(&[5.0]), 0.0);
    }
}
