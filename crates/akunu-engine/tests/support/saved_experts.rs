//! Writes gpt-oss as `transformers` saves it: gate and up of all experts in one tensor, their rows in turn, and matrices of numbers
//! with the columns as rows.

use std::path::{Path, PathBuf};

use akunu_gguf::FloatFormat;
use serde_json::json;

use super::files::write_folder;
use super::fixture::{Fixture, Weight};
use super::float_folder::{round, scale_of};
use super::mlx_folder::{Tensor, bytes};

/// What the numbers of experts are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Those of the model.
    Exact,
    /// Rounded to 4-bit floats, and written as numbers.
    Rounded,
    /// 4-bit floats.
    FourBits,
}

/// A folder whose experts have such numbers.
pub fn write_saved_experts(model: &mut Fixture, folder: &Path, numbers: Numbers) -> PathBuf {
    if numbers == Numbers::FourBits {
        model.config["quantization_config"] = json!({ "quant_method": "mxfp4" });
    }
    write_folder(model, folder);
    let of_name = |name: String| model.weights.iter().find(move |weight| weight.name == name);
    let mut tensors = Vec::new();
    for weight in &model.weights {
        let Some((module, part)) = weight.name.split_once(".experts.") else {
            tensors.push(plain(&weight.name, &weight.shape, &weight.values()));
            continue;
        };
        let name = |part: &str| format!("{module}.experts.{part}");
        let up = |kind| of_name(name(&format!("up_proj.{kind}"))).expect("as many as of the gate");
        match part {
            "gate_proj.bias" => {
                let [count, width] = weight.shape[..] else {
                    panic!("{:?}", weight.shape)
                };
                let both = in_turn(&weight.values(), &up("bias").values(), 1);
                tensors.push(plain(
                    &name("gate_up_proj_bias"),
                    &[count, 2 * width],
                    &both,
                ));
            }
            "down_proj.bias" => {
                tensors.push(plain(
                    &name("down_proj_bias"),
                    &weight.shape,
                    &weight.values(),
                ));
            }
            "gate_proj.weight" => {
                let [count, width, cols] = sizes(weight);
                let both = in_turn(&weight.values(), &up("weight").values(), cols);
                let shape = [count, 2 * width, cols];
                tensors.extend(matrices(&name("gate_up_proj"), shape, both, numbers));
            }
            "down_proj.weight" => {
                let (values, shape) = (weight.values(), sizes(weight));
                tensors.extend(matrices(&name("down_proj"), shape, values, numbers));
            }
            _ => {}
        }
    }
    std::fs::write(folder.join("model.safetensors"), bytes(&tensors, 5)).expect("written");
    folder.to_path_buf()
}

fn sizes(weight: &Weight) -> [usize; 3] {
    let [count, rows, cols] = weight.shape[..] else {
        panic!("{:?}", weight.shape)
    };
    [count, rows, cols].map(|n| n as usize)
}

fn plain(name: &str, shape: &[u64], values: &[f32]) -> Tensor {
    let bytes = bytemuck::cast_slice(values).to_vec();
    (name.to_string(), "F32", shape.to_vec(), bytes)
}

/// A row of the one and a row of the other, again and again.
fn in_turn(gate: &[f32], up: &[f32], cols: usize) -> Vec<f32> {
    let rows = gate.chunks(cols).zip(up.chunks(cols));
    rows.flat_map(|(gate, up)| [gate, up].concat()).collect()
}

/// The tensors of a stack of matrices.
fn matrices(
    name: &str,
    [count, rows, cols]: [usize; 3],
    mut values: Vec<f32>,
    numbers: Numbers,
) -> Vec<Tensor> {
    let (mut codes, mut scales) = (Vec::new(), Vec::new());
    if numbers != Numbers::Exact {
        for group in values.chunks_mut(32) {
            let (bits, scale) = scale_of(group, FloatFormat::Mxfp4);
            scales.push(bits);
            codes.extend(group.iter_mut().map(|value| round(value, scale)));
        }
    }
    let sizes = [count, rows, cols / 32].map(|n| n as u64);
    if numbers == Numbers::FourBits {
        let packed = codes.chunks(2).map(|two| two[0] | two[1] << 4).collect();
        let shape = [&sizes[..], &[16]].concat();
        return vec![
            (format!("{name}_blocks"), "U8", shape, packed),
            (format!("{name}_scales"), "U8", sizes.to_vec(), scales),
        ];
    }
    let matrices = values.chunks(rows * cols);
    let of_columns = matrices.flat_map(|matrix| {
        let places = (0..cols).flat_map(|col| (0..rows).map(move |row| row * cols + col));
        places.map(|at| matrix[at]).collect::<Vec<f32>>()
    });
    let turned: Vec<f32> = of_columns.collect();
    vec![plain(name, &[count, cols, rows].map(|n| n as u64), &turned)]
}
