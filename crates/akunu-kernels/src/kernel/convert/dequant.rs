//! `dequant_<format>_f16`: `y[i] = f16(weight[i])`. For f32 and bf16 it is the plain conversion.
//!
//! One thread for each run of 8 values. All but MLX weights are one long row.

use akunu_types::params::{ElementwiseParams, MLXParams};
use akunu_types::{DType, SharedStruct};
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::cost::once;
use crate::table::{Args, Binding, Element, Family, KernelRow, Launch, read, write};
use crate::twin::Twin;
use crate::weight::{Matrix, mlx_params, run_launch};

const BINDINGS: &[Binding] = &[
    read(0, "weight", Element::Weight),
    write(1, "y", Element::F16),
];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    let (params, constants): (_, &[Constant]) = if dtype.is_mlx() {
        (MLXParams::LAYOUT, &[Constant::GroupSize])
    } else {
        (ElementwiseParams::LAYOUT, &[])
    };
    KernelRow {
        name: ("dequant_", "_f16"),
        dtype: Some(dtype),
        family: Family::Convert,
        source: "dequant",
        bindings: BINDINGS,
        params_index: 2,
        params,
        constants,
        launch,
        required,
        work: once,
        twin,
        cases,
    }
}

fn matrix(args: &Args) -> Matrix {
    if args.format().is_mlx() {
        return Matrix::mlx(args);
    }
    let p: ElementwiseParams = args.params();
    Matrix::contiguous(args.format(), 1, p.count as usize)
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let matrix = matrix(args);
    run_launch(matrix.cols as u32, matrix.rows as u32)
}

fn required(args: &Args) -> Vec<usize> {
    let matrix = matrix(args);
    let values = matrix.rows.saturating_mul(matrix.cols);
    vec![matrix.bytes(), values.saturating_mul(2)]
}

fn twin(t: &mut Twin) {
    let matrix = matrix(&t.args());
    let bytes = t.read::<u8>(0);
    let rows = t.write::<f16>(1).chunks_exact_mut(matrix.cols.max(1));
    for (index, y) in rows.enumerate() {
        for (y, value) in y.iter_mut().zip(matrix.row(bytes, index)) {
            *y = f16::from_f32(value);
        }
    }
}

/// Values in all, or (rows, values of a row) for MLX: tails of a run and of a threadgroup's 1024.
const SHAPES: [(u32, u32); 3] = [(1, 3), (2, 100), (3, 1029)];

fn cases(dtype: Option<DType>) -> Vec<Case> {
    let Some(dtype) = dtype else {
        return Vec::new();
    };
    let each = SHAPES.iter().zip([32, 64, 128]);
    each.map(|(&(rows, cols), group_size)| case(dtype, rows, cols, group_size))
        .collect()
}

/// The same value, rounded to f16 once. q6_k's value may differ in its last bit (see the embedding), and
/// so now and then falls to the other side of a rounding: 2⁻¹¹ of one value in thousands.
fn case(dtype: DType, rows: u32, cols: u32, group_size: u32) -> Case {
    let nmse = if dtype == DType::Q6_K { 1e-8 } else { 0.0 };
    let case = if dtype.is_mlx() {
        let cols = cols.next_multiple_of(group_size);
        let params = mlx_params(dtype, rows, cols, group_size);
        Case::new(format!("rows {rows}, columns {cols}"), &params, nmse)
    } else {
        let count = (rows * cols).next_multiple_of(dtype.block_len() as u32);
        let params = ElementwiseParams {
            count,
            ..Default::default()
        };
        Case::new(format!("values {count}"), &params, nmse)
    };
    let matrix = matrix(&Args {
        dtype: Some(dtype),
        params: case.params.as_bytes(),
        constants: &case.constants,
    });
    let mut rng = Rng::new(u64::from(cols));
    case.bind(&matrix.random(&mut rng))
        .bind(&vec![f16::ZERO; matrix.rows * matrix.cols])
}
