//! Folders of 4-bit floats against what the `mlx` package and `transformers` make of them.

use akunu_gguf::{Data, FileBytes, FloatFormat, Repacked, WeightStore, read_safetensors_header};
use akunu_types::DType;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/containers/four_bits")
}

/// The values that a tensor of the fixture should have.
fn expected(name: &str) -> Vec<f32> {
    let file = FileBytes::map(&fixtures().join("expected.safetensors")).unwrap();
    let tensors = read_safetensors_header(Path::new("x"), &file).unwrap();
    let tensor = tensors.iter().find(|tensor| tensor.name == name).unwrap();
    let words = file[tensor.range.clone()].as_chunks().0;
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// The values of a weight, in the blocks that it becomes.
fn found(store: &WeightStore, name: &str, format: FloatFormat) -> Vec<f32> {
    let weight = store.tensor(name).unwrap();
    let Data::Converted(converted) = weight.data else {
        panic!("{name} is not converted");
    };
    assert_eq!(weight.dtype, format.dtype());
    let Ok(Repacked::Blocks(blocks)) = converted.repack() else {
        panic!("{name} has no blocks");
    };
    let mut values = vec![0.0; weight.dims.n_elements()];
    akunu_gguf::quant::dequantise(weight.dtype, &blocks, &mut values).unwrap();
    values
}

/// To the bit: another order of nibbles, or a scale of another group, fails.
#[test]
fn mxfp4_of_mlx_and_of_transformers_keeps_its_values() {
    let mlx = WeightStore::open(fixtures().join("mlx")).unwrap();
    let values = found(&mlx, "mxfp4.weight", FloatFormat::Mxfp4);
    assert_eq!(values, expected("mxfp4"));

    let store = WeightStore::open(fixtures().join("transformers")).unwrap();
    let experts = "model.layers.0.mlp.experts.down_proj";
    let weight = store
        .iter()
        .find(|weight| weight.tensor.starts_with(&format!("{experts}_blocks")));
    let weight = weight.unwrap();
    assert_eq!(
        weight.dims.as_slice(),
        [128, 3, 2],
        "columns, rows, experts"
    );
    let values = found(&store, weight.name, FloatFormat::Mxfp4);
    assert_eq!(values, expected(experts));
    assert_eq!(store.len(), 3, "the scales are no weight of their own");
}

/// 8 bits for values of 4: half a step of the largest of 32, and what rounding the scale to an f16 adds.
#[test]
fn nvfp4_becomes_q8_0_within_its_rounding() {
    let store = WeightStore::open(fixtures().join("mlx")).unwrap();
    let values = found(&store, "nvfp4.weight", FloatFormat::Nvfp4);
    let exact = expected("nvfp4");
    for (values, exact) in values.chunks_exact(32).zip(exact.chunks_exact(32)) {
        let largest = exact
            .iter()
            .fold(0.0, |largest: f32, x| largest.max(x.abs()));
        for (value, exact) in values.iter().zip(exact) {
            assert!((value - exact).abs() <= largest * (0.5 / 127.0 + 1.0 / 2048.0));
        }
    }
}

/// As in MLX's own reader: the mode of the model is not that of a layer with an entry of its own.
#[test]
fn a_layer_whose_entry_names_no_mode_is_affine() {
    let store = WeightStore::open(fixtures().join("mlx")).unwrap();
    let weight = store.tensor("affine.weight").unwrap();
    let Data::Mlx(mlx) = weight.data else {
        panic!("not affine");
    };
    assert_eq!(weight.dtype, DType::MLX_Q4);
    assert_eq!(mlx.dequantise(), expected("affine"));
}
