//! Lays rows of a weight file out as panels.

use akunu_kernels::weight::WeightLayout;
use akunu_types::format::{Block, Cell, Kind, WithBlock};
use half::f16;
use std::ops::Range;

use super::format::{CELL, Quant, ROWS, SUPER, Scales};

/// Rows of a weight matrix as its file has them.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The format and the shape.
    pub weight: WeightLayout,
    /// All rows.
    pub bytes: &'a [u8],
    /// How a panel is laid out.
    pub quant: Quant,
    /// Bytes from one row to the next.
    stride: usize,
    pack_row: PackRow,
}

/// Writes a row of the matrix as row `n` of its panel: source, row, n, panel.
type PackRow = fn(&Source, usize, usize, &mut [u8]);

/// The [`PackRow`] of a format of blocks.
struct OfBlocks;

impl WithBlock for OfBlocks {
    type Out = PackRow;

    fn run<B: Block>(self) -> PackRow {
        pack_blocks::<B>
    }
}

impl<'a> Source<'a> {
    /// The matrix at the beginning of `bytes`; `None` where its format has no panels.
    pub fn of(weight: WeightLayout, bytes: &'a [u8]) -> Option<Source<'a>> {
        let pack_row: PackRow = match weight.dtype.kind() {
            Kind::Blocks(_) => weight.dtype.with_block(OfBlocks)?,
            Kind::Mlx(_) => pack_mlx,
            Kind::Numbers | Kind::Listed => return None,
        };
        Some(Source {
            weight,
            bytes,
            quant: Quant::of(weight.dtype)?,
            stride: weight.dtype.bytes_of(weight.stride).unwrap_or(0),
            pack_row,
        })
    }

    /// Bytes of the rows of a panel.
    pub fn panel_bytes(&self) -> usize {
        (ROWS * self.stride).max(1)
    }

    /// Where the rows of some panels lie.
    pub fn bytes_of_panels(&self, panels: Range<usize>) -> Range<usize> {
        let first = self.weight.storage.mlx().packed_at as usize;
        let at = |panel: usize| (first + panel * self.panel_bytes()).min(self.bytes.len());
        at(panels.start)..at(panels.end)
    }
}

/// Writes the panel of rows `ROWS * panel ..` to `out`, which is zeros. Rows beyond the last one stay zeros.
pub fn pack(source: &Source, panel: usize, out: &mut [u8]) {
    let rows = ROWS * panel..source.weight.rows.min(ROWS * (panel + 1));
    for (n, row) in rows.enumerate() {
        (source.pack_row)(source, row, n, out);
    }
}

/// [`PackRow`] of blocks.
fn pack_blocks<B: Block>(source: &Source, row: usize, n: usize, out: &mut [u8]) {
    let quant = const { Quant::new(B::FORMAT) };
    let cells = source.weight.cols / CELL;
    let row = &source.bytes[row * source.stride..];
    let blocks = row.chunks_exact(size_of::<B>()).take(cells / B::CELLS);
    for (at, bytes) in blocks.enumerate() {
        let block: B = bytemuck::pod_read_unaligned(bytes);
        for within in 0..B::CELLS {
            let cell = block.cell(within);
            put_cell(quant, at * B::CELLS + within, &cell, n, out);
        }
    }
}

/// [`PackRow`] of MLX: `scale * q + bias`, with the scale and the bias of a group of the row.
fn pack_mlx(source: &Source, row: usize, n: usize, out: &mut [u8]) {
    for c in 0..source.weight.cols / CELL {
        put_cell(source.quant, c, &mlx_cell(source, row, c), n, out);
    }
}

/// Cell `c` of a row of MLX weights.
fn mlx_cell(source: &Source, row: usize, c: usize) -> Cell {
    let (packed, [scale, bias]) = source.weight.mlx_run(source.bytes, row, c * CELL);
    let bits = source.weight.dtype.block_bytes() * 8 / source.weight.dtype.block_len();
    let code = |i: usize| {
        let at = i * bits;
        let [low, high] = [0, 1].map(|next| packed.get(at / 8 + next).copied().unwrap_or(0));
        let both = u16::from_le_bytes([low, high]);
        (both >> (at % 8) & ((1u16 << bits) - 1)) as u8
    };
    Cell {
        codes: std::array::from_fn(code),
        scales: [scale.to_bits(), bias.to_bits()],
        of_block: [0; 2],
    }
}

/// Inlined, so that what is known of the format is known to the loops.
#[inline(always)]
fn put_cell(quant: Quant, c: usize, cell: &Cell, n: usize, out: &mut [u8]) {
    let cell_and_scales = &mut out[quant.cell_at(c)..][..quant.stride()];
    let (codes, scales) = cell_and_scales.split_at_mut(quant.cell_bytes());
    put_codes(&cell.codes, quant.bits, n, codes);
    put_scales(cell.scales, quant, n, scales);
    if c.is_multiple_of(SUPER) {
        let supers = &mut out[quant.super_at(c)..][..quant.super_bytes()];
        put_f16(cell.of_block, n, supers);
    }
}

#[inline(always)]
fn put_codes(codes: &[u8; CELL], bits: u32, n: usize, out: &mut [u8]) {
    let fours: [u32; 8] =
        std::array::from_fn(|j| u32::from_le_bytes([0, 1, 2, 3].map(|i| codes[4 * j + i])));
    let mut put = |at: usize, four: u32| {
        out[64 * at + 4 * n..][..4].copy_from_slice(&four.to_le_bytes());
    };
    if bits == 8 {
        fours
            .into_iter()
            .enumerate()
            .for_each(|(j, four)| put(j, four));
        return;
    }
    for j in 0..4 {
        put(
            j,
            fours[j] & 0x0f0f_0f0f | (fours[4 + j] & 0x0f0f_0f0f) << 4,
        );
    }
    let high = |mask: u32, j: usize| fours[j] >> 4 & mask;
    if bits == 5 {
        put(
            4,
            (0..8).fold(0, |bits, j| bits | high(0x0101_0101, j) << j),
        );
    } else if bits == 6 {
        for half in 0..2 {
            let of = |j: usize| high(0x0303_0303, 4 * half + j) << (2 * j);
            put(4 + half, of(0) | of(1) | of(2) | of(3));
        }
    }
}

#[inline(always)]
fn put_scales(of_cell: [u16; 2], quant: Quant, n: usize, out: &mut [u8]) {
    match quant.scales {
        Scales::Plain | Scales::WithMin => put_f16(of_cell, n, &mut out[..quant.scale_bytes()]),
        Scales::Power | Scales::Signed => out[n] = of_cell[0].to_le_bytes()[0],
        Scales::Grouped | Scales::Halves | Scales::HalvesWithMin => {
            let [first, second] = of_cell[0].to_le_bytes();
            out[n] = first;
            out[ROWS + n] = second;
        }
    }
}

/// Writes row n's numbers, one array of sixteen for each.
#[inline(always)]
fn put_f16(bits: [u16; 2], n: usize, out: &mut [u8]) {
    for (array, bits) in out.chunks_exact_mut(2 * ROWS).zip(bits) {
        array[2 * n..][..2].copy_from_slice(&f16::from_bits(bits).to_le_bytes());
    }
}
