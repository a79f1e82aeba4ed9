//! A folder quantised by the `mlx` package against what that package makes of it.

use akunu_gguf::{Data, FileBytes, WeightStore, read_safetensors_header};
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/containers")
}

/// Bit for bit: another packing, another order of operations or a fused multiply-add fails.
#[test]
fn every_width_group_and_scale_type_dequantises_as_mlx_does() {
    let store = WeightStore::open(fixtures().join("mlx")).unwrap();
    let expected = FileBytes::map(&fixtures().join("mlx_expected.safetensors")).unwrap();
    let layers = read_safetensors_header(Path::new("x"), &expected).unwrap();
    assert_eq!(layers.len(), 6 * 3 * 3, "bits × groups × scale types");
    for layer in layers {
        let weight = store.tensor(&format!("{}.weight", layer.name)).unwrap();
        assert_eq!(weight.dims, layer.dims, "{}", layer.name);
        let Data::Mlx(mlx) = weight.data else {
            panic!("{} is not quantised", layer.name);
        };
        let ours: Vec<u32> = mlx
            .dequantise()
            .iter()
            .map(|value| value.to_bits())
            .collect();
        let theirs: Vec<u32> = expected[layer.range.clone()]
            .as_chunks()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect();
        assert_eq!(ours, theirs, "{}", layer.name);
    }
}

#[test]
fn a_row_that_is_not_there_is_refused() {
    let store = WeightStore::open(fixtures().join("mlx")).unwrap();
    let Data::Mlx(mlx) = store.tensor("q4_g64_f16.weight").unwrap().data else {
        panic!("not quantised");
    };
    assert!(
        mlx.dequantise_row(mlx.rows, &mut vec![0.0; mlx.cols])
            .is_err()
    );
    assert!(mlx.dequantise_row(0, &mut vec![0.0; mlx.cols - 1]).is_err());
    assert!(
        mlx.dequantise_row(mlx.rows - 1, &mut vec![0.0; mlx.cols])
            .is_ok()
    );
}
