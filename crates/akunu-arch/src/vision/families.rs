//! The families of vision towers, a file each.

use super::family::Family;
use super::{gemma3, idefics3, lfm2, qwen3vl};

/// Every family of towers that can be run.
pub const FAMILIES: &[Family] = &[
    idefics3::FAMILY,
    gemma3::FAMILY,
    qwen3vl::FAMILY,
    lfm2::FAMILY,
];

/// The family that a GGUF file names in `clip.projector_type`.
pub(super) fn by_projector(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

/// The family of a `model_type` in `config.json`.
pub(super) fn by_model_type(name: &str) -> Option<&'static Family> {
    let mut all = FAMILIES.iter();
    all.find(|family| family.model_types.contains(&name))
}

/// Names for the error of a family that is not supported.
pub(super) fn known(of: impl Fn(&Family) -> Vec<&'static str>) -> String {
    let names: Vec<&str> = FAMILIES.iter().flat_map(of).collect();
    names.join(", ")
}
