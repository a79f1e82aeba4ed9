//! A Whisper with random weights, small enough for the reference device, in both kinds of folder.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const DIM: usize = 64;
/// Filters of the spectrogram.
pub const N_MELS: usize = 16;
/// Positions of a window, which lasts a second.
pub const N_AUDIO: usize = 50;
const N_TEXT: usize = 24;
/// 26 letters, 9 tokens that are no text, and the times of a second.
const VOCABULARY: usize = 26 + 9 + N_AUDIO + 1;

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Weights under the names of Hugging Face.
fn weights() -> Tensors {
    let mut state = 5u32;
    let mut tensors = Tensors::new();
    let mut add = |name: String, dims: &[usize]| {
        let n: usize = dims.iter().product();
        let is_norm = name.contains("layer_norm.weight");
        let random = (0..n).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = (state >> 8) as f32 / 16_777_216.0 - 0.5;
            if is_norm {
                1.0 + 0.2 * value
            } else {
                0.5 * value
            }
        });
        tensors.insert(name, (dims.to_vec(), random.collect()));
    };
    for (conv, channels) in [("conv1", N_MELS), ("conv2", DIM)] {
        add(format!("encoder.{conv}.weight"), &[DIM, channels, 3]);
        add(format!("encoder.{conv}.bias"), &[DIM]);
    }
    add("decoder.embed_tokens.weight".into(), &[VOCABULARY, DIM]);
    for (stack, n_positions) in [("encoder", N_AUDIO), ("decoder", N_TEXT)] {
        add(
            format!("{stack}.embed_positions.weight"),
            &[n_positions, DIM],
        );
        let mut norms = vec![format!("{stack}.layer_norm")];
        for layer in 0..2 {
            let name = |part: &str| format!("{stack}.layers.{layer}.{part}");
            norms.extend([name("self_attn_layer_norm"), name("final_layer_norm")]);
            let mut attention = vec!["self_attn"];
            if stack == "decoder" {
                norms.push(name("encoder_attn_layer_norm"));
                attention.push("encoder_attn");
            }
            for attention in attention {
                for part in ["q", "k", "v", "out"] {
                    let module = name(&format!("{attention}.{part}_proj"));
                    add(format!("{module}.weight"), &[DIM, DIM]);
                    if part != "k" {
                        add(format!("{module}.bias"), &[DIM]);
                    }
                }
            }
            for (part, rows, cols) in [("fc1", 2 * DIM, DIM), ("fc2", DIM, 2 * DIM)] {
                add(name(&format!("{part}.weight")), &[rows, cols]);
                add(name(&format!("{part}.bias")), &[rows]);
            }
        }
        for norm in norms {
            add(format!("{norm}.weight"), &[DIM]);
            add(format!("{norm}.bias"), &[DIM]);
        }
    }
    tensors
}

fn write_tokenizer(folder: &Path) {
    let letters = (b'a'..=b'z').zip(0..);
    let vocabulary: BTreeMap<String, u32> = letters
        .map(|(letter, id)| (char::from(letter).to_string(), id))
        .collect();
    let names = [
        "endoftext",
        "startoftranscript",
        "en",
        "translate",
        "transcribe",
        "startoflm",
        "startofprev",
        "nospeech",
        "notimestamps",
    ];
    let added = names.iter().zip(26..).map(|(name, id): (_, u32)| {
        json!({
            "id": id, "content": format!("<|{name}|>"), "special": true,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        })
    });
    let level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
    });
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": level,
        "post_processor": null,
        "decoder": level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "vocab": vocabulary, "merges": [],
        },
    });
    let path = folder.join("tokenizer.json");
    std::fs::write(path, tokenizer.to_string()).unwrap();
}

/// What both kinds of folder say in JSON.
fn write_json(folder: &Path) {
    write_tokenizer(folder);
    let config = json!({
        "model_type": "whisper", "encoder_attention_heads": 2,
        "suppress_ids": [1], "suppress_ids_begin": [2, 26], "alignment_heads": [[1, 0], [1, 1]],
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

/// A Hugging Face folder.
pub fn write_hugging_face(folder: &Path) {
    write_json(folder);
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for (name, (dims, values)) in weights() {
        let begin = data.len();
        values.iter().for_each(|v| data.extend(v.to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": dims, "data_offsets": [begin, data.len()]});
        header.insert(format!("model.{name}"), entry);
    }
    let header = serde_json::Value::from(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    std::fs::write(folder.join("model.safetensors"), file).unwrap();
}

/// The same model in a CTranslate2 folder, with q, k and v together.
pub fn write_ctranslate2(folder: &Path) {
    write_json(folder);
    let weights = weights();
    let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> = Vec::new();
    let mut take = |ct2: String, parts: &[String]| {
        let mut dims = Vec::new();
        let mut values = Vec::new();
        for part in parts {
            // Keys have no bias, which is zero in a matrix with others.
            let zeros = (vec![DIM], vec![0.0; DIM]);
            let (part_dims, part_values) = weights.get(part).unwrap_or(&zeros);
            if dims.is_empty() {
                dims.clone_from(part_dims);
            } else {
                dims[0] += part_dims[0];
            }
            values.extend(part_values);
        }
        tensors.push((ct2, dims, values));
    };
    let same = [("conv1", "conv1"), ("conv2", "conv2")];
    for (hf, ct2) in same {
        for part in ["weight", "bias"] {
            take(
                format!("encoder/{ct2}/{part}"),
                &[format!("encoder.{hf}.{part}")],
            );
        }
    }
    let embedding = "decoder.embed_tokens.weight".to_string();
    take("decoder/embeddings/weight".into(), &[embedding]);
    for stack in ["encoder", "decoder"] {
        take(
            format!("{stack}/position_encodings/encodings"),
            &[format!("{stack}.embed_positions.weight")],
        );
        for (hf, ct2) in [("weight", "gamma"), ("bias", "beta")] {
            take(
                format!("{stack}/layer_norm/{ct2}"),
                &[format!("{stack}.layer_norm.{hf}")],
            );
        }
        for layer in 0..2 {
            let hf = |part: &str| format!("{stack}.layers.{layer}.{part}");
            let mut blocks = vec![
                (
                    "self_attention",
                    "self_attn",
                    vec![vec!["q", "k", "v"], vec!["out"]],
                ),
                ("ffn", "", vec![vec!["fc1"], vec!["fc2"]]),
            ];
            if stack == "decoder" {
                let parts = vec![vec!["q"], vec!["k", "v"], vec!["out"]];
                blocks.push(("attention", "encoder_attn", parts));
            }
            for (block, attention, linear) in blocks {
                let norm = match attention {
                    "" => "final".to_string(),
                    attention => attention.to_string(),
                };
                for (suffix, part) in [("weight", "gamma"), ("bias", "beta")] {
                    take(
                        format!("{stack}/layer_{layer}/{block}/layer_norm/{part}"),
                        &[hf(&format!("{norm}_layer_norm.{suffix}"))],
                    );
                }
                for (number, parts) in linear.iter().enumerate() {
                    for suffix in ["weight", "bias"] {
                        let name = |part: &&str| match attention {
                            "" => hf(&format!("{part}.{suffix}")),
                            attention => hf(&format!("{attention}.{part}_proj.{suffix}")),
                        };
                        let parts: Vec<String> = parts.iter().map(name).collect();
                        take(
                            format!("{stack}/layer_{layer}/{block}/linear_{number}/{suffix}"),
                            &parts,
                        );
                    }
                }
            }
        }
    }
    std::fs::write(folder.join("model.bin"), container(&tensors)).unwrap();
}

/// `model.bin`.
fn container(tensors: &[(String, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let string = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u16 + 1).to_le_bytes());
        file.extend(text.as_bytes());
        file.push(0);
    };
    file.extend(6u32.to_le_bytes());
    string(&mut file, "WhisperSpec");
    file.extend(3u32.to_le_bytes());
    file.extend((tensors.len() as u32 + 1).to_le_bytes());
    string(&mut file, "encoder/num_heads");
    file.extend([0, 2]);
    file.extend(2u32.to_le_bytes());
    file.extend(2u16.to_le_bytes());
    for (name, dims, values) in tensors {
        string(&mut file, name);
        file.push(dims.len() as u8);
        dims.iter()
            .for_each(|&dim| file.extend((dim as u32).to_le_bytes()));
        file.push(0);
        file.extend((4 * values.len() as u32).to_le_bytes());
        values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    }
    file.extend(0u32.to_le_bytes());
    file
}
