//! Our side: `akunu-cli`, built for release and run as anybody would.

use super::device::Device;
use super::gpu::round::{Gpu, GpuSizes, RUNS, Speeds};
use super::isa::Isa;
use super::round::{Measured, N_GREEDY, PROMPT, Sizes};
use akunu_repo::{Failure, cli, process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
#[derive(Clone)]
pub struct Ours {
    program: PathBuf,
    device: Device,
    /// Instructions that it keeps to.
    isa: Option<Isa>,
}

impl Ours {
    /// The program that is there already, or else a new build.
    pub fn open(program: Option<&Path>, device: Device) -> Result<Ours, Failure> {
        let program = match program {
            Some(program) => program.to_path_buf(),
            None => build(device)?,
        };
        let isa = None;
        Ok(Ours {
            program,
            device,
            isa,
        })
    }

    /// The same program, told which instructions to use.
    pub fn keeping_to(&self, isa: Option<Isa>) -> Ours {
        Ours {
            isa,
            ..self.clone()
        }
    }

    fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// One round on the CPU: a process for short contexts, and one for the long context.
    pub fn measure(&self, model: &Path, threads: usize, sizes: Sizes) -> Result<Measured, Failure> {
        let Sizes {
            prefill,
            first,
            decode,
            shallow,
            deep,
            deep_decode,
        } = sizes;
        let threads = threads.to_string();
        let once = ["-r", "1", "-t", &threads];
        let prompts = format!("{prefill},{first}");
        let count = decode.to_string();
        let short = self.bench(
            model,
            &[&once[..], &["-p", &prompts, "-n", &count]].concat(),
        )?;
        let depths = format!("{shallow},{deep}");
        let count = deep_decode.to_string();
        let arguments = ["-p", "0", "-n", &count, "--depth", &depths, "--no-warmup"];
        let long = self.bench(model, &[&once[..], &arguments].concat())?;
        Ok(Measured {
            prefill: speed(&short, 0)?,
            first_token_ms: 1e3 * f64::from(first) / speed(&short, 1)?,
            decode: speed(&short, 2)?,
            load_ms: number(&short["groups"][0]["load_ms"])?,
            resident_bytes: number(&short["groups"][0]["resident_bytes"])?,
            decode_shallow: speed(&long, 0)?,
            decode_deep: speed(&long, 1)?,
        })
    }

    /// One round on a GPU: a process for one sequence, and one for several.
    pub fn speeds(&self, model: &Path, sizes: &GpuSizes) -> Result<Speeds, Failure> {
        let list = |pair: [u32; 2]| pair.map(|n| n.to_string()).join(",");
        let (prompts, depths) = (list(sizes.prompts), list(sizes.depths));
        let (sequences, decode) = (list(sizes.sequences), sizes.decode.to_string());
        let runs = RUNS.to_string();
        let runs = ["-r", &runs, "-n", &decode];
        let alone = [&runs[..], &["-p", &prompts, "--depth", &depths]].concat();
        let alone = self.bench(model, &alone)?;
        let together = [&runs[..], &["-p", "0", "--batch", &sequences]].concat();
        let together = self.bench(model, &together)?;
        let both = |report: &Value, names: [String; 2]| -> Result<[f64; 2], Failure> {
            Ok([named(report, &names[0])?, named(report, &names[1])?])
        };
        let depth_name = |depth: u32| match depth {
            0 => format!("tg{decode}"),
            depth => format!("tg{decode} @ d{depth}"),
        };
        Ok(Speeds {
            depths: both(&alone, sizes.depths.map(depth_name))?,
            prompts: both(&alone, sizes.prompts.map(|tokens| format!("pp{tokens}")))?,
            sequences: both(
                &together,
                sizes.sequences.map(|n| format!("tg{decode} @ b{n}")),
            )?,
        })
    }

    fn bench(&self, model: &Path, more: &[&str]) -> Result<Value, Failure> {
        let mut command = self.command();
        command.args(["bench", "--json", "--skip-floor"]);
        command.args(["--device", &self.device.to_string()]);
        command.args(more);
        self.limit(&mut command);
        json(command.arg("-m").arg(model))
    }

    /// The GPU that it is told to use, or why it cannot.
    pub fn gpu(&self) -> Result<Gpu, Failure> {
        let devices = json(self.command().args(["devices", "--json"]))?;
        let device = self.device.to_string();
        let entries = devices.as_array().map(Vec::as_slice).unwrap_or_default();
        let entry = |name: &str| entries.iter().find(|entry| entry["name"] == name);
        // Without a driver there is one entry for all GPUs, which says why.
        let usable = entry(&device).filter(|entry| entry["available"] == true);
        let why = entry(&device).or_else(|| entry("cuda").filter(|gpu| gpu["available"] == false));
        let why = why.and_then(|entry| entry["about"].as_str());
        let refusal = || {
            Failure::Found(format!(
                "{device}: {}",
                why.unwrap_or("there is no such GPU")
            ))
        };
        let usable = usable.ok_or_else(refusal)?;
        let text = |key: &str| usable[key].as_str().unwrap_or("unknown").to_string();
        Ok(Gpu {
            name: text("about"),
            driver: text("driver"),
        })
    }

    fn limit(&self, command: &mut Command) {
        if let Some(isa) = self.isa {
            command.args(["--isa", isa.name()]);
        }
    }

    /// The ids of the prompt, and those that follow.
    pub fn continue_prompt(
        &self,
        model: &Path,
        threads: usize,
    ) -> Result<(Vec<u32>, Vec<u32>), Failure> {
        let mut command = self.command();
        command.args([
            "generate",
            "--json",
            "-p",
            PROMPT,
            "-n",
            &N_GREEDY.to_string(),
        ]);
        command.args(["--device", "cpu", "-t", &threads.to_string()]);
        self.limit(&mut command);
        let report = json(command.arg("-m").arg(model))?;
        Ok((ids(&report["prompt_ids"])?, ids(&report["ids"])?))
    }

    /// Bytes a second that this many threads read from memory.
    pub fn bandwidth(&self, model: &Path, threads: usize) -> Result<f64, Failure> {
        let mut command = self.command();
        command.args([
            "bench", "--json", "-p", "0", "-n", "1", "-r", "1", "--device", "cpu",
        ]);
        command.args(["-t", &threads.to_string()]);
        let report = json(command.arg("-m").arg(model))?;
        number(&report["groups"][0]["read_bytes_per_second"])
    }

    /// Bytes of all weights: these models use their embedding as output layer too, so that a token
    /// reads them all.
    pub fn weight_bytes(&self, model: &Path) -> Result<u64, Failure> {
        let report = json(self.command().args(["inspect", "--json"]).arg(model))?;
        Ok(number(&report["weights"]["bytes"])? as u64)
    }

    /// Writes a model in another type.
    pub fn quantise(&self, from: &Path, to: &Path, dtype: &str) -> Result<(), Failure> {
        let mut command = self.command();
        command.arg("quantize").arg(from).arg(to).arg(dtype);
        // Every matrix in the one type whose speed is measured.
        command.arg("--pure");
        Ok(process::output(&mut command).map(|_| ())?)
    }
}

/// Builds it for release.
fn build(device: Device) -> Result<PathBuf, Failure> {
    let features: &[&str] = match device {
        Device::Cpu => &[],
        Device::Cuda(_) => &["cuda"],
    };
    cli::build(cli::Profile::Release, features)
}

/// Tokens a second of a test of the report.
fn speed(report: &Value, test: usize) -> Result<f64, Failure> {
    number(&report["groups"][0]["results"][test]["mean_tok_s"])
}

/// Tokens a second of the test of this name.
fn named(report: &Value, test: &str) -> Result<f64, Failure> {
    let results = report["groups"][0]["results"].as_array();
    let found = results.and_then(|results| results.iter().find(|result| result["test"] == test));
    let missing = || Failure::Found(format!("akunu-cli's report lacks the test {test}"));
    number(&found.ok_or_else(missing)?["mean_tok_s"])
}

fn number(value: &Value) -> Result<f64, Failure> {
    let missing = || Failure::Found("akunu-cli's report lacks a number".into());
    value.as_f64().ok_or_else(missing)
}

fn ids(value: &Value) -> Result<Vec<u32>, Failure> {
    let wrong = |error| Failure::Found(format!("akunu-cli's report lacks ids: {error}"));
    serde_json::from_value(value.clone()).map_err(wrong)
}

fn json(command: &mut Command) -> Result<Value, Failure> {
    let text = process::output(command)?;
    let wrong = |error| Failure::Found(format!("akunu-cli did not print JSON: {error}"));
    serde_json::from_str(&text).map_err(wrong)
}
