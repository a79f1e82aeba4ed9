//! Real model files against what the `gguf` and `safetensors` packages find in them.

use akunu_gguf::{ArrayView, Container, GgufFile, Value, WeightStore};
use akunu_types::DType;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

fn asset(name: &str) -> PathBuf {
    let (asset, file) = name.split_once('/').unwrap_or((name, ""));
    akunu_assets::path(asset, file)
}

fn figures() -> Json {
    let json = include_str!("../../fixtures/containers/real_files.json");
    serde_json::from_str(json).expect("the figures are JSON")
}

fn sha(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(bytes) {
        write!(hex, "{byte:02x}").expect("a string takes all");
    }
    hex
}

/// Numbers as little-endian bytes, text with a zero byte behind it: as the script that made the
/// figures does.
fn encode(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::U8(v) => out.extend(v.to_le_bytes()),
        Value::I8(v) => out.extend(v.to_le_bytes()),
        Value::U16(v) => out.extend(v.to_le_bytes()),
        Value::I16(v) => out.extend(v.to_le_bytes()),
        Value::U32(v) => out.extend(v.to_le_bytes()),
        Value::I32(v) => out.extend(v.to_le_bytes()),
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::U64(v) => out.extend(v.to_le_bytes()),
        Value::I64(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
        Value::Bool(v) => out.push(v.into()),
        Value::Str(text) => out.extend([text.as_bytes(), b"\0"].concat()),
        Value::Array(array) => ArrayView::iter(&array).for_each(|element| encode(element, out)),
    }
}

fn metadata_figures(file: &GgufFile) -> BTreeMap<String, (String, String)> {
    let figure = |(key, value): (&str, Value<'_>)| {
        let mut bytes = Vec::new();
        encode(value, &mut bytes);
        (key.to_string(), (value.describe(), sha(&bytes)))
    };
    file.metadata().iter().map(figure).collect()
}

/// Every metadata value and every tensor's name, dimensions, type, offset and size.
#[test]
fn gguf_files_hold_what_the_gguf_package_finds() {
    let figures = figures();
    let files = figures["gguf"].as_object().unwrap();
    assert!(files.len() > 20);
    for (name, expected) in files {
        let file = GgufFile::open(asset(name)).unwrap();
        let mut lines = String::new();
        for tensor in file.tensors() {
            let size = tensor.range.len();
            let at = tensor.range.start;
            writeln!(
                lines,
                "{} {:?} {} {at} {size}",
                tensor.name, tensor.dims, tensor.dtype
            )
            .unwrap();
        }
        assert_eq!(file.tensors().len() as u64, expected["n_tensors"], "{name}");
        assert_eq!(sha(lines.as_bytes()), expected["tensors"], "{name}");
        let metadata: BTreeMap<String, (String, String)> =
            serde_json::from_value(expected["metadata"].clone()).unwrap();
        assert_eq!(metadata_figures(&file), metadata, "{name}");
    }
}

#[test]
fn smollm2_has_all_of_its_weights_under_canonical_names() {
    let store = WeightStore::open(asset("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")).unwrap();
    assert!(store.has_tied_embeddings());
    assert_eq!(store.output().unwrap().dtype, DType::Q8_0);
    assert_eq!(store.len(), 2 + 30 * 9);
    for layer in 0..30 {
        let q = store
            .tensor(&format!("layers.{layer}.attention.q.weight"))
            .unwrap();
        let down = store
            .tensor(&format!("layers.{layer}.ffn.down.weight"))
            .unwrap();
        assert_eq!((q.rows(), q.cols()), (576, 576));
        assert_eq!((down.rows(), down.cols()), (576, 1536));
    }
    assert!(
        store
            .iter()
            .all(|weight| weight.name != weight.tensor || weight.name == "output_norm.weight")
    );
}

#[test]
fn gemma3_has_all_of_its_weights_under_canonical_names() {
    let store = WeightStore::open(asset("gemma3-270m/gemma-3-270m.Q4_K_M.gguf")).unwrap();
    assert!(store.has_tied_embeddings());
    assert_eq!(
        store.tensor("token_embedding.weight").unwrap().rows(),
        262_144
    );
    for layer in 0..18 {
        for norm in [
            "attention_norm",
            "post_attention_norm",
            "ffn_norm",
            "post_ffn_norm",
        ] {
            let name = format!("layers.{layer}.{norm}.weight");
            assert_eq!(store.tensor(&name).unwrap().cols(), 640, "{name}");
        }
        assert_eq!(
            store
                .tensor(&format!("layers.{layer}.attention.q_norm.weight"))
                .unwrap()
                .cols(),
            256
        );
    }
    assert!(store.iter().all(|weight| !weight.name.starts_with("blk.")));
}

#[test]
fn minilm_is_what_the_safetensors_package_reads() {
    let store = WeightStore::open(asset("minilm")).unwrap();
    let Container::Folder(folder) = store.container() else {
        panic!("a folder");
    };
    let mut tensors: Vec<_> = folder.tensors().iter().collect();
    tensors.sort_by_key(|tensor| &tensor.name);
    let mut lines = String::new();
    for tensor in &tensors {
        let (_, span) = folder.tensor(&tensor.name).unwrap();
        // The header of a vector of one and that of a scalar differ; this model has no scalar.
        let hash = sha(span.bytes);
        writeln!(
            lines,
            "{} {:?} {} {hash}",
            tensor.name, tensor.dims, tensor.element
        )
        .unwrap();
    }
    let expected = &figures()["safetensors"]["minilm/model.safetensors"];
    assert_eq!(tensors.len() as u64, expected["n_tensors"]);
    assert_eq!(sha(lines.as_bytes()), expected["tensors"]);
    for name in [
        "token_types.weight",
        "position_embedding.weight",
        "token_embedding_norm.bias",
        "layers.5.attention.q.bias",
        "layers.5.attention_output_norm.weight",
        "layers.5.ffn.up.bias",
        "layers.5.layer_output_norm.bias",
    ] {
        assert!(store.tensor(name).is_some(), "{name}");
    }
}
