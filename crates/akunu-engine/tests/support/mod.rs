//! A small model with random weights, written as a GGUF file.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod agreement;
pub mod drafts;
pub mod exact_cpu;
pub mod files;
pub mod fixture;
pub mod float_folder;
pub mod folders;
pub mod mlx_folder;
pub mod pictured;
pub mod random_adapter;
pub mod saved_experts;
pub mod watched;

use std::path::PathBuf;

use self::fixture::Fixture;

use akunu_gguf::{GgufHeader, quant};
use akunu_kernels::case::Rng;
use akunu_types::DType;

/// Shape of the model, which has one key head.
pub const DIM: u64 = 192;
const FFN: u64 = 256;
const VOCAB: u64 = 256;

/// A temporary folder with a model file in it.
pub struct TinyModel {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl TinyModel {
    /// The model of a fixture.
    pub fn of(fixture: &Fixture) -> TinyModel {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = files::write_gguf(fixture, folder.path());
        TinyModel {
            _folder: folder,
            path,
        }
    }
}

/// A Llama with matrices of `dtype`.
pub fn tiny_llama(dtype: DType) -> TinyModel {
    TinyLlama { dtype, ..TINY }.write()
}

/// What tests vary of the small Llama.
#[derive(Clone, Copy)]
pub struct TinyLlama {
    /// Architecture, one that has the weights of a Llama and of `vectors`.
    pub arch: &'static str,
    /// Type of the matrices; of those that it does not fit, BF16.
    pub dtype: DType,
    /// Whether matrices are written in f32, with the values that they have in their type.
    pub widened: bool,
    /// Rows of the token embedding.
    pub vocab_rows: u64,
    /// Keys that a query sees.
    pub window: Option<u32>,
    /// Layers.
    pub n_layers: u32,
    /// Query heads, which share the elements of a row.
    pub n_heads: u64,
    /// The token that ends an answer.
    pub end_token: Option<u32>,
    /// What is added to the biases of keys in the last quarter of the pairs, which turn by next to nothing then.
    pub key_bias: Option<f32>,
}

/// Two layers that see everything, with heads of 64 elements.
pub const TINY: TinyLlama = TinyLlama {
    arch: "llama",
    dtype: DType::Q8_0,
    widened: false,
    vocab_rows: VOCAB,
    window: None,
    n_layers: 2,
    n_heads: 3,
    end_token: None,
    key_bias: None,
};

impl TinyLlama {
    /// Writes the model to a temporary folder.
    pub fn write(self) -> TinyModel {
        write_model(self)
    }
}

fn write_model(model: TinyLlama) -> TinyModel {
    let TinyLlama {
        dtype, n_layers, ..
    } = model;
    let head_dim = DIM / model.n_heads;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tiny.gguf");
    let mut header = GgufHeader::new();
    header.set("general.architecture", model.arch);
    let key = |name: &str| format!("{}.{name}", model.arch);
    for (name, value) in [
        ("block_count", n_layers),
        ("embedding_length", DIM as u32),
        ("feed_forward_length", FFN as u32),
        ("attention.head_count", model.n_heads as u32),
        ("attention.head_count_kv", 1),
        ("context_length", 256),
    ] {
        header.set(&key(name), &value);
    }
    header.set(&key("attention.layer_norm_rms_epsilon"), &1e-5f32);
    if let Some(window) = model.window {
        header.set(&key("attention.sliding_window"), &window);
    }
    if model.key_bias.is_some() {
        header.set(&key("rope.freq_base"), &1e7f32);
    }
    set_vocabulary(&mut header);
    if let Some(token) = model.end_token {
        header.set("tokenizer.ggml.eos_token_id", &token);
    }

    let mut tensors = vec![("token_embd.weight".to_string(), vec![DIM, model.vocab_rows])];
    for layer in 0..n_layers {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        tensors.push((name("attn_norm"), vec![DIM]));
        tensors.push((name("attn_q"), vec![DIM, DIM]));
        tensors.push((name("attn_k"), vec![DIM, head_dim]));
        tensors.push((name("attn_v"), vec![DIM, head_dim]));
        tensors.push((name("attn_output"), vec![DIM, DIM]));
        tensors.push((name("ffn_norm"), vec![DIM]));
        tensors.push((name("ffn_gate"), vec![DIM, FFN]));
        tensors.push((name("ffn_up"), vec![DIM, FFN]));
        tensors.push((name("ffn_down"), vec![FFN, DIM]));
        for (part, n) in vectors(model.arch, head_dim) {
            tensors.push((format!("blk.{layer}.{part}"), vec![n]));
        }
    }
    tensors.push(("output_norm.weight".into(), vec![DIM]));

    let kind = |dims: &[u64]| match dims {
        [_] => DType::F32,
        [cols, ..] if dtype.bytes_of(*cols as usize).is_some() => dtype,
        _ => DType::BF16,
    };
    let stored = |dims: &[u64]| {
        if model.widened {
            DType::F32
        } else {
            kind(dims)
        }
    };
    for (name, dims) in &tensors {
        header.tensor(name, dims, stored(dims));
    }
    let mut writer = header.create(&path).expect("a header");
    let mut rng = Rng::new(42);
    for (name, dims) in &tensors {
        let n = dims.iter().product::<u64>() as usize;
        let mut values = match dims.len() {
            1 => rng.floats(n, 0.2).iter().map(|v| 1.0 + v).collect(),
            _ => rng.floats(n, 1.7 / (dims[0] as f32).sqrt()),
        };
        if let Some(bias) = model.key_bias.filter(|_| name.ends_with("attn_k.bias")) {
            for half in values.chunks_exact_mut(n / 2) {
                half[3 * n / 8..]
                    .iter_mut()
                    .for_each(|value| *value += bias);
            }
        }
        let mut bytes = vec![0; kind(dims).bytes_of(n).expect("whole blocks")];
        quant::quantise(kind(dims), &values, &mut bytes).expect("finite");
        if model.widened {
            quant::dequantise(kind(dims), &bytes, &mut values).expect("whole blocks");
            bytes = bytemuck::cast_slice(&values).to_vec();
        }
        writer.write(name, &bytes).expect("written");
    }
    writer.finish().expect("written");
    TinyModel {
        _folder: folder,
        path,
    }
}

/// The vectors that an architecture has in each layer besides those of a Llama.
fn vectors(arch: &str, head_dim: u64) -> Vec<(&'static str, u64)> {
    match arch {
        "qwen2" => vec![
            ("attn_q.bias", DIM),
            ("attn_k.bias", head_dim),
            ("attn_v.bias", head_dim),
        ],
        "qwen3" => vec![
            ("attn_q_norm.weight", head_dim),
            ("attn_k_norm.weight", head_dim),
        ],
        "gemma3" => vec![
            ("attn_q_norm.weight", head_dim),
            ("attn_k_norm.weight", head_dim),
            ("post_attention_norm.weight", DIM),
            ("post_ffw_norm.weight", DIM),
        ],
        _ => Vec::new(),
    }
}

/// A byte-level vocabulary without merges.
pub fn set_vocabulary(header: &mut GgufHeader) {
    let tokens = byte_tokens();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    header.set("tokenizer.ggml.model", "gpt2");
    header.set("tokenizer.ggml.pre", "gpt-2");
    header.set("tokenizer.ggml.tokens", &tokens[..]);
    header.set("tokenizer.ggml.token_type", &vec![1i32; 256][..]);
    header.set("tokenizer.ggml.merges", &[] as &[&str]);
}

/// A token for each byte, spelled as GPT-2 does.
pub fn byte_tokens() -> Vec<String> {
    let printable = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut shifted = 256;
    (0..256u32)
        .map(|byte| {
            let code = if printable(byte) {
                byte
            } else {
                shifted += 1;
                shifted - 1
            };
            char::from_u32(code).expect("a character").to_string()
        })
        .collect()
}
