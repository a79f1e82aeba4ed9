//! Writes a model as MLX does: quantised matrices in a safetensors file without padding, its tensors in no order.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::write_folder;
use super::fixture::{Fixture, Weight};

/// Bits of a value, and values of a group.
const BITS: u32 = 4;
const GROUP: usize = 32;

/// What tests vary of a file.
#[derive(Clone, Copy)]
pub struct MlxFile {
    /// Where its first tensor begins, counted from a multiple of 16 bytes.
    pub first_byte: usize,
    /// Whether the last tensor is a matrix and ends with half a word.
    pub ends_with_a_matrix: bool,
}

/// A tensor of the file: name, type, shape and bytes.
pub(super) type Tensor = (String, &'static str, Vec<u64>, Vec<u8>);

/// A folder with `config.json`, `tokenizer.json` and a quantised `model.safetensors`.
pub fn write_mlx_folder(model: &mut Fixture, folder: &Path, file: MlxFile) -> PathBuf {
    model.config["quantization"] = json!({ "group_size": GROUP, "bits": BITS });
    write_folder(model, folder);
    let mut tensors: Vec<Tensor> = model.weights.iter().flat_map(stored).collect();
    // Neither by weight nor by kind, and with an odd number of bytes at the very beginning.
    tensors.sort_by_key(|(name, ..)| name.bytes().rev().collect::<Vec<u8>>());
    tensors.sort_by_key(|(_, kind, ..)| file.ends_with_a_matrix == (*kind != "F32"));
    std::fs::write(
        folder.join("model.safetensors"),
        bytes(&tensors, file.first_byte),
    )
    .expect("written");
    folder.to_path_buf()
}

/// The same values in single precision, as a folder without quantisation.
pub fn write_plain_folder(model: &Fixture, folder: &Path) -> PathBuf {
    write_folder(model, folder);
    let tensors: Vec<Tensor> = model.weights.iter().map(plain).collect();
    std::fs::write(folder.join("model.safetensors"), bytes(&tensors, 0)).expect("written");
    folder.to_path_buf()
}

/// A number that bf16 can hold.
fn cut(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0xffff_0000)
}

/// Its two bytes.
fn cut_bytes(x: f32) -> [u8; 2] {
    ((x.to_bits() >> 16) as u16).to_le_bytes()
}

/// The scale, the bias and the numbers of a group.
fn quantise(group: &[f32]) -> (f32, f32, Vec<u8>) {
    let least = group.iter().copied().fold(f32::INFINITY, f32::min);
    let most = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (scale, bias) = (cut((most - least) / 15.0), cut(least));
    let q = |x: &f32| ((x - bias) / scale).round().clamp(0.0, 15.0) as u8;
    (scale, bias, group.iter().map(q).collect())
}

fn stored(weight: &Weight) -> Vec<Tensor> {
    let values = weight.values();
    let [rows, cols] = weight.shape[..] else {
        let bytes = bytemuck::cast_slice(&values).to_vec();
        return vec![(weight.name.clone(), "F32", weight.shape.clone(), bytes)];
    };
    let (mut packed, mut scales, mut biases) = (Vec::new(), Vec::new(), Vec::new());
    for group in values.chunks(GROUP) {
        let (scale, bias, numbers) = quantise(group);
        packed.extend(numbers.chunks(2).map(|two| two[0] | two[1] << 4));
        scales.extend(cut_bytes(scale));
        biases.extend(cut_bytes(bias));
    }
    let module = weight.name.trim_end_matches(".weight");
    let groups = vec![rows, cols / GROUP as u64];
    vec![
        (
            weight.name.clone(),
            "U32",
            vec![rows, cols * u64::from(BITS) / 32],
            packed,
        ),
        (format!("{module}.scales"), "BF16", groups.clone(), scales),
        (format!("{module}.biases"), "BF16", groups, biases),
    ]
}

fn plain(weight: &Weight) -> Tensor {
    let mut values = weight.values();
    if weight.shape.len() == 2 {
        for group in values.chunks_mut(GROUP) {
            let (scale, bias, numbers) = quantise(group);
            for (value, q) in group.iter_mut().zip(numbers) {
                *value = scale * f32::from(q) + bias;
            }
        }
    }
    let bytes = bytemuck::cast_slice(&values).to_vec();
    (weight.name.clone(), "F32", weight.shape.clone(), bytes)
}

/// The bytes of a safetensors file whose data begins at `first_byte` of 16.
pub(super) fn bytes(tensors: &[Tensor], first_byte: usize) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let begin = data.len();
        data.extend_from_slice(bytes);
        let entry = json!({
            "dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()],
        });
        header.insert(name.clone(), entry);
    }
    let mut header = Value::Object(header).to_string();
    while (size_of::<u64>() + header.len()) % 16 != first_byte {
        header.push(' ');
    }
    let len = (header.len() as u64).to_le_bytes();
    [&len, header.as_bytes(), &data].concat()
}
