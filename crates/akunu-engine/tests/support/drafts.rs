//! Draft models for tests: a real model without some of its layers, and a pair whose share of right guesses is known.

use std::path::Path;

use akunu_gguf::{GgufFile, GgufHeader};
use akunu_types::DType;

use super::{TinyModel, set_vocabulary};

/// A copy of a model without some of its layers: it mostly says the same, and at times something else.
pub fn without_layers(path: &Path, left_out: &[u32]) -> TinyModel {
    let file = GgufFile::open(path).expect("a model");
    let metadata = file.metadata();
    let arch = metadata.string("general.architecture").expect("text");
    let count = format!("{}.block_count", arch.expect("there"));
    let n_layers = metadata.u32(&count).expect("a number").expect("there");
    let mut header = GgufHeader::new();
    header.copy_metadata(metadata);
    header.set(&count, &(n_layers - left_out.len() as u32));
    let kept = file.tensors().iter().filter_map(|tensor| {
        let name = tensor.name.as_str();
        let layer = name.strip_prefix("blk.").and_then(|rest| {
            let (layer, part) = rest.split_once('.')?;
            Some((layer.parse::<u32>().ok()?, part))
        });
        let Some((layer, part)) = layer else {
            return Some((name.to_string(), tensor));
        };
        let n_before = left_out.iter().filter(|out| **out < layer).count() as u32;
        let is_kept = !left_out.contains(&layer);
        is_kept.then(|| (format!("blk.{}.{part}", layer - n_before), tensor))
    });
    let kept: Vec<_> = kept.collect();
    for (name, tensor) in &kept {
        let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|n| *n as u64).collect();
        header.tensor(name, &dims, tensor.dtype);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("draft.gguf");
    let mut writer = header.create(&path).expect("a header");
    for (name, tensor) in &kept {
        let view = file.view(tensor).expect("in the file");
        writer.write(name, view.bytes).expect("written");
    }
    writer.finish().expect("written");
    TinyModel {
        _folder: folder,
        path,
    }
}

/// Tokens of [`planted`] models.
pub const PLANTED_VOCAB: u32 = 256;

/// A model without a memory. All tokens are equally likely to come next, except after those below `n_certain`: there it
/// always says token 0.
///
/// As a draft of the same model with `n_certain` of 0, its guess is the model's draw unless the token before is below
/// `n_certain`. Draws are uniform, so the share of right guesses is
///
/// ```text
/// a = 1 - n_certain / vocab · (1 - 1 / vocab)
/// ```
pub fn planted(n_certain: u32) -> TinyModel {
    const DIM: u64 = 64;
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    for (key, value) in [
        ("block_count", 1),
        ("embedding_length", DIM as u32),
        ("feed_forward_length", DIM as u32),
        ("attention.head_count", 1),
        ("attention.head_count_kv", 1),
        ("context_length", 4096u32),
    ] {
        header.set(&format!("llama.{key}"), &value);
    }
    header.set("llama.attention.layer_norm_rms_epsilon", &1e-5f32);
    set_vocabulary(&mut header);
    let vocab = u64::from(PLANTED_VOCAB);
    let mut tensors: Vec<(String, Vec<u64>)> = vec![
        ("token_embd.weight".into(), vec![DIM, vocab]),
        ("output.weight".into(), vec![DIM, vocab]),
        ("output_norm.weight".into(), vec![DIM]),
    ];
    for norm in ["attn_norm", "ffn_norm"] {
        tensors.push((format!("blk.0.{norm}.weight"), vec![DIM]));
    }
    for matrix in [
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    ] {
        tensors.push((format!("blk.0.{matrix}.weight"), vec![DIM, DIM]));
    }
    for (name, dims) in &tensors {
        header.tensor(name, dims, DType::F32);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("planted.gguf");
    let mut writer = header.create(&path).expect("a header");
    for (name, dims) in &tensors {
        let n = dims.iter().product::<u64>() as usize;
        let mut values = vec![if dims.len() == 1 { 1.0f32 } else { 0.0 }; n];
        // The first element of a row says that it is certain, and the output matrix turns that into token 0.
        match name.as_str() {
            "token_embd.weight" => {
                let rows = values.chunks_mut(DIM as usize);
                rows.take(n_certain as usize).for_each(|row| row[0] = 1.0);
            }
            "output.weight" => values[0] = 10.0,
            _ => {}
        }
        writer
            .write(name, bytemuck::cast_slice(&values))
            .expect("written");
    }
    writer.finish().expect("written");
    TinyModel {
        _folder: folder,
        path,
    }
}
