//! The peer: llama.cpp through llama-cpp-python, measured by `peer.py`.

use super::{Measured, N_GREEDY, Sizes};
use crate::failure::Failure;
use crate::process;
use crate::workspace;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

const DRIVER: &str = include_str!("peer.py");
/// Where llama.cpp comes from.
pub const PACKAGE: &str = "llama-cpp-python==0.3.36";

/// Instructions that a build is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Isa {
    /// AVX2 with FMA and F16C
    Avx2,
    /// AVX2 with AVX-VNNI
    #[value(name = "avxvnni")]
    AvxVnni,
    /// AVX-512, with what else of it the processor has
    Avx512,
    /// AMX; llama.cpp keeps to AVX-512 here, since its AMX code dies on the machines that we have
    Amx,
}

const AVX2_BUILD: &str = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON \
    -DGGML_BMI2=ON";

/// Parts of AVX-512 by the system's name, and the option that makes llama.cpp use them.
const AVX512_PARTS: [(&str, &str); 4] = [
    ("avx512f", "-DGGML_AVX512=ON"),
    ("avx512_vbmi", "-DGGML_AVX512_VBMI=ON"),
    ("avx512_vnni", "-DGGML_AVX512_VNNI=ON"),
    ("avx512_bf16", "-DGGML_AVX512_BF16=ON"),
];

impl Isa {
    /// As `akunu-cli --isa` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avxvnni",
            Isa::Avx512 => "avx512",
            Isa::Amx => "amx",
        }
    }

    /// The environment of its build: one for AVX-512 and AMX.
    fn environment(self) -> &'static str {
        match self {
            Isa::Avx2 => "target/peer-avx2",
            Isa::AvxVnni => "target/peer-avxvnni",
            Isa::Avx512 | Isa::Amx => "target/peer-avx512",
        }
    }

    /// The options of CMake, for a processor with these features.
    fn options(self, features: &str) -> String {
        let has = |name: &str| features.split_whitespace().any(|feature| feature == name);
        let parts = AVX512_PARTS.iter().filter(|(name, _)| has(name));
        let parts = parts.map(|(_, option)| format!(" {option}"));
        match self {
            Isa::Avx2 => AVX2_BUILD.to_string(),
            Isa::AvxVnni => AVX2_BUILD.to_string() + " -DGGML_AVX_VNNI=ON",
            Isa::Avx512 | Isa::Amx => AVX2_BUILD.to_string() + &parts.collect::<String>(),
        }
    }
}

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

/// The build to choose by hand: where there is AMX, a build for the whole processor dies.
fn fastest(features: &str) -> Option<Isa> {
    let has_all = AVX512_PARTS.iter().all(|(name, _)| features.contains(name));
    has_all.then_some(Isa::Avx512)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a build uses instructions that the processor lacks, or more than its level.
    #[test]
    fn a_build_has_the_instructions_of_its_level_and_processor() {
        let cascade_lake = "flags : avx2 fma f16c avx512f avx512bw avx512_vnni";
        let avx2 = Isa::Avx2.options(cascade_lake);
        assert!(
            avx2.contains("GGML_AVX2=ON") && !avx2.contains("AVX512"),
            "{avx2}"
        );
        let avx_vnni = Isa::AvxVnni.options("flags : avx2 fma f16c avx_vnni");
        assert!(
            avx_vnni.contains("GGML_AVX2=ON") && avx_vnni.contains("GGML_AVX_VNNI=ON"),
            "{avx_vnni}"
        );
        assert!(!avx_vnni.contains("AVX512"), "{avx_vnni}");
        let avx512 = Isa::Avx512.options(cascade_lake);
        assert!(avx512.contains("GGML_AVX512=ON"), "{avx512}");
        assert!(avx512.contains("GGML_AVX512_VNNI=ON"), "{avx512}");
        assert!(
            !avx512.contains("BF16") && !avx512.contains("VBMI"),
            "{avx512}"
        );
        assert_eq!(fastest(cascade_lake), None);
        let more = format!("{cascade_lake} avx512_vbmi avx512_bf16 amx_tile");
        assert_eq!(fastest(&more), Some(Isa::Avx512));
        assert!(Isa::Amx.options(&more).contains("BF16=ON"));
    }
}
