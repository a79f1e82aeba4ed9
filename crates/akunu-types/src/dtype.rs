//! Tensor types: GGUF's own ids, and ours for MLX's affine quantisation. The table of them is in [`crate::format`].

use crate::format::{ALL, CellFormat, Decoder, Kind};

pub use crate::format::DType;

impl DType {
    /// Every type, in the order of ids.
    pub fn all() -> impl Iterator<Item = DType> {
        ALL.iter().copied()
    }

    /// The GGUF type with this id; `None` for an id that GGUF does not (or no longer) use.
    pub fn from_gguf_id(id: u32) -> Option<DType> {
        DType::all().find(|dtype| dtype.id() == id && dtype.mlx_bits().is_none())
    }

    /// The type of this name, as [`DType::name`] spells it; case does not matter.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::all().find(|dtype| dtype.name().eq_ignore_ascii_case(name))
    }

    /// The MLX type with this many bits.
    pub fn mlx(bits: u32) -> Option<DType> {
        DType::all().find(|dtype| dtype.mlx_bits() == Some(bits))
    }

    /// The id: GGUF's own, or ours for MLX.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name in lower case, as it stands in kernel names: `q4_0`, `mlx_q4`.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    /// GGUF's `general.file_type` for a file of this type alone; `None` where only mixtures of types have one.
    pub fn file_type(self) -> Option<u32> {
        self.format().file_type
    }

    /// Values in a block; 1 for plain numbers. A row's length is a multiple of it.
    ///
    /// An MLX "block" is the smallest run of packed values that fills whole words; its scales and biases lie elsewhere and
    /// are not counted.
    pub fn block_len(self) -> usize {
        self.format().block_len
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        self.format().block_bytes
    }

    /// How values are stored.
    pub fn kind(self) -> Kind {
        self.format().kind
    }

    /// The cells of a quantised format.
    pub fn cells(self) -> Option<CellFormat> {
        match self.kind() {
            Kind::Blocks(cells) | Kind::Mlx(cells) => Some(cells),
            Kind::Numbers | Kind::Listed => None,
        }
    }

    /// Bits of a value of MLX's types, whose scales and biases lie apart from the values; `None` for other types.
    pub fn mlx_bits(self) -> Option<u32> {
        match self.kind() {
            Kind::Mlx(cells) => Some(cells.bits),
            Kind::Numbers | Kind::Blocks(_) | Kind::Listed => None,
        }
    }

    /// Whether kernels exist for weights of this type. The others are recognised, listed and refused
    /// by name.
    pub fn is_usable(self) -> bool {
        self.kind() != Kind::Listed
    }

    /// The decoder of plain numbers and blocks. MLX's types keep their scales apart and have none.
    pub fn decoder(self) -> Option<Decoder> {
        self.format().decoder
    }

    /// The bytes of values that are rounded to this type of plain numbers; `None` for other types.
    pub fn rounded(self, values: &[f32]) -> Option<Vec<u8>> {
        self.format().rounded.map(|rounded| rounded(values))
    }

    /// Bytes of `n` values, or `None` when `n` does not fill whole blocks or the size overflows.
    pub fn bytes_of(self, n: usize) -> Option<usize> {
        let (len, bytes) = (self.block_len(), self.block_bytes());
        n.is_multiple_of(len)
            .then(|| (n / len).checked_mul(bytes))?
    }
}

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format;

    #[test]
    fn the_table_is_sorted_and_names_are_those_of_the_variants() {
        assert!(ALL.is_sorted_by_key(|dtype| dtype.id()));
        for &dtype in ALL {
            assert_eq!(dtype.name(), format!("{dtype:?}").to_lowercase());
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
    }

    #[test]
    fn blocks_are_named_after_their_types() {
        for layout in format::layouts() {
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
