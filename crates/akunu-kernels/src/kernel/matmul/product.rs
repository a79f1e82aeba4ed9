//! What all products have in common: the params of both weight families, sizes, twin.

use akunu_types::params::{GEMMParams, MLXParams};
use akunu_types::{DType, SharedStruct, StructLayout};

use crate::constant::Constant;
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, strided};
use crate::table::{Args, BufferSet, Family, KernelRow, Weight, buffers};
use crate::twin::Twin;
use crate::weight::WeightLayout;

/// A product, whichever params struct described it.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Rows of x and y.
    pub m: u32,
    /// Columns of y.
    pub n: u32,
    /// Columns of x.
    pub k: u32,
    /// Elements between rows of x.
    pub lda: u32,
    /// Elements between rows of y.
    pub ldc: u32,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of what y held.
    pub beta: f32,
    /// The weight, (n, k).
    pub weight: WeightLayout,
}

impl Product {
    /// Reads the params; function constants go before them.
    pub fn of(args: &Args) -> Product {
        let dtype = args.format();
        let set = |constant, from_params| args.constants.u32(constant).unwrap_or(from_params);
        if dtype.mlx_bits().is_some() {
            let p: MLXParams = args.params();
            let k = set(Constant::GemmK, p.K);
            let weight = WeightLayout {
                cols: p.K.max(k) as usize,
                ..WeightLayout::mlx(args)
            };
            Product {
                m: set(Constant::BatchM, p.M),
                n: p.N,
                k,
                lda: p.lda,
                ldc: p.ldc,
                alpha: p.alpha,
                beta: p.beta,
                weight,
            }
        } else {
            let p: GEMMParams = args.params();
            let k = set(Constant::GemmK, p.K);
            Product {
                m: set(Constant::BatchM, p.M),
                n: p.N,
                k,
                lda: p.lda,
                ldc: p.ldc,
                alpha: p.alpha,
                beta: p.beta,
                weight: WeightLayout {
                    stride: p.ldb as usize,
                    ..WeightLayout::contiguous(dtype, p.N as usize, k as usize)
                },
            }
        }
    }

    /// A single vector times a contiguous weight, overwriting y.
    pub fn single(weight: WeightLayout) -> Product {
        let (n, k) = (weight.rows as u32, weight.cols as u32);
        Product {
            m: 1,
            n,
            k,
            lda: k,
            ldc: n,
            alpha: 1.0,
            beta: 0.0,
            weight,
        }
    }

    /// Elements of x.
    pub fn x_len(&self) -> usize {
        strided(self.m, self.lda, self.k)
    }

    /// Elements of y.
    pub fn y_len(&self) -> usize {
        strided(self.m, self.ldc, self.n)
    }

    /// What a kernel does that reads the weights once for every `rows` rows of x. The weight and y are its
    /// last bindings.
    pub fn work(&self, once: Work, rows: u32) -> Work {
        let y = bytes::<f32>(&[self.m, self.n]);
        let y = match self.beta {
            0.0 => Traffic::written(y),
            _ => Traffic::both(y),
        };
        let passes = self.m.div_ceil(rows) as usize;
        let weight = Traffic::read(self.weight.read_bytes().saturating_mul(passes));
        let last = once.traffic.len() - 1;
        once.with(last - 1, weight)
            .with(last, y)
            .with_flops(self.flops())
    }

    /// A multiplication and an addition for each weight and row.
    pub fn flops(&self) -> u64 {
        multiply_adds(&[self.m, self.n, self.k])
    }

    /// `y[m][n] = alpha * Σ x[m][k] * weight[n][k] + beta * y[m][n]`, a few rows of the weight side by side.
    pub fn compute(&self, x: &[f32], weight: &[u8], y: &mut [f32]) {
        let (n_rows, k) = (self.n as usize, self.k as usize);
        for first in (0..n_rows).step_by(SIDE_BY_SIDE) {
            let last = n_rows.min(first + SIDE_BY_SIDE) - 1;
            // Behind the last row it stands in for the missing ones.
            let rows: [Vec<f32>; SIDE_BY_SIDE] =
                std::array::from_fn(|at| self.weight.row(weight, last.min(first + at)));
            let rows = rows.each_ref().map(|row| &row[..k]);
            for m in 0..self.m as usize {
                let sums = dots(rows, &x[m * self.lda as usize..][..k]);
                for (n, product) in (first..=last).zip(sums) {
                    let y = &mut y[m * self.ldc as usize + n];
                    *y = match self.beta {
                        0.0 => self.alpha * product,
                        beta => self.alpha * product + beta * *y,
                    };
                }
            }
        }
    }
}

/// An addition waits for the one before it; those of other rows do not.
const SIDE_BY_SIDE: usize = 4;

/// The product of each row with x, summed from the first element to the last. A loop without iterators: tests are
/// compiled with little optimisation, which leaves a call for each element in a chain of iterators.
fn dots(rows: [&[f32]; SIDE_BY_SIDE], x: &[f32]) -> [f32; SIDE_BY_SIDE] {
    let [a, b, c, d] = rows;
    let mut sums = [0.0; SIDE_BY_SIDE];
    let mut k = 0;
    while k < x.len() {
        sums[0] += a[k] * x[k];
        sums[1] += b[k] * x[k];
        sums[2] += c[k] * x[k];
        sums[3] += d[k] * x[k];
        k += 1;
    }
    sums
}

/// The params struct of a format.
pub fn params_layout(dtype: DType) -> StructLayout {
    if dtype.mlx_bits().is_some() {
        MLXParams::LAYOUT
    } else {
        GEMMParams::LAYOUT
    }
}

/// The constants of a format.
pub fn constants(dtype: DType) -> &'static [Constant] {
    if dtype.mlx_bits().is_some() {
        &[Constant::GemmK, Constant::GroupSize, Constant::ScaleType]
    } else {
        &[Constant::GemmK]
    }
}

buffers! {
    pub struct Buffers, Slices(|args| p = Product::of(args), GEMMParams at 3) {
        x: read f32 = p.x_len(),
        weight: read Weight = p.weight.bytes(),
        y: change f32 = p.y_len(),
    }
}

/// The row of a product in the file `matmul/<source>.metal`; the caller gives it a name, a launch and
/// cases.
pub fn row(dtype: DType, source: &'static str) -> KernelRow {
    KernelRow {
        twin,
        ..row_with::<Buffers<()>>(dtype, source)
    }
}

/// The same with other buffers, the last of which are the weight and y, and so with another twin.
pub fn row_with<B: BufferSet>(dtype: DType, source: &'static str) -> KernelRow {
    KernelRow {
        dtype: Some(dtype),
        family: Family::Matmul,
        source,
        params: params_layout(dtype),
        constants: constants(dtype),
        work: |args, once| Product::of(args).work(once, 1),
        ..KernelRow::of::<B>()
    }
}

fn twin(t: &mut Twin) {
    let product = Product::of(&t.args());
    let Slices { x, weight, y } = Slices::of(t);
    product.compute(x, weight, y);
}
