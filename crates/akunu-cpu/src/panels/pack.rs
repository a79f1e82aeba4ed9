//! Lays rows of a weight file out as panels.

use akunu_kernels::weight::WeightLayout;
use akunu_types::block::{
    BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K, BlockQ6K,
    BlockQ8_0, scale_and_min, scale_q3,
};
use akunu_types::{DType, SharedStruct};
use half::f16;
use std::ops::Range;

use super::format::{CELL, Quant, ROWS, SUPER, Scales};

/// One row of a cell: 32 numbers, their scales, and those of the super-block.
#[derive(Clone, Copy, Default)]
struct RowCell {
    /// 4 numbers of 8 bits a word, or the low 4 bits of 8 numbers (column c, column c + 16).
    words: [u32; 8],
    /// The fifth and the sixth bit of each column.
    high: [u32; 2],
    /// f16 bits, or two 8-bit scales in the low bytes of the first.
    scales: [u16; 2],
    /// f16 bits.
    of_super: [u16; 2],
}

impl RowCell {
    /// 32 numbers of 8 bits.
    fn of_bytes(numbers: [u8; CELL]) -> RowCell {
        RowCell {
            words: words(&numbers),
            ..RowCell::default()
        }
    }

    /// 32 numbers of up to 6 bits.
    fn of_numbers(numbers: [u8; CELL]) -> RowCell {
        let mut cell = RowCell::default();
        for (i, number) in numbers.into_iter().enumerate() {
            let (column, shift) = (i % 16, i / 16 * 4);
            let four = u32::from(number & 15) << shift;
            cell.words[column / 4] |= four << (8 * (column % 4));
            for (plane, high) in cell.high.iter_mut().enumerate() {
                *high |= u32::from(number >> (4 + plane) & 1) << i;
            }
        }
        cell
    }
}

/// A block of a weight file that can be cut into cells.
trait Cells: SharedStruct {
    /// The format of the blocks.
    const DTYPE: DType;
    /// Cells of a block.
    const CELLS: usize;
    /// Their cells.
    const QUANT: Quant = match Quant::of(Self::DTYPE) {
        Some(quant) => quant,
        None => panic!("blocks become quantised cells"),
    };

    /// Cell `at` of the block.
    fn cell(&self, at: usize) -> RowCell;
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|j| {
        u32::from_le_bytes([
            bytes[4 * j],
            bytes[4 * j + 1],
            bytes[4 * j + 2],
            bytes[4 * j + 3],
        ])
    })
}

/// Four words in the low half of eight.
fn nibbles(low: [u32; 4]) -> [u32; 8] {
    let [a, b, c, d] = low;
    [a, b, c, d, 0, 0, 0, 0]
}

impl Cells for BlockQ4_0 {
    const DTYPE: DType = DType::Q4_0;
    const CELLS: usize = 1;
    fn cell(&self, _: usize) -> RowCell {
        RowCell {
            words: nibbles(words(&self.qs)),
            scales: [self.d.to_bits(), 0],
            ..RowCell::default()
        }
    }
}

impl Cells for BlockQ4_1 {
    const DTYPE: DType = DType::Q4_1;
    const CELLS: usize = 1;
    fn cell(&self, _: usize) -> RowCell {
        RowCell {
            words: nibbles(words(&self.qs)),
            scales: [self.d.to_bits(), self.m.to_bits()],
            ..RowCell::default()
        }
    }
}

impl Cells for BlockQ5_0 {
    const DTYPE: DType = DType::Q5_0;
    const CELLS: usize = 1;
    fn cell(&self, _: usize) -> RowCell {
        RowCell {
            words: nibbles(words(&self.qs)),
            high: [u32::from_le_bytes(self.qh), 0],
            scales: [self.d.to_bits(), 0],
            ..RowCell::default()
        }
    }
}

impl Cells for BlockQ5_1 {
    const DTYPE: DType = DType::Q5_1;
    const CELLS: usize = 1;
    fn cell(&self, _: usize) -> RowCell {
        RowCell {
            words: nibbles(words(&self.qs)),
            high: [u32::from_le_bytes(self.qh), 0],
            scales: [self.d.to_bits(), self.m.to_bits()],
            ..RowCell::default()
        }
    }
}

impl Cells for BlockQ8_0 {
    const DTYPE: DType = DType::Q8_0;
    const CELLS: usize = 1;
    fn cell(&self, _: usize) -> RowCell {
        RowCell {
            words: words::<8>(bytemuck::cast_slice(&self.qs)).map(|word| word ^ 0x8080_8080),
            scales: [self.d.to_bits(), 0],
            ..RowCell::default()
        }
    }
}

/// The nibbles of cell `at`: each run of 32 bytes holds one cell in its low nibbles and the next in its
/// high ones.
fn k_nibbles(qs: &[u8; 128], at: usize) -> [u32; 8] {
    let run: [u32; 8] = words(&qs[32 * (at / 2)..]);
    let shift = 4 * (at % 2) as u32;
    let four = |word: u32| (word >> shift) & 0x0f0f_0f0f;
    nibbles(std::array::from_fn(|j| {
        four(run[j]) | four(run[j + 4]) << 4
    }))
}

impl Cells for BlockQ4K {
    const DTYPE: DType = DType::Q4_K;
    const CELLS: usize = SUPER;
    fn cell(&self, at: usize) -> RowCell {
        let (scale, min) = scale_and_min(&self.scales, at);
        RowCell {
            words: k_nibbles(&self.qs, at),
            scales: [u16::from_le_bytes([scale, min]), 0],
            of_super: [self.d.to_bits(), self.dmin.to_bits()],
            ..RowCell::default()
        }
    }
}

impl Cells for BlockQ5K {
    const DTYPE: DType = DType::Q5_K;
    const CELLS: usize = SUPER;
    fn cell(&self, at: usize) -> RowCell {
        let (scale, min) = scale_and_min(&self.scales, at);
        let bits = self.qh.iter().enumerate();
        RowCell {
            words: k_nibbles(&self.qs, at),
            high: [
                bits.fold(0, |word, (i, byte)| word | (u32::from(byte >> at) & 1) << i),
                0,
            ],
            scales: [u16::from_le_bytes([scale, min]), 0],
            of_super: [self.d.to_bits(), self.dmin.to_bits()],
        }
    }
}

impl Cells for BlockQ2K {
    const DTYPE: DType = DType::Q2_K;
    const CELLS: usize = SUPER;
    fn cell(&self, at: usize) -> RowCell {
        // Byte i of a half of `qs` holds two bits of four cells.
        let low = &self.qs[32 * (at / 4)..];
        let numbers = std::array::from_fn(|i| low[i] >> (2 * (at % 4)) & 3);
        let scales = [self.scales[2 * at], self.scales[2 * at + 1]];
        RowCell {
            scales: [u16::from_le_bytes(scales), 0],
            of_super: [self.d.to_bits(), self.dmin.to_bits()],
            ..RowCell::of_numbers(numbers)
        }
    }
}

impl Cells for BlockQ3K {
    const DTYPE: DType = DType::Q3_K;
    const CELLS: usize = SUPER;
    fn cell(&self, at: usize) -> RowCell {
        // Byte i of a half of `qs` holds two bits of four cells; bit `at` of `hmask[i]` is the third.
        let low = &self.qs[32 * (at / 4)..];
        let numbers =
            std::array::from_fn(|i| low[i] >> (2 * (at % 4)) & 3 | (self.hmask[i] >> at & 1) << 2);
        let scale = |half| scale_q3(&self.scales, 2 * at + half).wrapping_sub(32);
        RowCell {
            scales: [u16::from_le_bytes([scale(0), scale(1)]), 0],
            of_super: [self.d.to_bits(), 0],
            ..RowCell::of_numbers(numbers)
        }
    }
}

impl Cells for BlockQ6K {
    const DTYPE: DType = DType::Q6_K;
    const CELLS: usize = SUPER;
    fn cell(&self, at: usize) -> RowCell {
        // A half of 128 values: 64 bytes of low nibbles, 32 bytes of high pairs of bits.
        let (half, quarter) = (at / 4, at % 4);
        let low: [u32; 8] = words(&self.ql[64 * half + 32 * (quarter % 2)..]);
        let shift = 4 * (quarter / 2) as u32;
        let four = |word: u32| (word >> shift) & 0x0f0f_0f0f;
        let mut high = [0u32; 2];
        for (i, byte) in self.qh[32 * half..32 * half + 32].iter().enumerate() {
            let pair = u32::from(byte >> (2 * quarter));
            high[0] |= (pair & 1) << i;
            high[1] |= (pair >> 1 & 1) << i;
        }
        let scales = [self.scales[2 * at] as u8, self.scales[2 * at + 1] as u8];
        RowCell {
            words: nibbles(std::array::from_fn(|j| {
                four(low[j]) | four(low[j + 4]) << 4
            })),
            high,
            scales: [u16::from_le_bytes(scales), 0],
            of_super: [self.d.to_bits(), 0],
        }
    }
}

/// Rows of a weight matrix as its file has them.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The format and the shape.
    pub weight: WeightLayout,
    /// All rows.
    pub bytes: &'a [u8],
    /// Bytes from one row to the next.
    stride: usize,
}

impl<'a> Source<'a> {
    /// The matrix at the beginning of `bytes`.
    pub fn new(weight: WeightLayout, bytes: &'a [u8]) -> Source<'a> {
        Source {
            weight,
            bytes,
            stride: weight.dtype.bytes_of(weight.stride).unwrap_or(0),
        }
    }

    /// Bytes of the rows of a panel.
    pub fn panel_bytes(&self) -> usize {
        (ROWS * self.stride).max(1)
    }

    /// Where the rows of some panels lie.
    pub fn bytes_of_panels(&self, panels: Range<usize>) -> Range<usize> {
        let first = self.weight.mlx.packed_at as usize;
        let at = |panel: usize| (first + panel * self.panel_bytes()).min(self.bytes.len());
        at(panels.start)..at(panels.end)
    }
}

/// Writes the panel of rows `ROWS * panel ..` to `out`, which is zeros. Rows beyond the last one stay zeros.
pub fn pack(source: &Source, panel: usize, out: &mut [u8]) {
    let rows = ROWS * panel..source.weight.rows.min(ROWS * (panel + 1));
    for (n, row) in rows.enumerate() {
        pack_row(source, row, n, out);
    }
}

/// Writes a row of the matrix as row `n` of its panel.
fn pack_row(source: &Source, row: usize, n: usize, out: &mut [u8]) {
    let Some(quant) = Quant::of(source.weight.dtype) else {
        return;
    };
    let cells = source.weight.cols / CELL;
    if source.weight.dtype.is_mlx() {
        (0..cells).for_each(|c| put_cell(quant, c, &mlx_cell(source, row, c), n, out));
        return;
    }
    let bytes = &source.bytes[row * source.stride..];
    match source.weight.dtype {
        DType::Q4_0 => pack_blocks::<BlockQ4_0>(bytes, cells, n, out),
        DType::Q4_1 => pack_blocks::<BlockQ4_1>(bytes, cells, n, out),
        DType::Q5_0 => pack_blocks::<BlockQ5_0>(bytes, cells, n, out),
        DType::Q5_1 => pack_blocks::<BlockQ5_1>(bytes, cells, n, out),
        DType::Q8_0 => pack_blocks::<BlockQ8_0>(bytes, cells, n, out),
        DType::Q2_K => pack_blocks::<BlockQ2K>(bytes, cells, n, out),
        DType::Q3_K => pack_blocks::<BlockQ3K>(bytes, cells, n, out),
        DType::Q4_K => pack_blocks::<BlockQ4K>(bytes, cells, n, out),
        DType::Q5_K => pack_blocks::<BlockQ5K>(bytes, cells, n, out),
        DType::Q6_K => pack_blocks::<BlockQ6K>(bytes, cells, n, out),
        _ => {}
    }
}

/// Writes a row of blocks as row `n`.
fn pack_blocks<B: Cells>(row: &[u8], cells: usize, n: usize, out: &mut [u8]) {
    let blocks = row.chunks_exact(size_of::<B>()).take(cells / B::CELLS);
    for (at, bytes) in blocks.enumerate() {
        let block: B = bytemuck::pod_read_unaligned(bytes);
        for within in 0..B::CELLS {
            let cell = block.cell(within);
            put_cell(B::QUANT, at * B::CELLS + within, &cell, n, out);
        }
    }
}

/// Cell `c` of a row of MLX weights: `scale * q + bias`, with the scale and the bias of its group.
fn mlx_cell(source: &Source, row: usize, c: usize) -> RowCell {
    let (packed, [scale, bias]) = source.weight.mlx_run(source.bytes, row, c * CELL);
    let bits = source.weight.dtype.block_bytes() * 8 / source.weight.dtype.block_len();
    let numbers = std::array::from_fn(|i| {
        let at = i * bits;
        let [low, high] = [0, 1].map(|next| packed.get(at / 8 + next).copied().unwrap_or(0));
        let both = u16::from_le_bytes([low, high]);
        (both >> (at % 8) & ((1u16 << bits) - 1)) as u8
    });
    let of_numbers = match bits {
        8 => RowCell::of_bytes,
        _ => RowCell::of_numbers,
    };
    RowCell {
        scales: [scale.to_bits(), bias.to_bits()],
        ..of_numbers(numbers)
    }
}

/// Inlined, so that what is known of the format is known to the loops.
#[inline(always)]
fn put_cell(quant: Quant, c: usize, cell: &RowCell, n: usize, out: &mut [u8]) {
    let cell_and_scales = &mut out[quant.cell_at(c)..][..quant.stride()];
    let (numbers, scales) = cell_and_scales.split_at_mut(quant.cell_bytes());
    put_numbers(cell, quant.bits, n, numbers);
    put_scales(cell, quant.scales, n, scales);
    if c.is_multiple_of(SUPER) {
        let supers = &mut out[quant.super_at(c)..][..quant.scales.super_bytes()];
        put_f16(&cell.of_super, n, supers);
    }
}

#[inline(always)]
fn put_numbers(cell: &RowCell, bits: u32, n: usize, out: &mut [u8]) {
    let n_words = if bits == 8 { 8 } else { 4 };
    for (j, word) in cell.words[..n_words].iter().enumerate() {
        out[64 * j + 4 * n..][..4].copy_from_slice(&word.to_le_bytes());
    }
    if bits == 8 {
        return;
    }
    let [fifth, sixth] = cell.high;
    for (i, four) in (0..if bits > 4 { 4 } else { 0 }).map(|i| (i, 4 * n + i)) {
        if bits == 5 {
            out[256 + four] = every_fourth(fifth >> i);
        } else {
            for half in 0..2 {
                let [low, high] = [fifth, sixth].map(|bits| even_bits(bits >> (16 * half + i)));
                out[256 + 64 * half + four] = low | high << 1;
            }
        }
    }
}

/// Bits 0, 4, 8, … 28, side by side.
#[inline(always)]
fn every_fourth(bits: u32) -> u8 {
    let pairs = bits & 0x1111_1111;
    let pairs = (pairs | pairs >> 3) & 0x0303_0303;
    let fours = (pairs | pairs >> 6) & 0x000f_000f;
    (fours | fours >> 12) as u8
}

/// Bits 0, 4, 8 and 12, as bits 0, 2, 4 and 6.
#[inline(always)]
fn even_bits(bits: u32) -> u8 {
    let pairs = bits & 0x1111;
    let pairs = (pairs | pairs >> 2) & 0x0505;
    ((pairs | pairs >> 4) & 0x55) as u8
}

#[inline(always)]
fn put_scales(cell: &RowCell, scales: Scales, n: usize, out: &mut [u8]) {
    match scales {
        Scales::Plain | Scales::WithMin => {
            put_f16(&cell.scales, n, &mut out[..scales.cell_bytes()])
        }
        Scales::Grouped | Scales::Halves | Scales::HalvesWithMin => {
            let [first, second] = cell.scales[0].to_le_bytes();
            out[n] = first;
            out[ROWS + n] = second;
        }
    }
}

/// Writes row n's numbers, one array of sixteen for each.
#[inline(always)]
fn put_f16(bits: &[u16], n: usize, out: &mut [u8]) {
    for (array, bits) in out.chunks_exact_mut(2 * ROWS).zip(bits) {
        array[2 * n..][..2].copy_from_slice(&f16::from_bits(*bits).to_le_bytes());
    }
}
