//! Adapters in GGUF files, as llama.cpp's `convert_lora_to_gguf.py` writes them.
//!
//! ```text
//! general.type = "adapter"   adapter.type = "lora"   adapter.lora.alpha   general.architecture
//! blk.0.attn_q.weight.lora_a   (rank, inputs)
//! blk.0.attn_q.weight.lora_b   (outputs, rank)
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{AdapterError, AdapterFile, AdapterProblem, Half, Pair, checked_alpha};
use crate::gguf::{GgufFile, TensorInfo};
use crate::store::canonical_from_gguf;

const ALPHA: &str = "adapter.lora.alpha";

pub(super) fn open(path: &Path) -> Result<AdapterFile, AdapterError> {
    let in_file = |problem: AdapterProblem| problem.in_file(path);
    let file = GgufFile::open(path)?;
    let (architecture, alpha) = describe(&file)?;
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for info in file.tensors() {
        let (weight, is_a) =
            named(&info.name).ok_or_else(|| in_file(AdapterProblem::Tensor(info.name.clone())))?;
        let pair = pairs.entry(weight).or_default();
        let half = if is_a { &mut pair.a } else { &mut pair.b };
        if half.replace(half_of(&file, info)).is_some() {
            return Err(in_file(AdapterProblem::Twice(info.name.clone())));
        }
    }
    let scaling = |_: &str, rank: usize| Ok((alpha / rank as f64) as f32);
    AdapterFile::assemble(path, Some(architecture), pairs, scaling)
}

/// The architecture and alpha.
fn describe(file: &GgufFile) -> Result<(String, f64), AdapterError> {
    let metadata = file.metadata();
    let in_file = |problem: AdapterProblem| problem.in_file(file.path());
    if metadata.string("general.type")? != Some("adapter") {
        return Err(in_file(AdapterProblem::Model));
    }
    let kind = metadata.string("adapter.type")?;
    let kind = kind.ok_or_else(|| metadata.missing("adapter.type"))?;
    if kind != "lora" {
        let what = format!("is an adapter of the type `{kind}`");
        return Err(in_file(AdapterProblem::Unsupported(what)));
    }
    let architecture = metadata.string("general.architecture")?;
    let architecture = architecture.ok_or_else(|| metadata.missing("general.architecture"))?;
    let alpha = metadata.f32(ALPHA)?;
    let alpha = alpha.ok_or_else(|| in_file(AdapterProblem::NoAlpha(ALPHA)))?;
    let alpha = checked_alpha(ALPHA, alpha.into()).map_err(in_file)?;
    Ok((architecture.to_string(), alpha))
}

/// The canonical name of the weight that a tensor is for, and whether it is A.
fn named(tensor: &str) -> Option<(String, bool)> {
    let (weight, half) = tensor.rsplit_once('.')?;
    let is_a = match half {
        "lora_a" => true,
        "lora_b" => false,
        _ => return None,
    };
    Some((canonical_from_gguf(weight)?, is_a))
}

fn half_of(file: &GgufFile, info: &TensorInfo) -> Half {
    Half {
        tensor: info.name.clone(),
        dims: info.dims,
        dtype: info.dtype,
        file: Arc::clone(&file.parts()[info.part]),
        range: info.range.clone(),
    }
}
