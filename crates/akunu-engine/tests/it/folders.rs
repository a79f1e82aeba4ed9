//! Folders whose weights other programs quantised, against the values that their layouts say and against `transformers`.

use akunu_engine::{Model, SessionOptions};
use akunu_gguf::{Data, FileBytes, Repacked, WeightStore, quant, read_safetensors_header};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_types::DType;
use serde::Deserialize;

use crate::support::exact_cpu::exact_cpu;
use crate::support::folders::{copy, fixture};

/// The values of the weight that the fixture has twice.
fn wanted(name: &str) -> Vec<f32> {
    let path = fixture(name).join("wanted.safetensors");
    let file = FileBytes::map(&path).expect("a fixture");
    let tensors = read_safetensors_header(&path, &file).expect("a header");
    let words = file[tensors[0].range.clone()].as_chunks().0;
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// Integers keep their values but for the last bits of `scale * code + bias`; what becomes Q8_0 is rounded by half a step.
fn check_values(name: &str, dtype: DType) {
    let store = WeightStore::open(fixture(name)).expect("a whole folder");
    let weight = store.tensor("layers.0.ffn.down.weight").expect("there");
    assert_eq!(weight.dtype, dtype, "{name}");
    let Data::Converted(converted) = weight.data else {
        panic!("{name} is not converted");
    };
    let wanted = wanted(name);
    let (found, share) = match converted.repack().expect("finite values") {
        Repacked::Affine(affine) => (affine.tensor().dequantise(), 1e-6),
        Repacked::Blocks(blocks) => {
            let mut values = vec![0.0; wanted.len()];
            quant::dequantise(dtype, &blocks, &mut values).expect("whole blocks");
            (values, 0.5 / 127.0 + 1.0 / 2048.0)
        }
    };
    assert_eq!(found.len(), wanted.len());
    for (at, (found, wanted)) in found.chunks(32).zip(wanted.chunks(32)).enumerate() {
        let largest = wanted
            .iter()
            .fold(0.0, |largest: f32, x| largest.max(x.abs()));
        for (found, wanted) in found.iter().zip(wanted) {
            let error = (found - wanted).abs();
            assert!(
                error <= share * largest,
                "{name}, block {at}: {found} and {wanted}"
            );
        }
    }
}

#[derive(Deserialize)]
struct Recorded {
    tokens: Vec<u32>,
    logits: Vec<f32>,
}

/// Keys and values are rounded to 16 bits here, and not in the reference; the CPU rounds what it multiplies with integers to 16 bits
/// besides. What Q8_0 rounds of random weights gives 1e-3. A mistake in one weight gives 1e-2 and more.
fn check_logits(name: &str, dtype: DType) {
    let text = std::fs::read_to_string(fixture(name).join("logits.json")).expect("a fixture");
    let recorded: Recorded = serde_json::from_str(&text).expect("a whole fixture");
    let bounds = if dtype == DType::Q8_0 {
        [3e-3; 2]
    } else {
        [1e-6, 5e-5]
    };
    let folder = copy(name);
    let twin: Box<dyn Device> = Box::new(TwinDevice::new());
    for (device, bound) in [twin, exact_cpu()].into_iter().zip(bounds) {
        let what = format!("{name}, {}", device.name());
        let model = Model::load(folder.path(), device).unwrap_or_else(|error| panic!("{error}"));
        let mut session = model.session(SessionOptions::default()).expect("memory");
        session.feed(&recorded.tokens).expect("fits");
        let error = nmse(&session.logits().expect("there are some"), &recorded.logits);
        assert!(error < bound, "{what}: NMSE {error:e}");
    }
}

fn agrees(name: &str, dtype: DType) {
    check_values(name, dtype);
    check_logits(name, dtype);
}

/// Codes down the columns, zeros less 1.
#[test]
fn gptq_of_4_bits() {
    agrees("gptq", DType::MLX_Q4);
}

/// Codes that lie in two words.
#[test]
fn gptq_of_3_bits() {
    agrees("gptq-3", DType::MLX_Q3);
}

/// Zeros as they are, one group for a row.
#[test]
fn gptq_of_8_bits_in_the_second_version() {
    agrees("gptq-v2", DType::MLX_Q8);
}

/// Columns of one group are not neighbours.
#[test]
fn gptq_whose_columns_were_sorted() {
    agrees("gptq-sorted", DType::Q8_0);
}

/// Eight rows in a word, in AWQ's order.
#[test]
fn awq() {
    agrees("awq", DType::MLX_Q4);
}

/// Blocks that do not divide the rows and columns.
#[test]
fn fp8_with_scales_of_blocks() {
    agrees("fp8", DType::Q8_0);
}

/// One scale, which is not an array.
#[test]
fn fp8_with_one_scale() {
    agrees("fp8-tensor", DType::Q8_0);
}

/// Zeros of 4 bits, down the columns.
#[test]
fn compressed_tensors_of_4_bits() {
    agrees("compressed-4", DType::MLX_Q4);
}

/// No zeros, a scale for each row.
#[test]
fn compressed_tensors_of_8_bits() {
    agrees("compressed-8", DType::MLX_Q8);
}

/// Integers in bytes.
#[test]
fn compressed_tensors_of_integers() {
    agrees("compressed-int", DType::MLX_Q8);
}

/// FP8 with a scale for each row.
#[test]
fn compressed_tensors_of_floats() {
    agrees("compressed-float", DType::Q8_0);
}

/// A scale of the whole weight that divides.
#[test]
fn compressed_tensors_of_nvfp4() {
    agrees("compressed-nvfp4", DType::Q8_0);
}

/// Exponents for 32 values.
#[test]
fn compressed_tensors_of_mxfp4() {
    agrees("compressed-mxfp4", DType::Q8_0);
}

/// A scale of the whole weight that multiplies.
#[test]
fn modelopt() {
    agrees("modelopt", DType::Q8_0);
}

/// The upper half of a byte comes first.
#[test]
fn nf4() {
    agrees("nf4", DType::Q8_0);
}

/// Magnitudes of blocks that are quantised themselves.
#[test]
fn nf4_with_quantised_magnitudes() {
    agrees("nf4-nested", DType::Q8_0);
}

/// 127 for the largest of a row.
#[test]
fn bitsandbytes_of_8_bits() {
    agrees("bnb-8", DType::MLX_Q8);
}
