//! Tensor types: GGUF's own ids, and ours for MLX's affine quantisation.

/// The type of a tensor's elements.
///
/// A GGUF type has the id that GGUF gives it. MLX types are not in GGUF; theirs are `1000 + bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs, reason = "each variant is ggml's own name for the type")]
#[allow(
    non_camel_case_types,
    reason = "each variant is ggml's own name for the type"
)]
#[non_exhaustive]
pub enum DType {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    MLX_Q2 = 1002,
    MLX_Q3 = 1003,
    MLX_Q4 = 1004,
    MLX_Q5 = 1005,
    MLX_Q6 = 1006,
    MLX_Q8 = 1008,
}

/// What the table says of one type.
struct Row {
    dtype: DType,
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    usable: bool,
}

const fn row(
    dtype: DType,
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    usable: bool,
) -> Row {
    Row {
        dtype,
        name,
        block_len,
        block_bytes,
        usable,
    }
}

/// Type, name, values in a block, bytes of a block, and whether our kernels can multiply by it.
///
/// An MLX "block" is the smallest run of packed values that fills whole bytes and words; its scales
/// and biases lie elsewhere and are not counted.
const TABLE: &[Row] = &[
    row(DType::F32, "f32", 1, 4, true),
    row(DType::F16, "f16", 1, 2, true),
    row(DType::Q4_0, "q4_0", 32, 18, true),
    row(DType::Q4_1, "q4_1", 32, 20, true),
    row(DType::Q5_0, "q5_0", 32, 22, true),
    row(DType::Q5_1, "q5_1", 32, 24, true),
    row(DType::Q8_0, "q8_0", 32, 34, true),
    row(DType::Q8_1, "q8_1", 32, 36, false),
    row(DType::Q2_K, "q2_k", 256, 84, true),
    row(DType::Q3_K, "q3_k", 256, 110, true),
    row(DType::Q4_K, "q4_k", 256, 144, true),
    row(DType::Q5_K, "q5_k", 256, 176, true),
    row(DType::Q6_K, "q6_k", 256, 210, true),
    row(DType::Q8_K, "q8_k", 256, 292, false),
    row(DType::IQ2_XXS, "iq2_xxs", 256, 66, false),
    row(DType::IQ2_XS, "iq2_xs", 256, 74, false),
    row(DType::IQ3_XXS, "iq3_xxs", 256, 98, false),
    row(DType::IQ1_S, "iq1_s", 256, 50, false),
    row(DType::IQ4_NL, "iq4_nl", 32, 18, false),
    row(DType::IQ3_S, "iq3_s", 256, 110, false),
    row(DType::IQ2_S, "iq2_s", 256, 82, false),
    row(DType::IQ4_XS, "iq4_xs", 256, 136, false),
    row(DType::I8, "i8", 1, 1, false),
    row(DType::I16, "i16", 1, 2, false),
    row(DType::I32, "i32", 1, 4, false),
    row(DType::I64, "i64", 1, 8, false),
    row(DType::F64, "f64", 1, 8, false),
    row(DType::IQ1_M, "iq1_m", 256, 56, false),
    row(DType::BF16, "bf16", 1, 2, true),
    row(DType::TQ1_0, "tq1_0", 256, 54, false),
    row(DType::TQ2_0, "tq2_0", 256, 66, false),
    row(DType::MXFP4, "mxfp4", 32, 17, false),
    row(DType::NVFP4, "nvfp4", 64, 36, false),
    row(DType::Q1_0, "q1_0", 128, 18, false),
    row(DType::MLX_Q2, "mlx_q2", 16, 4, true),
    row(DType::MLX_Q3, "mlx_q3", 32, 12, true),
    row(DType::MLX_Q4, "mlx_q4", 8, 4, true),
    row(DType::MLX_Q5, "mlx_q5", 32, 20, true),
    row(DType::MLX_Q6, "mlx_q6", 16, 12, true),
    row(DType::MLX_Q8, "mlx_q8", 4, 4, true),
];

impl DType {
    /// Every type, in the order of ids.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.dtype)
    }

    /// The GGUF type with this id; `None` for an id that GGUF does not (or no longer) use.
    pub fn from_gguf_id(id: u32) -> Option<DType> {
        DType::all().find(|dtype| dtype.id() == id && !dtype.is_mlx())
    }

    /// The type of this name, as [`DType::name`] spells it; case does not matter.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name))
            .map(|row| row.dtype)
    }

    /// The MLX type with this many bits.
    pub fn mlx(bits: u32) -> Option<DType> {
        DType::all().find(|dtype| dtype.is_mlx() && dtype.id() == MLX_BASE + bits)
    }

    /// The id: GGUF's own, or ours for MLX.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name in lower case, as it stands in kernel names: `q4_0`, `mlx_q4`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Values in a block; 1 for plain numbers. A row's length is a multiple of it.
    pub fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// Whether kernels exist for weights of this type. The others are recognised, listed and refused
    /// by name.
    pub fn is_usable(self) -> bool {
        self.row().usable
    }

    /// Whether this is one of MLX's affine types, whose scales and biases lie apart from the values.
    pub const fn is_mlx(self) -> bool {
        self.id() >= MLX_BASE
    }

    /// Bytes of `n` values, or `None` when `n` does not fill whole blocks or the size overflows.
    pub fn bytes_of(self, n: usize) -> Option<usize> {
        let row = self.row();
        n.is_multiple_of(row.block_len)
            .then(|| (n / row.block_len).checked_mul(row.block_bytes))?
    }

    fn row(self) -> &'static Row {
        match TABLE.binary_search_by_key(&self.id(), |row| row.dtype.id()) {
            Ok(at) => &TABLE[at],
            Err(_) => unreachable!("every variant has a row: see the test"),
        }
    }
}

/// Ids of MLX types start above this.
const MLX_BASE: u32 = 1000;

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block;

    #[test]
    fn the_table_is_sorted_and_every_type_finds_its_row() {
        assert!(TABLE.is_sorted_by_key(|row| row.dtype.id()));
        for row in TABLE {
            assert_eq!(row.dtype.name(), row.name);
            assert_eq!(DType::from_name(row.name), Some(row.dtype));
        }
    }

    #[test]
    fn block_sizes_are_those_of_the_structs() {
        for layout in block::ALL {
            let name = layout.name.trim_start_matches("block_");
            let dtype = DType::from_name(name).expect("a block is named after its type");
            assert_eq!(dtype.block_bytes(), layout.size, "{name}");
        }
    }

    #[test]
    fn mlx_blocks_hold_as_many_bits_as_they_say() {
        for bits in [2, 3, 4, 5, 6, 8] {
            let dtype = DType::mlx(bits).expect("MLX has this width");
            assert_eq!(
                dtype.block_len() * bits as usize,
                dtype.block_bytes() * 8,
                "{dtype}"
            );
            assert_eq!(DType::from_gguf_id(dtype.id()), None, "not a GGUF id");
        }
        assert_eq!(DType::mlx(7), None);
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(DType::Q4_0.bytes_of(64), Some(36));
        assert_eq!(DType::Q4_0.bytes_of(33), None, "not whole blocks");
        assert_eq!(DType::F64.bytes_of(usize::MAX), None, "overflow");
        assert_eq!(DType::from_gguf_id(4), None, "q4_2 was removed from GGUF");
    }
}
