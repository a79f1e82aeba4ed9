//! The architectures, a file each, named as GGUF's `general.architecture`: a function from a model's description to its
//! layers.

mod afmoe;
mod arcee;
mod bailingmoe2;
mod bert;
mod chatglm;
mod cohere2;
mod cohere2moe;
mod command_r;
mod deepseek2;
mod dots1;
mod ernie4_5;
mod ernie4_5_moe;
mod exaone;
mod exaone4;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma4;
mod glm4;
mod glm4moe;
mod gpt_oss;
mod granite;
mod granitehybrid;
mod granitemoe;
mod hunyuan_dense;
mod hunyuan_moe;
mod internlm2;
mod lfm2;
mod lfm2moe;
mod llama;
mod mamba2;
mod mellum;
mod minicpm;
mod mistral3;
mod modern_bert;
mod mpnet;
mod muse_glimmer;
mod nemotron;
mod nemotron_h;
mod nomic_bert;
mod olmo2;
mod olmoe;
mod phi3;
mod prelude;
mod qwen2;
mod qwen2moe;
mod qwen2vl;
mod qwen3;
mod qwen35;
mod qwen35moe;
mod qwen3moe;
mod qwen3next;
mod qwen3vl;
mod seed_oss;
mod smollm3;
mod stablelm;
mod starcoder2;
pub(crate) mod whisper;
mod xlm_roberta;

use std::path::Path;

use crate::architecture::Read;
use crate::error::ArchError;

use crate::architecture::Architecture;

/// Every architecture that can be run, one file of this folder each.
pub const ALL: &[Architecture] = &[
    llama::ARCH,
    qwen2::ARCH,
    qwen2moe::ARCH,
    qwen2vl::ARCH,
    qwen3::ARCH,
    qwen3moe::ARCH,
    qwen3vl::ARCH,
    mellum::ARCH,
    gemma::ARCH,
    gemma2::ARCH,
    gemma3::ARCH,
    gemma4::ARCH,
    smollm3::ARCH,
    granite::ARCH,
    granitemoe::ARCH,
    granitehybrid::ARCH,
    ernie4_5_moe::ARCH,
    afmoe::ARCH,
    dots1::ARCH,
    deepseek2::ARCH,
    glm4moe::ARCH,
    bailingmoe2::ARCH,
    mistral3::ARCH,
    phi3::ARCH,
    olmo2::ARCH,
    exaone::ARCH,
    exaone4::ARCH,
    falcon_h1::ARCH,
    seed_oss::ARCH,
    ernie4_5::ARCH,
    chatglm::ARCH,
    glm4::ARCH,
    arcee::ARCH,
    nemotron::ARCH,
    starcoder2::ARCH,
    stablelm::ARCH,
    command_r::ARCH,
    minicpm::ARCH,
    muse_glimmer::ARCH,
    internlm2::ARCH,
    hunyuan_dense::ARCH,
    hunyuan_moe::ARCH,
    cohere2::ARCH,
    cohere2moe::ARCH,
    gpt_oss::ARCH,
    lfm2::ARCH,
    lfm2moe::ARCH,
    qwen35::ARCH,
    qwen35moe::ARCH,
    qwen3next::ARCH,
    mamba2::ARCH,
    nemotron_h::ARCH,
    olmoe::ARCH,
    bert::ARCH,
    mpnet::ARCH,
    xlm_roberta::ARCH,
    nomic_bert::ARCH,
    modern_bert::ARCH,
    whisper::ARCH,
];

/// The architecture that a GGUF file names.
pub fn by_gguf_name(name: &str) -> Option<&'static Architecture> {
    ALL.iter().find(|arch| arch.name == name)
}

/// The architecture of a `model_type` in `config.json`.
pub fn by_model_type(name: &str) -> Option<&'static Architecture> {
    let mut all = ALL.iter();
    all.find(|arch| arch.model_types.contains(&name))
}

/// The error of a file that names an architecture that we do not have.
pub(crate) fn unknown(path: &Path, name: &str) -> ArchError {
    ArchError::UnknownArchitecture {
        path: path.to_path_buf(),
        name: name.to_string(),
        known: runnable().collect::<Vec<_>>().join(", "),
    }
}

/// The names of the architectures that generate text or turn it into vectors.
fn runnable() -> impl Iterator<Item = &'static str> {
    let runs = |arch: &&Architecture| matches!(arch.read, Read::Text(_));
    ALL.iter().filter(runs).map(|arch| arch.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_an_unknown_one_lists_the_known() {
        assert_eq!(by_gguf_name("qwen2").expect("known").name, "qwen2");
        assert_eq!(by_model_type("mistral").expect("known").name, "llama");
        assert!(by_gguf_name("qwen2v").is_none(), "only exact names count");
        let error = unknown(Path::new("x.gguf"), "qwen2v").to_string();
        assert!(
            error.contains("qwen2v") && error.contains("llama, qwen2, qwen2moe"),
            "{error}"
        );
        let promised = ["bert", "whisper"].map(|name| error.contains(name));
        assert_eq!(promised, [true, false], "Whisper does not run: {error}");
    }

    #[test]
    fn no_name_means_two_architectures() {
        let mut names: Vec<&str> = ALL
            .iter()
            .flat_map(|arch| arch.model_types)
            .copied()
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
