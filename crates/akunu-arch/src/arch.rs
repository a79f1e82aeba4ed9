//! The architectures, a file each, named as GGUF's `general.architecture`.

mod bert;
mod gemma;
mod gemma2;
mod gemma3;
mod llama;
mod qwen2;
mod qwen3;
mod whisper;

use crate::descriptor::ArchDescriptor;
use crate::error::ArchError;

/// Every architecture.
pub const ALL: &[ArchDescriptor] = &[
    llama::ARCH,
    qwen2::ARCH,
    qwen3::ARCH,
    gemma::ARCH,
    gemma2::ARCH,
    gemma3::ARCH,
    bert::ARCH,
    whisper::ARCH,
];

/// The architecture that a GGUF file names.
pub fn by_gguf_name(name: &str) -> Result<ArchDescriptor, ArchError> {
    find(name, |arch| arch.name == name)
}

/// The architecture of a `model_type` in `config.json`.
pub fn by_model_type(name: &str) -> Result<ArchDescriptor, ArchError> {
    find(name, |arch| arch.model_types.contains(&name))
}

fn find(name: &str, is: impl Fn(&ArchDescriptor) -> bool) -> Result<ArchDescriptor, ArchError> {
    let found = ALL.iter().copied().find(is);
    found.ok_or_else(|| ArchError::UnknownArchitecture {
        name: name.to_string(),
        known: ALL
            .iter()
            .map(|arch| arch.name)
            .collect::<Vec<_>>()
            .join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_an_unknown_one_lists_the_known() {
        assert_eq!(by_gguf_name("qwen2").expect("known").name, "qwen2");
        assert_eq!(by_model_type("mistral").expect("known").name, "llama");
        let error = by_gguf_name("qwen2moe")
            .expect_err("only exact names count")
            .to_string();
        assert!(
            error.contains("qwen2moe") && error.contains("llama, qwen2, qwen3"),
            "{error}"
        );
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
