//! The cases of the products: shapes, and the data for them.

use akunu_program::MlxLayout;
use akunu_types::DType;
use akunu_types::params::{GEMMParams, MLXParams};

use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::table::Args;
use crate::weight;

use super::product::Product;

/// What is awkward about a case.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of x and y.
    pub m: u32,
    /// Columns of y.
    pub n: u32,
    /// Columns of x, made a whole number of blocks.
    pub k: u32,
    /// Size of the numbers in x.
    pub scale: f32,
    /// Factors of the product and of what y held.
    pub factors: (f32, f32),
    /// Whether rows lie further apart than they are long.
    pub gaps: bool,
    /// Whether function constants are set.
    pub special: bool,
}

impl Shape {
    /// Contiguous rows of numbers about 1, overwriting y, without constants.
    pub const fn new(m: u32, n: u32, k: u32) -> Shape {
        Shape {
            m,
            n,
            k,
            scale: 1.0,
            factors: (1.0, 0.0),
            gaps: false,
            special: false,
        }
    }

    /// The same with numbers of another size.
    pub const fn scale(self, scale: f32) -> Shape {
        Shape { scale, ..self }
    }

    /// The same with factors.
    pub const fn factors(self, alpha: f32, beta: f32) -> Shape {
        Shape {
            factors: (alpha, beta),
            ..self
        }
    }

    /// The same with gaps between rows.
    pub const fn gaps(self) -> Shape {
        Shape { gaps: true, ..self }
    }

    /// The same, specialised.
    pub const fn special(self) -> Shape {
        Shape {
            special: true,
            ..self
        }
    }
}

/// How a kernel is bound: how many inputs lie before the weight, and which constants it has.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// 1, or 2 for gate and up.
    pub inputs: usize,
    /// Whether it looks at the number of rows as a constant.
    pub batch: bool,
}

impl Binding {
    /// One input, and no constant for the number of rows.
    pub const SINGLE: Binding = Binding {
        inputs: 1,
        batch: false,
    };
}

/// The cases of a kernel.
pub fn cases(dtype: Option<DType>, shapes: &[Shape], binding: Binding) -> Vec<Case> {
    let Some(dtype) = dtype else {
        return Vec::new();
    };
    let each = shapes.iter().enumerate();
    each.map(|(at, shape)| case(dtype, *shape, [32, 64, 128][at % 3], binding))
        .collect()
}

/// Sums of the same f32 products in another order, and of `scale * Σ q x + offset * Σ x` instead of
/// `Σ (scale * q + offset) * x`: measured at 3e-12 or less, a wrong nibble or row is above 1e-3. A case
/// has a few outputs at least, because a single sum may nearly cancel.
const NMSE: f64 = 1e-10;

fn case(dtype: DType, shape: Shape, group_size: u32, binding: Binding) -> Case {
    let block = weight::case_block(dtype, group_size);
    let shape = Shape {
        k: shape.k.next_multiple_of(block),
        ..shape
    };
    let constants = if shape.special {
        special(dtype, shape, group_size, binding)
    } else {
        Constants::none()
    };
    let label = format!("{shape:?}");
    let empty = if dtype.mlx_bits().is_some() {
        Case::new(label, &mlx_params(dtype, shape, group_size), NMSE)
    } else {
        Case::new(label, &gemm_params(dtype, shape), NMSE)
    };
    fill(dtype, shape, empty.constants(constants), binding)
}

pub fn special(dtype: DType, shape: Shape, group_size: u32, binding: Binding) -> Constants {
    let mut constants = Constants::none().with_u32(Constant::GemmK, shape.k);
    if dtype.mlx_bits().is_some() {
        let params = weight::mlx_params(dtype, shape.n, shape.k, group_size);
        constants =
            weight::mlx_constants(&MlxLayout::of(&params)).with_u32(Constant::GemmK, shape.k);
    }
    if binding.batch {
        constants = constants.with_u32(Constant::BatchM, shape.m);
    }
    constants
}

pub fn gemm_params(dtype: DType, shape: Shape) -> GEMMParams {
    let gap = u32::from(shape.gaps);
    GEMMParams {
        M: shape.m,
        N: shape.n,
        K: shape.k,
        lda: shape.k + 3 * gap,
        ldb: shape.k + gap * dtype.block_len() as u32,
        ldc: shape.n + 5 * gap,
        alpha: shape.factors.0,
        beta: shape.factors.1,
    }
}

pub fn mlx_params(dtype: DType, shape: Shape, group_size: u32) -> MLXParams {
    let gap = u32::from(shape.gaps);
    MLXParams {
        M: shape.m,
        lda: shape.k + 3 * gap,
        ldc: shape.n + 5 * gap,
        alpha: shape.factors.0,
        beta: shape.factors.1,
        ..weight::mlx_params(dtype, shape.n, shape.k, group_size)
    }
}

/// Inputs, weight and y. What must not be read is NaN: the gaps of x, and y where beta is 0.
fn fill(dtype: DType, shape: Shape, case: Case, binding: Binding) -> Case {
    let product = Product::of(&Args {
        dtype: Some(dtype),
        params: case.params.as_bytes(),
        constants: &case.constants,
    });
    let mut rng = Rng::new(u64::from(shape.m * 7919 + shape.n * 31 + shape.k));
    let mut filled = case.clone();
    for _ in 0..binding.inputs {
        let mut x = rng.floats(product.x_len(), shape.scale);
        for (at, value) in x.iter_mut().enumerate() {
            if at as u32 % product.lda >= product.k {
                *value = f32::NAN;
            }
        }
        filled = filled.bind(&x);
    }
    let y = match shape.factors.1 {
        0.0 => vec![f32::NAN; product.y_len()],
        _ => rng.floats(product.y_len(), shape.scale),
    };
    filled.bind(&product.weight.random(&mut rng)).bind(&y)
}
