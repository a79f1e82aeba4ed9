//! MLX weights against figures of MLX itself.
//!
//! `fixtures/make_mlx_fixtures.py` had MLX quantise random weights and say what they stand for.

use akunu_kernels::KernelId;
use akunu_kernels::case::Case;
use akunu_types::DType;
use akunu_types::params::MLXParams;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    bits: u32,
    group_size: u32,
    rows: u32,
    cols: u32,
    packed: Vec<u32>,
    scales: Vec<u16>,
    biases: Vec<u16>,
    values: Vec<f32>,
}

impl Fixture {
    /// The buffer that our kernels read: packed values, scales, biases.
    fn weight(&self) -> Vec<u8> {
        let parts: [&[u8]; 3] = [
            bytemuck::cast_slice(&self.packed),
            bytemuck::cast_slice(&self.scales),
            bytemuck::cast_slice(&self.biases),
        ];
        parts.concat()
    }

    /// A lookup of every row.
    fn lookup(&self) -> Case {
        let params = MLXParams {
            M: self.rows,
            N: self.rows,
            K: self.cols,
            group_size: self.group_size,
            scales_at: 4 * self.packed.len() as u32,
            biases_at: 4 * self.packed.len() as u32 + 2 * self.scales.len() as u32,
            ..Default::default()
        };
        let ids: Vec<u32> = (0..self.rows).collect();
        Case::new("every row", &params, 0.0)
            .bind(&ids)
            .bind(&self.weight())
            .bind(&vec![0f32; self.values.len()])
    }
}

/// Fails on a wrong order of bits, a wrong group, or scales and biases swapped. The figures have six
/// decimals.
#[test]
fn rows_are_what_mlx_says() {
    let fixtures: Vec<Fixture> =
        serde_json::from_str(include_str!("../fixtures/mlx.json")).expect("the fixture is JSON");
    assert_eq!(fixtures.len(), 7);
    for fixture in fixtures {
        let dtype = DType::mlx(fixture.bits).expect("MLX has this width");
        let written = fixture
            .lookup()
            .expected(&KernelId::EmbeddingLookup(dtype).row());
        let values: &[f32] = bytemuck::cast_slice(written[0].1.as_ref());
        assert_eq!(values.len(), fixture.values.len());
        for (i, (found, wanted)) in values.iter().zip(&fixture.values).enumerate() {
            assert!(
                (found - wanted).abs() < 2e-6,
                "{dtype}, value {i}: {found} instead of {wanted}"
            );
        }
    }
}
