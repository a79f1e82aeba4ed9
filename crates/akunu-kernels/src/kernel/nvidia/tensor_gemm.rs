//! `tensor_gemm_<format>`, `…_medium_…` and `…_small_…`: `y = alpha * factor * (x @ weightᵀ) + beta * y` on tensor cores.
//!
//! x is in halves with a factor for each row ([`half_rows`](crate::kernel::convert::half_rows)); its rows are `lda` halves
//! apart and hold zeros behind K, up to a multiple of 64. Weights are rounded to halves, sums are floats.
//!
//! | kernel | tile | |
//! |---|---|---|
//! | `tensor_gemm` | 128 × 128 | where that fills the GPU |
//! | `tensor_gemm_medium` | 64 × 64 | smaller outputs; two teams split K |
//! | `tensor_gemm_small` | 16 × 16 | up to 16 rows of MLX's formats; eight teams split K, each a SIMD group that waits for no other |
//!
//! Formats that models are usually published in have the first two ([`common_formats`]), the others the medium one alone, which
//! serves any number of rows. The small one is for MLX's formats, which [`decode_gemm`](super::decode_gemm) does not take.
//! Weights in f32 have none: they keep their precision.

use akunu_types::DType;
use akunu_types::params::GEMMParams;
use half::f16;

use crate::cost::Traffic;
use crate::extent::{bytes, strided};
use crate::kernel::matmul::product::{self, Product};
use crate::kernel::nvidia::staging::Staging;
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers, weight_formats};
use crate::twin::Twin;

/// Values of K that a kernel takes in one step: rows of x end with zeros up to a multiple of it.
pub const STEP: u32 = 64;

/// The formats that have kernels on tensor cores.
pub fn formats() -> impl Iterator<Item = DType> {
    weight_formats().filter(|&dtype| dtype != DType::F32)
}

/// The formats of most published models, which have the large tile too.
pub fn common_formats() -> impl Iterator<Item = DType> {
    formats().filter(|&dtype| is_common(dtype))
}

/// Those of them that have the small tile.
pub fn small_formats() -> impl Iterator<Item = DType> {
    common_formats().filter(|dtype| dtype.mlx_bits().is_some())
}

/// Whether there is a large tile.
pub fn is_common(dtype: DType) -> bool {
    Staging::find(dtype).is_some() || matches!(dtype.mlx_bits(), Some(4 | 8))
}

/// Rows and columns of a tile, and threads of its threadgroup.
struct Tile(u32, u32, u32);

const LARGE: Tile = Tile(128, 128, 256);
const MEDIUM: Tile = Tile(64, 64, 256);
const SMALL: Tile = Tile(16, 16, 256);

/// Rows of a tile of each kernel.
pub const TILE_ROWS: [u32; 3] = [SMALL.0, MEDIUM.0, LARGE.0];

/// How many threadgroups `tensor_gemm` has for `m` rows and `n` outputs.
pub fn n_large_tiles(m: u32, n: u32) -> u32 {
    m.div_ceil(LARGE.0).saturating_mul(n.div_ceil(LARGE.1))
}

buffers! {
    pub struct Buffers, Slices(|args| p = Product::of(args), GEMMParams at 3) {
        x: read f16 = strided(p.m, p.lda, p.k.next_multiple_of(STEP)),
        weight: read Weight = p.weight.bytes(),
        y: change f32 = p.y_len(),
        scale: read f32 = [p.m],
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("tensor_gemm_", ""),
        family: Family::Nvidia,
        launch: |args, _| launch(args, &LARGE),
        work: |args, once| work(args, once, &LARGE),
        twin,
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, cases::LARGE_SHAPES),
        ..product::row_with::<Buffers<()>>(dtype, "tensor_gemm")
    }
}

/// The row of the kernel table.
pub fn medium_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("tensor_gemm_medium_", ""),
        source: "tensor_gemm_medium",
        launch: |args, _| launch(args, &MEDIUM),
        work: |args, once| work(args, once, &MEDIUM),
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, cases::MEDIUM_SHAPES),
        ..row(dtype)
    }
}

/// The row of the kernel table.
pub fn small_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("tensor_gemm_small_", ""),
        source: "tensor_gemm_small",
        launch: |args, _| launch(args, &SMALL),
        work: |args, once| work(args, once, &SMALL),
        #[cfg(feature = "testing")]
        cases: |dtype| cases::all(dtype, cases::SMALL_SHAPES),
        ..row(dtype)
    }
}

/// Rows of x that are not whole vectors of 8 get an empty grid, which the plan check refuses.
fn launch(args: &Args, &Tile(rows, columns, threads): &Tile) -> Launch {
    let p = Product::of(args);
    let n_columns = if p.lda.is_multiple_of(8) {
        p.n.div_ceil(columns)
    } else {
        0
    };
    Launch::new([p.m.div_ceil(rows), n_columns, 1], [threads, 1, 1])
}

fn work(args: &Args, once: crate::cost::Work, tile: &Tile) -> crate::cost::Work {
    let p = Product::of(args);
    let y = bytes::<f32>(&[p.m, p.n]);
    let y = if p.beta == 0.0 {
        Traffic::written(y)
    } else {
        Traffic::both(y)
    };
    let passes = p.m.div_ceil(tile.0) as usize;
    once.with(
        Buffers::PLACES.weight,
        Traffic::read(p.weight.bytes().saturating_mul(passes)),
    )
    .with(Buffers::PLACES.y, y)
    .with_flops(p.flops())
}

fn twin(t: &mut Twin) {
    let product = Product::of(&t.args());
    let Slices {
        x: halves,
        weight,
        y,
        scale,
    } = Slices::of(t);
    let (m, k, lda) = (product.m as usize, product.k as usize, product.lda as usize);
    let mut x = vec![0f32; m * k];
    for (row, x) in x.chunks_exact_mut(k.max(1)).enumerate() {
        for (x, half) in x.iter_mut().zip(&halves[row * lda..]) {
            *x = half.to_f32() * scale[row];
        }
    }
    let product = Product {
        lda: product.k,
        ..product
    };
    product.compute(&x, weight, y);
}

#[cfg(feature = "testing")]
pub(crate) mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::kernel::matmul::shapes::{self, Shape};
    use crate::weight::case_block;
    use akunu_types::params::MLXParams;

    /// A corner of one tile; a row and a column more than one, K of two steps and a tail.
    pub const LARGE_SHAPES: &[Shape] = &[
        Shape::new(5, 33, 97).gaps().factors(0.5, 1.0),
        Shape::new(129, 130, 192),
    ];

    pub const MEDIUM_SHAPES: &[Shape] = &[
        Shape::new(3, 9, 33).factors(0.5, 2.0),
        Shape::new(65, 67, 320).gaps().scale(1e5),
    ];

    pub const SMALL_SHAPES: &[Shape] = &[
        Shape::new(2, 3, 7).special(),
        Shape::new(16, 33, 576).gaps().factors(1.0, 1.0),
        Shape::new(17, 20, 256).scale(1e-4),
    ];

    /// Formats that are read in ways of their own: by the words of a SIMD group, by vectors, by words of a thread, by runs. The
    /// kernels of all others differ from these in what `decode_gemv` and `decode_gemm` are tested with, and get one case of the
    /// larger tiles, which are slow to simulate.
    pub const OF_EACH_KIND: [DType; 5] = [
        DType::Q4_0,
        DType::F16,
        DType::Q4_K,
        DType::Q6_K,
        DType::MLX_Q4,
    ];

    pub fn all(dtype: Option<DType>, shapes: &[Shape]) -> Vec<Case> {
        let each = dtype.into_iter().flat_map(|dtype| {
            let is_whole = OF_EACH_KIND.contains(&dtype) || shapes.len() == SMALL_SHAPES.len();
            let n_shapes = if is_whole { shapes.len() } else { 1 };
            let groups = [32, 64, 128].into_iter();
            let cases = shapes.iter().take(n_shapes).zip(groups);
            cases.map(move |(shape, group)| case(dtype, *shape, group))
        });
        each.collect()
    }

    /// A weight that is rounded to a half is wrong by up to 2⁻¹² of it, 2e-8 squared, and in a sum that nearly cancels by more of
    /// what is left: measured at 1e-7 or less. A wrong nibble or row is above 1e-3.
    pub const NMSE: f64 = 1e-6;

    fn case(dtype: DType, shape: Shape, group: u32) -> Case {
        let block = case_block(dtype, group);
        let shape = Shape {
            k: shape.k.next_multiple_of(block),
            ..shape
        };
        let lda = shape.k.next_multiple_of(STEP) + if shape.gaps { 8 } else { 0 };
        let constants = if shape.special {
            let binding = shapes::Binding::SINGLE;
            shapes::special(dtype, shape, group, binding)
        } else {
            Constants::none()
        };
        let label = format!("{shape:?}");
        let empty = if dtype.mlx_bits().is_some() {
            let params = MLXParams {
                lda,
                ..shapes::mlx_params(dtype, shape, group)
            };
            Case::new(label, &params, NMSE)
        } else {
            let params = GEMMParams {
                lda,
                ..shapes::gemm_params(dtype, shape)
            };
            Case::new(label, &params, NMSE)
        };
        fill(dtype, shape, empty.constants(constants))
    }

    /// x, weight, y and factors. What must not be read is NaN: x behind the zeros, and y where beta is 0.
    fn fill(dtype: DType, shape: Shape, case: Case) -> Case {
        let args = Args {
            dtype: Some(dtype),
            params: case.params.as_bytes(),
            constants: &case.constants,
        };
        let product = Product::of(&args);
        let bytes = Buffers::bytes(&args);
        let mut rng = Rng::new(u64::from(shape.m * 7919 + shape.n * 31 + shape.k));
        let mut x = rng.halves(bytes.x / 2, 2.0);
        for (at, x) in x.iter_mut().enumerate() {
            match at as u32 % product.lda {
                column if column >= product.k.next_multiple_of(STEP) => *x = f16::NAN,
                column if column >= product.k => *x = f16::ZERO,
                _ => {}
            }
        }
        let y = if shape.factors.1 == 0.0 {
            vec![f32::NAN; product.y_len()]
        } else {
            rng.floats(product.y_len(), shape.scale)
        };
        let factors = rng.floats(shape.m as usize, shape.scale);
        let weight = product.weight.random(&mut rng);
        case.bind(&x).bind(&weight).bind(&y).bind(&factors)
    }
}
