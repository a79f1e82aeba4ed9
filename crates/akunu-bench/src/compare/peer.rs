//! The peer: llama.cpp through llama-cpp-python, measured by `peer.py`.

use super::isa::{Isa, fastest};
use super::round::{Measured, N_GREEDY, Sizes};
use akunu_repo::{Failure, process, workspace};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

const DRIVER: &str = include_str!("peer.py");
/// Where llama.cpp comes from.
pub const PACKAGE: &str = "llama-cpp-python==0.3.36";

/// A Python that has the peer.
pub struct Peer {
    python: PathBuf,
    sizes: Sizes,
}

/// What the peer is asked for: a round of one file.
pub struct Question<'a> {
    pub model: &'a Path,
    pub threads: usize,
    /// Ids to continue.
    pub prompt: &'a [u32],
    /// A file for the long context: the first round leaves it, and later ones read it.
    pub state: &'a Path,
}

/// What the driver prints.
#[derive(Deserialize)]
struct Printed {
    #[serde(flatten)]
    measured: Measured,
    ids: Vec<u32>,
}

impl Peer {
    /// The peer of this environment, or of one of our own, which is made at the first time: its build for
    /// an instruction set, or else its fastest one that runs.
    pub fn open(
        environment: Option<&Path>,
        isa: Option<Isa>,
        sizes: Sizes,
    ) -> Result<Peer, Failure> {
        let ours = workspace::root().join(isa.map_or("target/peer", Isa::environment));
        let folder = environment.unwrap_or(&ours);
        let python = folder.join("bin/python");
        if environment.is_none() && !is_ready(&python) {
            install(folder, &python, isa)?;
        }
        if !is_ready(&python) {
            return Err(Failure::Found(format!(
                "{} has no llama_cpp: install {PACKAGE} there, or leave --peer out",
                folder.display()
            )));
        }
        Ok(Peer { python, sizes })
    }

    /// One round: its figures, and the ids that follow the prompt.
    pub fn measure(&self, question: &Question) -> Result<(Measured, Vec<u32>), Failure> {
        let Sizes {
            prefill,
            first,
            decode,
            shallow,
            deep,
            deep_decode,
        } = self.sizes;
        let prompt: Vec<String> = question.prompt.iter().map(u32::to_string).collect();
        let mut command = Command::new(&self.python);
        command.args(["-c", DRIVER]).arg(question.model);
        command.args([&question.threads.to_string(), &prompt.join(",")]);
        command.arg(question.state);
        for count in [N_GREEDY, prefill, first, decode, shallow, deep, deep_decode] {
            command.arg(count.to_string());
        }
        let text = process::output(&mut command)?;
        let wrong = |error| Failure::Found(format!("the peer did not print its figures: {error}"));
        let printed: Printed = serde_json::from_str(&text).map_err(wrong)?;
        Ok((printed.measured, printed.ids))
    }
}

fn is_ready(python: &Path) -> bool {
    process::output(Command::new(python).args(["-c", "import llama_cpp"])).is_ok()
}

/// Makes the environment and builds llama.cpp in it, which takes many minutes: the lines of the build count its steps.
fn install(folder: &Path, python: &Path, isa: Option<Isa>) -> Result<(), Failure> {
    eprintln!("building {PACKAGE} in {}: many minutes", folder.display());
    process::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--verbose", "--no-cache-dir"]);
    pip.args(["--no-binary", "llama-cpp-python", PACKAGE]);
    let features = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if let Some(isa) = isa.or_else(|| fastest(&features)) {
        pip.env("CMAKE_ARGS", isa.options(&features));
    }
    Ok(process::run_beside(&mut pip)?)
}
