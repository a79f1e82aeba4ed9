//! Writes a model both ways: as a GGUF file and as a folder with safetensors.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use akunu_gguf::GgufHeader;
use akunu_types::DType;
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::{TinyModel, byte_tokens, set_vocabulary};

/// The GGUF file of a model that `transformers` ran.
pub fn gguf_of(name: &str) -> TinyModel {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&Fixture::read("transformers", name), folder.path());
    TinyModel {
        _folder: folder,
        path,
    }
}

/// A GGUF file in `folder`.
pub fn write_gguf(model: &Fixture, folder: &Path) -> PathBuf {
    let mut header = GgufHeader::new();
    header.set("general.architecture", model.arch.as_str());
    for (key, value) in &model.metadata {
        match value {
            Value::String(text) => header.set(key, text.as_str()),
            Value::Bool(flag) => header.set(key, flag),
            Value::Number(number) if number.is_u64() => {
                header.set(key, &(number.as_u64().expect("checked") as u32));
            }
            Value::Array(list) if list.iter().all(Value::is_boolean) => {
                let flags: Vec<bool> = list.iter().filter_map(Value::as_bool).collect();
                header.set(key, &flags[..]);
            }
            Value::Array(list) if list.iter().all(Value::is_f64) => {
                let numbers = list.iter().filter_map(Value::as_f64);
                let numbers: Vec<f32> = numbers.map(|number| number as f32).collect();
                header.set(key, &numbers[..]);
            }
            Value::Array(list) => {
                let numbers = list.iter().filter_map(Value::as_u64);
                let numbers: Vec<u32> = numbers.map(|number| number as u32).collect();
                header.set(key, &numbers[..]);
            }
            number => header.set(key, &(number.as_f64().expect("a number") as f32)),
        };
    }
    set_vocabulary(&mut header);
    let mut tensors: Vec<(Cow<str>, Vec<u64>, Vec<f32>)> = Vec::new();
    for weight in &model.weights {
        if let Some(latent) = weight.latent {
            let split = latent.split(&weight.values(), weight.shape[1] as usize);
            for (part, (dims, values)) in ["attn_k_b", "attn_v_b"].into_iter().zip(split) {
                let name = weight.gguf.replace("attn_kv_b", part);
                tensors.push((name.into(), dims, values));
            }
            continue;
        }
        let alike = tensors.iter_mut().find(|(name, ..)| *name == weight.gguf);
        if let Some((_, dims, values)) = alike {
            // The next expert's matrix behind those before it.
            let one = weight.shape.len();
            dims.resize(one + 1, 1);
            dims[one] += 1;
            values.extend(weight.gguf_values());
            continue;
        }
        // GGUF counts from the innermost dimension.
        let mut dims: Vec<u64> = weight.shape.iter().rev().copied().collect();
        if let Some(rows) = weight.gguf_rows {
            dims = vec![dims[0] / rows, rows];
        }
        if weight.gguf_kernel > 0 {
            let side = weight.gguf_kernel as u64;
            let dims = vec![side, side, 3, dims[1]];
            tensors.push((weight.gguf.as_str().into(), dims, weight.gguf_kernel()));
            continue;
        }
        if !weight.gguf_frames.is_empty() {
            dims.remove(2);
            let kernels = weight.gguf_kernels();
            tensors.extend(kernels.map(|(name, values)| (name.into(), dims.clone(), values)));
            continue;
        }
        if !weight.gguf_pieces.is_empty() {
            let parts = weight.gguf_pieced();
            tensors.extend(
                parts.map(|(name, rows, values)| (name.into(), vec![dims[0], rows], values)),
            );
            continue;
        }
        if !weight.gguf_parts.is_empty() {
            let (values, cols) = (weight.gguf_values(), dims[0] as usize);
            for part in &weight.gguf_parts {
                let values = part.values(&values, cols);
                let dims = vec![dims[0], (values.len() / cols) as u64];
                tensors.push((part.gguf.as_str().into(), dims, values));
            }
            continue;
        }
        if let Some(second) = &weight.gguf_half {
            dims[1] /= 2;
            for (name, values) in [&weight.gguf, second].into_iter().zip(weight.gguf_halves()) {
                tensors.push((name.as_str().into(), dims.clone(), values));
            }
            continue;
        }
        tensors.push((weight.gguf.as_str().into(), dims, weight.gguf_values()));
    }
    if let Some(freqs) = &model.rope_freqs {
        let dims = vec![freqs.len() as u64];
        tensors.push(("rope_freqs.weight".into(), dims, freqs.clone()));
    }
    for (name, factors) in model.rope_factors.iter().chain(&model.gguf_only) {
        tensors.push((
            name.as_str().into(),
            vec![factors.len() as u64],
            factors.clone(),
        ));
    }
    for (name, dims, _) in &tensors {
        header.tensor(name, dims, DType::F32);
    }
    let path = folder.join("model.gguf");
    let mut writer = header.create(&path).expect("a header");
    for (name, _, values) in &tensors {
        let bytes = bytemuck::cast_slice(values);
        writer.write(name, bytes).expect("written");
    }
    writer.finish().expect("written");
    path
}

/// A folder with `config.json`, `tokenizer.json` and `model.safetensors`.
pub fn write_folder(model: &Fixture, folder: &Path) -> PathBuf {
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).expect("written");
    };
    write("config.json", model.config.to_string().as_bytes());
    write("tokenizer.json", tokenizer().to_string().as_bytes());
    let weights = model.weights.iter();
    let tensors = weights.map(|weight| {
        let name = weight.stored.as_ref().unwrap_or(&weight.name);
        (&name[..], &weight.shape[..], weight.values())
    });
    write("model.safetensors", &safetensors(tensors));
    folder.to_path_buf()
}

/// The bytes of a safetensors file: names, shapes and numbers.
pub fn safetensors<'t>(tensors: impl Iterator<Item = (&'t str, &'t [u64], Vec<f32>)>) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in tensors {
        let begin = data.len();
        data.extend_from_slice(bytemuck::cast_slice(&values));
        let entry = json!({
            "dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()],
        });
        header.insert(name.to_string(), entry);
    }
    let header = Value::Object(header).to_string();
    let len = (header.len() as u64).to_le_bytes();
    [&len, header.as_bytes(), &data].concat()
}

/// The byte-level vocabulary of the GGUF file.
pub fn tokenizer() -> Value {
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
    });
    let vocab: serde_json::Map<String, Value> = byte_tokens()
        .into_iter()
        .zip((0..).map(Value::from))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "post_processor": null,
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": vocab, "merges": [],
        },
    })
}
