//! The cases of `decode_gemm`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::nvidia::tensor_gemm;

/// Rows, outputs of each weight, K and beta: fewer rows than a tile, a tile and a row, more than either form has; fewer outputs
/// than a SIMD group has; K of less than a quad, of a step and a tail, and of more steps than are under way; so many outputs that
/// threadgroups of seven SIMD groups suit a chip of eight cores.
const SHAPES: [(u32, [u32; MAX_WEIGHTS], u32, f32); 6] = [
    (2, [3, 0, 0], 32, 0.0),
    (9, [33, 0, 0], 576, 1.0),
    (17, [20, 1, 40], 256, 0.0),
    (16, [16, 5, 0], 9 * 256 * 3 - 32, 0.0),
    (3, [448, 430, 0], 64, 0.0),
    (41, [40, 0, 0], 5 * 256 + 64, 1.0),
];

pub fn all(dtype: Option<DType>) -> Vec<Case> {
    let each = dtype.into_iter().flat_map(|dtype| {
        SHAPES.into_iter().map(move |(m, outputs, k, beta)| {
            let params = case_params(dtype, m, outputs, k, beta);
            let k = params.K;
            let label = format!("{m} × {outputs:?} × {k}, {beta}");
            case(dtype, &params, Order::Spans, label)
        })
    });
    each.collect()
}

/// The params of a case: K of whole blocks, zeros up to a quad, and with a beta a gap.
pub fn case_params(
    dtype: DType,
    m: u32,
    outputs: [u32; MAX_WEIGHTS],
    k: u32,
    beta: f32,
) -> DecodeGemmParams {
    let k = k.next_multiple_of(dtype.block_len() as u32);
    DecodeGemmParams {
        M: m,
        K: k,
        lda: k.next_multiple_of(QUAD) + if beta == 0.0 { 0 } else { QUAD },
        N0: outputs[0],
        N1: outputs[1],
        N2: outputs[2],
        beta,
        ..Default::default()
    }
}

/// What must not be read is NaN: x behind the zeros, and y where beta is 0. So are the rows that fill a tile, which may be read
/// but belong to no output.
pub fn case(dtype: DType, p: &DecodeGemmParams, order: Order, label: String) -> Case {
    let mut rng = Rng::new(u64::from(p.M * 7919 + p.N0 * 31 + p.K));
    let mut x = vec![f16::NAN; (order.rows(p.M) * p.lda) as usize];
    for row in 0..p.M as usize {
        let values = rng.halves(p.K as usize, 2.0);
        for i in 0..p.K.next_multiple_of(QUAD) as usize {
            let value = values.get(i).copied().unwrap_or(f16::ZERO);
            x[order.place(p.lda as usize, row, i)] = value;
        }
    }
    let mut case = Case::new(label, p, tensor_gemm::cases::NMSE).bind(&x);
    for n in outputs(p) {
        let layout = WeightLayout::contiguous(dtype, n as usize, p.K as usize);
        case = case.bind(&layout.random(&mut rng));
    }
    for n in outputs(p) {
        let count = (p.M * n) as usize;
        case = case.bind(&if p.beta == 0.0 {
            vec![f32::NAN; count]
        } else {
            rng.floats(count, 1.0)
        });
    }
    case.bind(&rng.floats(p.M as usize, 1.0))
}
