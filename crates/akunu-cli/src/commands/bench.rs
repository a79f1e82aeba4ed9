//! `bench`: how fast a model reads and writes, in the manner of llama-bench.
//!
//! `pp512` is a prompt of 512 tokens read at once; `tg128` are 128 tokens written one after the other;
//! `tg128 @ d4000` the same after 4000 tokens, and `tg128 @ b4` by four sequences at once, each of which
//! writes 128. Each test is run once to warm up and then a few times. `--texts` answers questions with and
//! without guesses, and in a given form.

mod answering;
mod form;
mod report;
mod speed_test;
mod texts;

use super::Run;
use crate::device::{DeviceArgs, usable_threads};
use crate::failure::Failure;
use crate::kv::KvArgs;
use crate::models;
use crate::progress::{self, Counts};
use crate::running::{Loaded, warn_beyond_training};
use akunu_cpu::bandwidth::measure_bandwidth;
use akunu_cpu::{default_threads, measure_barrier};
use akunu_gguf::WeightStore;
use answering::Asking;
use clap::Parser;
use report::{Group, Outcome, Report};
use speed_test::{Bench, Test};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Measure how fast a model reads and writes tokens
///
/// Each test is a row: the mean of the runs and their deviation, the time of a step that writes a token of
/// each sequence, and how near that comes to the floor, the time to read each weight from memory once.
#[derive(Parser)]
#[command(name = "bench")]
pub struct BenchCommand {
    /// A GGUF file, a folder with config.json and safetensors, a name from `pull --list`, or
    /// hf:owner/repository/file.gguf
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT)]
    model: String,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    kv: KvArgs,
    /// Tokens of the prompts, separated by commas; 0 for none
    #[arg(
        short,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "512"
    )]
    prompt: Vec<u32>,
    /// Tokens to write; 0 for none
    #[arg(short, value_name = "N", default_value_t = 128)]
    n: u32,
    /// Tokens of context before those that are written, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "0")]
    depth: Vec<u32>,
    /// Numbers of sequences that write at once, 1 to 256, separated by commas [default: none]
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=i64::from(akunu::MAX_SEQUENCES))
    )]
    batch: Vec<u32>,
    /// Numbers of threads to try, separated by commas, none above the number of cores [default: one for
    /// each fast core, fewer while other programs need them]
    #[arg(short, long, value_name = "N,…", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Also edit a file, answer a question and write a story, with and without guessing tokens ahead, and write JSON with
    /// and without a schema, in at most so many tokens
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "300",
        value_parser = clap::value_parser!(u32).range(2..))]
    texts: Option<u32>,
    /// Runs of each test
    #[arg(short, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Do not run each test once before measuring it
    #[arg(long)]
    no_warmup: bool,
    /// Do not measure the speed of memory, which takes 1 GiB and a few seconds
    #[arg(long)]
    skip_floor: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Run for BenchCommand {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.tests().is_empty() && self.texts.is_none() {
            return Err(Failure::NothingToMeasure);
        }
        let path = models::resolve(&self.model)?;
        models::refuse_speech(&path, "writes text")?;
        let threads = self.threads();
        let mut report = Report::new(&WeightStore::open(&path)?, &path);
        for &threads in &threads {
            report.groups.push(self.group(&path, threads)?);
        }
        match self.json {
            true => {
                serde_json::to_writer(&mut *out, &report)?;
                Ok(writeln!(out)?)
            }
            false => report.write_table(out),
        }
    }
}

impl BenchCommand {
    /// The numbers of threads to try, none of them above the number of cores and none twice in a row; `None` is the
    /// device's own choice.
    fn threads(&self) -> Vec<Option<usize>> {
        let mut threads: Vec<usize> = self.threads.iter().map(|&n| usable_threads(n)).collect();
        threads.dedup();
        match threads.is_empty() {
            true => vec![None],
            false => threads.into_iter().map(Some).collect(),
        }
    }

    fn tests(&self) -> Vec<Test> {
        let prompts = self.prompt.iter().filter(|&&tokens| tokens > 0);
        let mut tests: Vec<Test> = prompts.map(|&tokens| Test::Read { tokens }).collect();
        let tokens = self.n;
        for &depth in self.depth.iter().filter(|_| tokens > 0) {
            tests.push(Test::Write { tokens, depth });
            let together = |&sequences: &u32| Test::WriteTogether {
                tokens,
                depth,
                sequences,
            };
            tests.extend(self.batch.iter().map(together));
        }
        tests
    }

    /// All tests with this many threads.
    fn group(&self, path: &Path, threads: Option<usize>) -> Result<Group, Failure> {
        let begin = Instant::now();
        let open = || Loaded::open(path, &self.device, threads, self.kv.options());
        let Loaded { model, device, .. } = open()?;
        let threads = threads.unwrap_or_else(default_threads);
        let tests = self.tests();
        let context = tests.iter().map(Test::context).max().unwrap_or(1);
        let mut bench = Bench::new(&model, context)?;
        let load_ms = begin.elapsed().as_secs_f64() * 1e3;
        warn_beyond_training("the largest test", context as usize, &model);
        let results = self.measure(&mut bench, &tests)?;
        let (mut texts, mut form) = (Vec::new(), None);
        if let Some(max_tokens) = self.texts {
            let asking = Asking {
                open: &|| Ok(open()?.model),
                runs: self.runs,
                max_tokens,
                interrupt: bench.interrupt(),
            };
            texts = texts::measure(&asking)?;
            form = Some(form::measure(&asking)?);
        }
        let mut group = Group {
            device,
            threads,
            load_ms,
            resident_bytes: report::resident_bytes(),
            read_bytes_per_second: None,
            barrier_us: None,
            results,
            texts,
            form,
        };
        if device == "cpu"
            && !self.skip_floor
            && let Some(speed) =
                progress::wait("measuring the memory", || measure_bandwidth(threads))
        {
            group.measure_floor(&model, speed)?;
            let barrier = measure_barrier(threads).ok();
            group.barrier_us = barrier.map(|time| time.as_secs_f64() * 1e6);
        }
        bench.check_interrupt()?;
        Ok(group)
    }

    /// Runs each test as often as asked for; a terminal shows which one, and for how long.
    fn measure(&self, bench: &mut Bench, tests: &[Test]) -> Result<Vec<Outcome>, Failure> {
        let n_warmups = u32::from(!self.no_warmup);
        let n_runs = u64::from(self.runs + n_warmups) * tests.len() as u64;
        let bar = progress::bar(n_runs, Counts::Things("runs"));
        let mut results = Vec::new();
        for test in tests {
            bar.set_message(test.to_string());
            let mut samples = Vec::new();
            for run in 0..self.runs + n_warmups {
                let speed = bench.run(test)?;
                if run >= n_warmups {
                    samples.push(speed);
                }
                bar.inc(1);
            }
            results.push(Outcome::new(test, samples));
        }
        bar.finish_and_clear();
        Ok(results)
    }
}
