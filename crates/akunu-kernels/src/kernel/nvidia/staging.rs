//! How products of a few rows stage weights in threadgroup memory, and how much of it a multiprocessor has.

use akunu_types::DType;

use crate::chip::ChipConfig;
use crate::table::weight_formats;

/// Values of K that rows of x are whole multiples of.
pub const QUAD: u32 = 128;
/// Outputs of a matrix.
const MATRIX: u32 = 16;
/// Bytes of a vector.
const VECTOR: u32 = 16;

/// How weights of a format are staged: values of a step, vectors of a row in threadgroup memory, outputs of a SIMD group.
pub(super) struct Staging {
    pub(super) step: u32,
    row_vectors: u32,
    pub(super) outputs: u32,
}

/// The formats that are staged (`StagedStep` in include/staged_span.h), those of most published models: quads of a step, vectors
/// of a row, matrices of a SIMD group.
const STAGED: [(DType, [u32; 3]); 7] = [
    (DType::F16, [1, 17, 1]),
    (DType::BF16, [1, 17, 1]),
    (DType::Q8_0, [1, 11, 1]),
    (DType::Q4_0, [2, 11, 2]),
    (DType::Q4_K, [2, 9, 2]),
    (DType::Q5_K, [2, 11, 2]),
    (DType::Q6_K, [2, 15, 1]),
];

impl Staging {
    /// How weights of a format are staged, if they are.
    pub(super) fn find(dtype: DType) -> Option<Staging> {
        let staged = STAGED.iter().find(|(staged, _)| *staged == dtype);
        staged.map(|&(_, [quads, row_vectors, matrices])| Staging {
            step: quads * QUAD,
            row_vectors,
            outputs: matrices * MATRIX,
        })
    }

    /// The same for the format of a kernel that stages it.
    pub(super) fn of(dtype: DType) -> Staging {
        match Staging::find(dtype) {
            Some(staging) => staging,
            None => unreachable!("kernels that stage weights exist for no others"),
        }
    }

    /// Bytes of a row of a step in threadgroup memory.
    pub(super) fn row_bytes(&self) -> u32 {
        self.row_vectors * VECTOR
    }
}

/// How many threadgroups of so much threadgroup memory a multiprocessor holds.
pub(super) fn at_once(threadgroup_bytes: u32, chip: &ChipConfig) -> u32 {
    /// Bytes of a threadgroup that it does not see.
    const HIDDEN_BYTES: u32 = 1 << 10;
    chip.core_bytes / (threadgroup_bytes + HIDDEN_BYTES)
}

/// The formats whose weights are staged.
pub fn formats() -> impl Iterator<Item = DType> {
    weight_formats().filter(|dtype| Staging::find(*dtype).is_some())
}
