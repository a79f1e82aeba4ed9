//! Writes a model as MLX does in the modes `mxfp4` and `nvfp4`, and the same values in single precision.

use std::path::{Path, PathBuf};

use akunu_gguf::{FloatFormat, quant};
use akunu_types::DType;
use akunu_types::format::MXFP4_NUMBERS;
use serde_json::json;

use super::files::write_folder;
use super::fixture::{Fixture, Weight};
use super::mlx_folder::{Tensor, bytes};

/// A folder whose matrices are 4-bit floats. With `widened` they have the values in f32 that a device computes with.
pub fn write_float_folder(
    model: &mut Fixture,
    folder: &Path,
    format: FloatFormat,
    widened: bool,
) -> PathBuf {
    if !widened {
        model.config["quantization"] =
            json!({ "group_size": format.group_size(), "bits": 4, "mode": format.name() });
    }
    write_folder(model, folder);
    let tensors = model.weights.iter();
    let tensors: Vec<Tensor> = tensors
        .flat_map(|weight| stored(weight, format, widened))
        .collect();
    std::fs::write(folder.join("model.safetensors"), bytes(&tensors, 5)).expect("written");
    folder.to_path_buf()
}

fn stored(weight: &Weight, format: FloatFormat, widened: bool) -> Vec<Tensor> {
    let mut values = weight.values();
    let of_floats = |values: &[f32]| {
        let bytes = bytemuck::cast_slice(values).to_vec();
        vec![(weight.name.clone(), "F32", weight.shape.clone(), bytes)]
    };
    let [rows, cols] = weight.shape[..] else {
        return of_floats(&values);
    };
    let (mut codes, mut scales) = (Vec::new(), Vec::new());
    for group in values.chunks_mut(format.group_size()) {
        let (bits, scale) = scale_of(group, format);
        scales.push(bits);
        codes.extend(group.iter_mut().map(|value| round(value, scale)));
    }
    if widened {
        let dtype = format.dtype();
        let mut blocks = vec![0; dtype.bytes_of(values.len()).expect("whole blocks")];
        if dtype != DType::MXFP4 {
            quant::quantise(dtype, &values, &mut blocks).expect("finite");
            quant::dequantise(dtype, &blocks, &mut values).expect("whole blocks");
        }
        return of_floats(&values);
    }
    let packed = codes.chunks(2).map(|two| two[0] | two[1] << 4).collect();
    let module = weight.name.trim_end_matches(".weight");
    let groups = vec![rows, cols / format.group_size() as u64];
    vec![
        (weight.name.clone(), "U32", vec![rows, cols / 8], packed),
        (format!("{module}.scales"), "U8", groups, scales),
    ]
}

/// The bits of a scale with which no value is above the largest number, and half of the scale.
pub fn scale_of(group: &[f32], format: FloatFormat) -> (u8, f32) {
    let largest = group
        .iter()
        .fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let exponent = (largest / 6.0).log2().ceil() as i32;
    match format {
        FloatFormat::Mxfp4 => ((exponent + 127) as u8, 2f32.powi(exponent - 1)),
        // 1.5 times a power of two where that is enough.
        FloatFormat::Nvfp4 => {
            let three_quarters = 0.75 * 2f32.powi(exponent);
            let (bits, scale) = match largest <= 6.0 * three_quarters {
                true => ((exponent + 6) << 3 | 4, three_quarters),
                false => ((exponent + 7) << 3, 2f32.powi(exponent)),
            };
            (bits as u8, scale / 2.0)
        }
    }
}

/// Rounds a value to the nearest number times the scale, and gives its code.
pub fn round(value: &mut f32, scale: f32) -> u8 {
    let distance = |code: &usize| (f32::from(MXFP4_NUMBERS[*code]) * scale - *value).abs();
    let codes = 0..MXFP4_NUMBERS.len();
    let code = codes
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .expect("16 codes");
    *value = f32::from(MXFP4_NUMBERS[code]) * scale;
    code as u8
}
