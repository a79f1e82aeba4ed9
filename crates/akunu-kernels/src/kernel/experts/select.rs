//! Which kernel multiplies rows with the matrices of their experts.
//!
//! How many results an expert has is known only when the rows have been routed; their mean is `rows * used / experts`.
//!
//! | results of an expert | kernel | because |
//! |---|---|---|
//! | fewer than 2 | `expert_gate`, `expert_down` | most weights would be read once by either |
//! | up to 8 | `expert_gemm_small` | a tile of 8 results reads the weights once |
//! | more | `expert_gemm` | a tile of 32 results reads them once, four tiles of 8 four times |
//!
//! The limits follow from the bytes each kernel moves; they are to be measured on a Mac.

use akunu_types::DType;

use super::expert_gemm::{SMALL_TILE, TILE};
use crate::table::KernelId;

/// From as many results of an expert on they are sorted.
const GROUPED: u32 = 2;

/// A kernel of grouped products, and the results of its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedKernel {
    /// The kernel.
    pub kernel: KernelId,
    /// Results of a tile.
    pub tile: u32,
}

/// What the choice depends on: rows of a step, experts of a row, and experts.
#[derive(Clone, Copy, Debug)]
pub struct Routed {
    /// Rows.
    pub n_rows: u32,
    /// Experts of a row.
    pub n_used: u32,
    /// Experts.
    pub n_experts: u32,
}

impl Routed {
    /// Results: one for each expert of each row.
    pub fn n_results(&self) -> u32 {
        self.n_rows.saturating_mul(self.n_used)
    }
}

/// The kernel of products with experts, if their results are sorted.
pub fn grouped_kernel(dtype: DType, routed: &Routed) -> Option<GroupedKernel> {
    let n_results = routed.n_results();
    let of_mean = |mean: u32| routed.n_experts.saturating_mul(mean);
    if n_results < of_mean(GROUPED) {
        return None;
    }
    Some(match n_results <= of_mean(SMALL_TILE) {
        true => GroupedKernel {
            kernel: KernelId::ExpertGemmSmall(dtype),
            tile: SMALL_TILE,
        },
        false => GroupedKernel {
            kernel: KernelId::ExpertGemm(dtype),
            tile: TILE,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_sorted_where_experts_have_several() {
        let d = DType::Q4_0;
        let small = Some(GroupedKernel {
            kernel: KernelId::ExpertGemmSmall(d),
            tile: 8,
        });
        let large = Some(GroupedKernel {
            kernel: KernelId::ExpertGemm(d),
            tile: 32,
        });
        // Rows, experts of a row, experts.
        let table = [
            ([1, 8, 128], None),
            ([16, 8, 128], None),
            ([31, 8, 128], None),
            ([32, 8, 128], small),
            ([64, 8, 128], small),
            ([128, 8, 128], small),
            ([256, 8, 128], large),
            ([512, 8, 128], large),
            ([1, 4, 32], None),
            ([16, 4, 32], small),
            ([512, 4, 32], large),
            ([1, 2, 2], None),
            ([2, 2, 2], small),
            ([512, 10, 512], large),
        ];
        for ([n_rows, n_used, n_experts], kernel) in table {
            let routed = Routed {
                n_rows,
                n_used,
                n_experts,
            };
            assert_eq!(grouped_kernel(d, &routed), kernel, "{routed:?}");
        }
    }
}
