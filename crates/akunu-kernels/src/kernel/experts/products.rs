//! What the products of experts have in common: where their rows lie, sizes, inputs of the cases.

use akunu_program::{GateFunction, MlxLayout};
use akunu_types::DType;
use akunu_types::params::ExpertParams;

use crate::chip::SIMD_WIDTH;
use crate::constant::Constant;
use crate::extent::product;
use crate::kernel::activation::{gelu, gelu_erf, sigmoid, silu, swiglu_oai};
use crate::table::{Args, Launch};
use crate::weight::WeightLayout;

/// [`ExpertParams::flags`]: products have biases.
pub const HAS_BIASES: u32 = 1;
/// [`ExpertParams::flags`]: each expert has a scale.
pub const HAS_SCALES: u32 = 2;

/// SIMD groups of a threadgroup.
const SIMD_GROUPS: u32 = 4;

/// The constants of a kernel of this format.
pub(super) fn constants(dtype: DType) -> &'static [Constant] {
    match dtype.mlx_bits() {
        Some(_) => &[Constant::GroupSize, Constant::ScaleType],
        None => &[],
    }
}

/// The matrices of experts, as params describe them.
#[derive(Clone, Copy, Debug)]
pub struct Experts {
    /// The params.
    pub params: ExpertParams,
    /// The rows of the first weight, up to the last expert's last.
    pub first: WeightLayout,
    /// Those of the second.
    pub second: WeightLayout,
}

impl Experts {
    /// Reads the params; function constants go before them.
    pub fn of(args: &Args) -> Experts {
        let p: ExpertParams = args.params();
        let rows = p.n_experts.saturating_sub(1).saturating_mul(p.stride);
        let grouped = MlxLayout::grouped(p.group_size, p.scale_type);
        let layout = |at| WeightLayout::of(args, rows.saturating_add(p.N), p.K, grouped.at(at));
        Experts {
            params: p,
            first: layout([p.packed_0, p.scales_0, p.biases_0]),
            second: layout([p.packed_1, p.scales_1, p.biases_1]),
        }
    }

    /// Results: one for each expert of each row.
    pub fn n_results(&self) -> u32 {
        self.params.n_rows.saturating_mul(self.params.n_used)
    }

    /// The expert of a result.
    pub fn expert(&self, ids: &[u32], result: usize) -> usize {
        let last = self.params.n_experts.saturating_sub(1);
        ids[result].min(last) as usize
    }

    /// The row of a weight that has output `n` of an expert.
    pub fn row(&self, expert: usize, n: usize) -> usize {
        expert * self.params.stride as usize + n
    }

    /// Bytes of a weight; those of no experts are more than any buffer has, because there is no last one that an id could be.
    pub fn weight_bytes(&self, weight: &WeightLayout) -> usize {
        match (self.params.n_experts, self.params.n_used) {
            (0, _) | (_, 0) => usize::MAX,
            _ => weight.bytes(),
        }
    }

    /// Bytes of the weights that are read: each result reads the matrix of its expert.
    pub(super) fn read_bytes(&self, weight: &WeightLayout) -> usize {
        let rows = self.n_results() as usize * self.params.N as usize;
        weight.row_bytes().saturating_mul(rows)
    }

    /// Biases of all experts.
    pub fn bias_len(&self) -> usize {
        match self.params.flags & HAS_BIASES {
            0 => 0,
            _ => product(&[self.params.n_experts, self.params.N]),
        }
    }

    /// Scales of all experts.
    pub fn scale_len(&self) -> usize {
        match self.params.flags & HAS_SCALES {
            0 => 0,
            _ => self.params.n_experts as usize,
        }
    }

    /// The launch of SIMD groups that compute `outputs` outputs of a result each.
    pub(super) fn launch(&self, outputs: u32) -> Launch {
        let groups = self.params.N.div_ceil(outputs * SIMD_GROUPS);
        let threads = [SIMD_GROUPS * SIMD_WIDTH, 1, 1];
        Launch::new([groups, self.n_results(), 1], threads)
    }

    /// A product with its scale and its bias.
    pub fn finished(&self, product: f32, at: [usize; 2], bias: &[f32], scale: &[f32]) -> f32 {
        let [expert, n] = at;
        let flags = self.params.flags;
        let product = match flags & HAS_SCALES {
            0 => product,
            _ => product * scale[expert],
        };
        match flags & HAS_BIASES {
            0 => product,
            _ => product + bias[expert * self.params.N as usize + n],
        }
    }
}

/// The number of a gate in params.
pub fn gate_code(gate: GateFunction) -> u32 {
    match gate {
        GateFunction::Silu => 0,
        GateFunction::Gelu => 1,
        GateFunction::GeluErf => 2,
        GateFunction::SwigluOai => 3,
        GateFunction::Sigmoid => 4,
    }
}

/// The gate of a number.
pub fn gate(code: u32) -> fn(f32, f32) -> f32 {
    match code {
        0 => |gate, up| silu(gate) * up,
        1 => |gate, up| gelu(gate) * up,
        2 => |gate, up| gelu_erf(gate) * up,
        4 => |gate, up| sigmoid(gate) * up,
        _ => swiglu_oai,
    }
}

/// The product of a row of a weight with x.
pub(super) fn dot(weight: &WeightLayout, bytes: &[u8], row: usize, x: &[f32]) -> f32 {
    let row = weight.row(bytes, row);
    row.iter().zip(x).map(|(w, x)| w * x).sum()
}

#[cfg(feature = "testing")]
pub(crate) mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::weight::{any_scale_type, case_block, scattered};

    /// Rows, experts of a row and in all, outputs, inputs (made a whole number of blocks), rows between experts beside their own,
    /// flags, and the number of the gate.
    pub type Shape = ([u32; 3], [u32; 2], u32, u32, u32);

    /// Params and a random generator of a case, with the MLX parts of the weights scattered.
    pub fn case_of(dtype: DType, at: usize, shape: Shape) -> (ExpertParams, Rng) {
        let ([n_rows, n_used, n_experts], [n, k], between, flags, activation) = shape;
        let group_size = [32, 64, 128][at % 3];
        let k = k.next_multiple_of(case_block(dtype, group_size));
        let mut params = ExpertParams {
            n_rows,
            n_used,
            n_experts,
            N: n,
            K: k,
            stride: n + between,
            flags,
            activation,
            ..Default::default()
        };
        if dtype.mlx_bits().is_some() {
            let rows = (n_experts - 1) * params.stride + n;
            let first = scattered(dtype, [rows, k], group_size, any_scale_type(at as u32));
            params.group_size = group_size;
            params.scale_type = first.scale_type.code();
            [params.packed_0, params.scales_0, params.biases_0] =
                [first.packed_at, first.scales_at, first.biases_at];
            // Scattered in another way.
            [params.packed_1, params.scales_1, params.biases_1] = [
                first.packed_at + 5,
                first.scales_at + 5,
                first.biases_at + 5,
            ];
        }
        (params, Rng::new(u64::from(n * 31 + k) + at as u64))
    }

    /// Binds biases or scales, if there are any.
    pub fn bind(case: Case, bytes: usize, rng: &mut Rng) -> Case {
        case.bind(&rng.floats(bytes / size_of::<f32>(), 1.0))
    }

    /// One of one expert; several rows; the most experts of a row; tails of outputs and inputs; experts with other rows between them.
    const SHAPES: [Shape; 4] = [
        ([1, 1, 1], [3, 70], 0, 0, 0),
        ([3, 2, 5], [17, 256], 9, HAS_BIASES, 3),
        ([1, 16, 33], [6, 514], 0, HAS_SCALES, 1),
        ([2, 3, 4], [9, 64], 9, HAS_BIASES | HAS_SCALES, 2),
    ];

    /// A case of each shape, for a weight format.
    pub fn all(dtype: Option<DType>, case: fn(DType, usize, Shape) -> Case) -> Vec<Case> {
        let shapes = SHAPES.into_iter().enumerate();
        let of = |dtype| shapes.map(move |(at, shape)| case(dtype, at, shape));
        dtype.map_or(Vec::new(), |dtype| of(dtype).collect())
    }

    /// An id for each expert of each row, one of them of no expert.
    pub fn ids(p: &ExpertParams, rng: &mut Rng) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..p.n_rows * p.n_used)
            .map(|_| rng.below(p.n_experts))
            .collect();
        if let Some(last) = ids.last_mut() {
            *last = p.n_experts + 7;
        }
        ids
    }
}
