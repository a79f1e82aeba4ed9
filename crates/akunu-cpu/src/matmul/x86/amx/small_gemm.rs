//! Products of panels with nine to 32 vectors by tile instructions: what a batch of sequences runs with quantised weights.
//!
//! Weights that are used so few times must not take long to become tiles. So a tile holds the stored numbers of a cell without
//! their scale, and the sums of each cell are scaled instead:
//!
//! ```text
//! for each slab of panels
//!     for each run of cells                       (the tiles of x stay in the first cache)
//!         for each panel, for each cell of the run
//!             tile of the cell
//!             dots = tile of x · tile of the cell
//!             sums += dots * scale + minimum * Σ x
//!     y = alpha sums + beta y
//! ```
//!
//! What is stored can be loaded as a tile, and the other way round, only some time later. So each step of the loop makes the tile
//! of one cell, and does the rest for cells before it, across the ends of panels.
//!
//! - Numbers of 4 and 5 bits become bf16, which is one lookup in a table for each 32, and so does x. A number is exact: what is
//!   rounded is only x ([`Digits::Floats`]).
//! - Numbers of 8 bits lie in a panel as the tile instructions want bytes. x are the 16-bit numbers of the products with a few
//!   vectors ([`crate::matmul::activation`]), two digits, each of which has a tile of integer sums. So results are those of the products
//!   with a few vectors ([`crate::matmul::gemv`]), to the bit ([`Digits::Bytes`]).

mod digits;
#[cfg(test)]
mod tests;
mod vectors;
mod weights;

use std::arch::x86_64::*;
use std::ops::Range;

pub use self::digits::Digits;
use self::vectors::{VECTORS, VectorCell};
pub use self::vectors::{cells, pack_x, packed_bytes};
use self::weights::{Dots, RowScales, make, numbers_of_codes};
use crate::amx::{TILE, Tiles};
use crate::matmul::blocked_gemm::put;
use crate::matmul::shape::Shape;
use crate::matmul::x86::avx512::cells::Cells;
use crate::matmul::x86::kind::{ForCells, for_cells, has_halves, layout};
use crate::panels::format::{ROWS, SUPER, Table};
use crate::panels::matrix::PackedMatrix;

/// Most vectors that are multiplied in this way.
pub const MOST: usize = 2 * VECTORS;
/// Panels that share a reading of x.
pub const SLAB: usize = 8;
/// Steps from making a cell's tile to loading it.
const LOADED: usize = 1;
/// Steps from there to storing its products ([`Tiles::step_of_floats`]).
const STORED: usize = 2;
/// Steps from there to adding them to the sums.
const ADDED: usize = 1;
/// Cells whose scales are kept: those on their way.
const CELLS: usize = 8;
/// Cells whose tile, or whose products, are kept. The fewer, the more of the first cache is left.
const TILES: usize = 2;
const _: () = assert!(LOADED < TILES && ADDED < TILES && LOADED + STORED + ADDED < CELLS);
/// Panels ahead whose cells are fetched.
const PANELS_AHEAD: usize = 2;

/// Memory of a thread.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Scratch {
    tiles: [[u8; TILE]; TILES],
    scales: [RowScales; CELLS],
    dots: [Dots; TILES],
    sums: [[[f32; ROWS]; VECTORS]; SLAB],
}

/// Bytes of a thread's memory.
pub const SCRATCH: usize = size_of::<Scratch>();

/// Computes the outputs of panels `range`.
///
/// # Safety
/// - `level`: AMX.
/// - `reach`: `packed` holds all of x, `scratch` points at [`SCRATCH`] bytes, aligned to 64, `y` at the whole output.
/// - `own`: nobody else touches the scratch memory, nor these columns of y.
pub unsafe fn multiply(
    matrix: &PackedMatrix,
    shape: &Shape,
    packed: *const u8,
    (y, scratch): (*mut f32, *mut u8),
    range: Range<usize>,
) {
    let job = Job {
        matrix,
        shape,
        x: packed.cast(),
        scratch: scratch.cast(),
        y,
        range,
    };
    // SAFETY: passes on `level`, `reach` and `own`.
    unsafe { for_cells(matrix.shape.quant, job) }
}

/// A product on its way.
struct Job<'a> {
    matrix: &'a PackedMatrix,
    shape: &'a Shape,
    x: *const VectorCell,
    scratch: *mut Scratch,
    y: *mut f32,
    range: Range<usize>,
}

/// A run of cells of the panels of a slab, and sixteen vectors.
struct Run {
    panels: Range<usize>,
    cells: Range<usize>,
    /// The first of the vectors.
    first: usize,
}

/// A cell of a run.
#[derive(Clone, Copy, Default)]
struct Place {
    panel: usize,
    cell: usize,
}

impl Run {
    /// The cell after this one, in the next panel after the last of a panel.
    #[inline(always)]
    fn after(&self, Place { panel, cell }: Place) -> Place {
        if cell + 1 < self.cells.len() {
            return Place {
                panel,
                cell: cell + 1,
            };
        }
        Place {
            panel: panel + 1,
            cell: 0,
        }
    }
}

/// The runs of `cells` cells: a super-block each, and a short rest with the last one.
fn runs(cells: usize) -> impl Iterator<Item = Range<usize>> {
    let count = (cells + SUPER / 2) / SUPER;
    let count = count.max(1);
    (0..count).map(move |run| {
        let end = if run + 1 == count {
            cells
        } else {
            (run + 1) * SUPER
        };
        run * SUPER..end
    })
}

impl ForCells for Job<'_> {
    type Out = ();

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn run<const BITS: u32, const SCALES: u8>(self, table: Table) {
        if has_halves(SCALES) || BITS == 6 {
            unreachable!("{:?} is multiplied in another way", self.matrix.shape.quant);
        }
        // SAFETY: passes on `level`.
        let mut tiles = unsafe {
            match BITS {
                8 => Tiles::configure_bytes(),
                _ => Tiles::configure(),
            }
        };
        for panel in self.range.clone().step_by(SLAB) {
            for first in (0..self.shape.m).step_by(VECTORS) {
                for cells in runs(self.matrix.shape.cells) {
                    let run = Run {
                        panels: panel..self.range.end.min(panel + SLAB),
                        cells,
                        first,
                    };
                    // SAFETY: passes on `level` and `reach`.
                    unsafe { self.multiply_run::<BITS, SCALES>(&mut tiles, &run, table) };
                }
            }
        }
    }
}

impl Job<'_> {
    /// Adds the products of a run to the sums; after the last run they are stored.
    ///
    /// # Safety
    /// That of [`multiply`], for all functions here.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn multiply_run<const BITS: u32, const SCALES: u8>(
        &self,
        tiles: &mut Tiles,
        run: &Run,
        table: Table,
    ) {
        let (scratch, n_cells) = (self.scratch, self.matrix.shape.cells);
        let x = self
            .x
            .wrapping_add(run.first / VECTORS * n_cells + run.cells.start);
        let numbers = numbers_of_codes::<BITS>(self.matrix.shape.quant);
        let n_steps = run.panels.len() * run.cells.len();
        let [mut made, mut loaded, mut added] = [Place::default(); 3];
        let mut walk = Cells::<BITS, SCALES>::from(std::ptr::null(), 0, table);
        let mut ahead = 0;
        let mut places = [std::ptr::null(); TILES];
        let mut sums = [_mm512_setzero_ps(); VECTORS];
        for step in 0..n_steps + LOADED + STORED + ADDED {
            // SAFETY: passes on `level`, `reach` and `own`. Each place is one of the run, and what is kept of its cell is not
            // yet that of another.
            // What is loaded after the last cell, and stored before the first, is never added.
            unsafe {
                if step < n_steps {
                    if made.cell == 0 {
                        let panel = self.matrix.panel(run.panels.start + made.panel);
                        walk = Cells::from(panel.as_ptr(), run.cells.start, table);
                        ahead = self.ahead::<BITS, SCALES>(run, made.panel);
                    }
                    let cell = walk.next_and_fetch(ahead);
                    places[step % TILES] = cell.at;
                    (*scratch).scales[step % CELLS].keep::<SCALES>(&cell);
                    let tile = (*scratch).tiles[step % TILES].as_mut_ptr();
                    make::<BITS>(&cell, numbers, tile);
                    made = run.after(made);
                }
                if step >= LOADED {
                    let slot = (step - LOADED) % TILES;
                    let digits = (&raw const (*x.add(loaded.cell)).digits).cast();
                    let stored = step.wrapping_sub(LOADED + STORED) % TILES;
                    let dots = (&raw mut (*scratch).dots[stored]).cast();
                    match BITS {
                        8 => tiles.step_of_bytes(step % 2 == 0, (digits, places[slot]), dots),
                        _ => tiles.step_of_floats(
                            step % 2 == 0,
                            (digits, (*scratch).tiles[slot].as_ptr()),
                            dots,
                        ),
                    }
                    loaded = run.after(loaded);
                }
                if step >= LOADED + STORED + ADDED {
                    let cell = step - LOADED - STORED - ADDED;
                    let kept = (&raw mut (*scratch).sums).cast::<__m512>();
                    let kept = kept.add(added.panel * VECTORS);
                    if added.cell == 0 && run.cells.start == 0 {
                        sums = [_mm512_setzero_ps(); VECTORS];
                    } else if added.cell == 0 {
                        sums = std::array::from_fn(|m| kept.add(m).read());
                    }
                    let dots = &(*scratch).dots[cell % TILES];
                    let scales = &(*scratch).scales[cell % CELLS];
                    scales.add::<BITS, SCALES>(dots, &*x.add(added.cell), &mut sums);
                    let next = run.after(added);
                    if next.cell == 0 && run.cells.end < n_cells {
                        (0..VECTORS).for_each(|m| kept.add(m).write(sums[m]));
                    } else if next.cell == 0 {
                        self.store(run.panels.start + added.panel, run.first, &sums);
                    }
                    added = next;
                }
            }
        }
    }

    /// Bytes from a run of the `p`-th panel to one that is read a little later: that of a panel further on, the next run of the first
    /// panels, or the first run of the next slab.
    fn ahead<const BITS: u32, const SCALES: u8>(&self, run: &Run, p: usize) -> usize {
        let cells = self.matrix.shape.cells;
        let layout = layout(BITS, SCALES);
        let (n_panels, then) = (run.panels.len(), p + PANELS_AHEAD);
        let (then, cell) = if then < n_panels {
            (then, run.cells.start)
        } else if run.cells.end < cells {
            (then - n_panels, run.cells.end)
        } else {
            (then, 0)
        };
        let at = |panel: usize, cell| panel * layout.panel_bytes(cells) + layout.super_at(cell);
        at(then, cell).wrapping_sub(at(p, run.cells.start))
    }

    /// `y = alpha sums + beta y` for the rows of a panel and the vectors from `first` on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(&self, panel: usize, first: usize, sums: &[__m512; VECTORS]) {
        let Shape {
            m,
            n,
            ldc,
            alpha,
            beta,
            ..
        } = *self.shape;
        let rows = ROWS.min(n - ROWS * panel);
        for (sums, vector) in sums.iter().zip(first..m) {
            let mut floats = [0f32; ROWS];
            // SAFETY: `reach`: sixteen floats; and passes on `level` and `reach`.
            let y = unsafe {
                _mm512_storeu_ps(floats.as_mut_ptr(), *sums);
                let y = self.y.wrapping_add(vector * ldc + ROWS * panel);
                std::slice::from_raw_parts_mut(y, rows)
            };
            put(y, &floats[..rows], alpha, beta);
        }
    }
}
