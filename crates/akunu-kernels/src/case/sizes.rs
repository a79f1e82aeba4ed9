//! Launches of the sizes of real models, which the simulator counts.

use akunu_types::params::{AttentionParams, GEMMParams, NormGemvParams, Row};
use akunu_types::{DType, SharedStruct};

use super::Case;
use crate::constant::{Constant, Constants};
use crate::table::KernelId;

/// A launch and what may be expected of it.
pub struct Size {
    /// The kernel.
    pub kernel: KernelId,
    /// What it is the size of.
    pub label: &'static str,
    /// Its inputs: zeros, but for what says where to look.
    pub case: fn(&Size) -> Case,
    /// Most bytes moved for each that has to.
    pub max_excess: f64,
    /// Most cycles of threadgroup memory for each that it needs.
    pub max_conflicts: f64,
}

/// The products and attentions of a model of 8 billion weights (4096 wide, 32 heads of 128 that share 8 of keys), with
/// fewer outputs where a further threadgroup only does the same again.
pub const SIZES: &[Size] = &[
    product(KernelId::Gemv(DType::Q4_0), "one row, 256 of 4096", gemv),
    product(KernelId::Gemv(DType::Q4_K), "one row, 256 of 4096", gemv),
    product(KernelId::Gemv(DType::Q6_K), "one row, 256 of 4096", gemv),
    product(KernelId::Gemv(DType::F16), "one row, 256 of 4096", gemv),
    product(
        KernelId::NormGemv(DType::Q4_K),
        "q, k and v of one row",
        norm,
    ),
    product(
        KernelId::GemvBatched(DType::Q4_K),
        "4 rows, 128 of 4096",
        four,
    ),
    product(
        KernelId::SimdGemmSmall(DType::Q4_K),
        "8 rows, 128 of 4096",
        eight,
    ),
    product(
        KernelId::SimdGemm(DType::Q4_K),
        "32 rows, 128 of 1024",
        tile,
    ),
    product(
        KernelId::FlashAttentionDecodeSplit,
        "1 row, 512 keys",
        split,
    ),
    product(
        KernelId::FlashAttentionDecodeFast,
        "1 row, 512 keys",
        decode,
    ),
    product(
        KernelId::FlashAttentionPrefillV2,
        "64 rows, 64 keys",
        prefill,
    ),
];

const fn product(kernel: KernelId, label: &'static str, case: fn(&Size) -> Case) -> Size {
    Size {
        kernel,
        label,
        case,
        max_excess: 1.05,
        max_conflicts: 1.1,
    }
}

impl Size {
    /// A case of zeros, with as many bytes as the kernel requires.
    fn zeros<P: SharedStruct>(&self, params: &P, constants: Constants) -> Case {
        let row = self.kernel.row();
        let args = row.args(bytemuck::bytes_of(params), &constants);
        let sizes = (row.required)(&args);
        let empty = Case::new(self.label, params, 0.0).constants(constants.clone());
        sizes
            .into_iter()
            .fold(empty, |case, bytes| case.bind(&vec![0u8; bytes]))
    }

    fn matrix(&self, [m, n, k]: [u32; 3]) -> Case {
        let params = GEMMParams {
            M: m,
            N: n,
            K: k,
            lda: k,
            ldb: k,
            ldc: n,
            alpha: 1.0,
            beta: 0.0,
        };
        self.zeros(&params, Constants::none())
    }

    /// Rows at the end of as many keys of one sequence, in pages of 64.
    fn attention(&self, n_rows: u32, n_keys: u32, n_parts: u32) -> Case {
        let n_pages = n_keys.div_ceil(64);
        let params = AttentionParams {
            n_rows,
            n_heads: 32,
            n_kv_heads: 8,
            head_dim: 128,
            page_shift: 6,
            table_stride: n_pages,
            n_pages,
            n_sequences: 1,
            scale: 0.1,
            n_parts,
            ..Default::default()
        };
        let constants = Constants::none().with_u32(Constant::HeadDim, params.head_dim);
        let mut case = self.zeros(&params, constants);
        let rows: Vec<Row> = (n_keys - n_rows..n_keys).map(|at| Row::at(0, at)).collect();
        let table: Vec<u32> = (0..n_pages).collect();
        let with_rows = Case::new("", &params, 0.0).bind(&rows).bind(&table);
        for (place, data) in [4, 5].into_iter().zip(with_rows.data) {
            case.data[place] = data;
        }
        case
    }
}

fn gemv(size: &Size) -> Case {
    size.matrix([1, 256, 4096])
}

fn four(size: &Size) -> Case {
    size.matrix([4, 128, 4096])
}

fn eight(size: &Size) -> Case {
    size.matrix([8, 128, 4096])
}

fn tile(size: &Size) -> Case {
    size.matrix([32, 128, 1024])
}

fn norm(size: &Size) -> Case {
    let params = NormGemvParams {
        K: 4096,
        N0: 128,
        N1: 64,
        N2: 64,
        eps: 1e-5,
        ..Default::default()
    };
    size.zeros(&params, Constants::none())
}

fn split(size: &Size) -> Case {
    size.attention(1, 512, 8)
}

fn decode(size: &Size) -> Case {
    size.attention(1, 512, 0)
}

fn prefill(size: &Size) -> Case {
    size.attention(64, 64, 0)
}
