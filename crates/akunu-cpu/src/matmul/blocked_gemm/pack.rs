//! Laying x out for the gemms that quantise it.

use std::ops::Range;

use super::Blocks;
use crate::matmul::vectors::Vectors;
use crate::panels::format::CELL;

/// Writes the cells of blocks `range` of x to `packed`, `n_words` words for each vector and cell. `put` quantises a cell of one
/// vector, and writes it to the cell of its block: which of how many vectors it is, and the words of all.
///
/// Inlined, so that it is compiled with the vector instructions of its caller.
///
/// # Safety
/// - `reach`: `packed` is aligned to 4 bytes and has room for as many words.
/// - `own`: nobody else touches these blocks.
#[inline(always)]
pub unsafe fn pack_cells(
    (cells, n_words): (usize, usize),
    blocks: Blocks,
    x: &Vectors,
    (range, packed): (Range<usize>, *mut u8),
    put: impl Fn(&[f32; CELL], (usize, usize), &mut [u32]),
) {
    for block in range {
        let vectors = blocks.vectors(block);
        let n = vectors.len();
        // SAFETY: the block's part of the memory.
        let out = unsafe {
            let first = packed.cast::<u32>().add(vectors.start * cells * n_words);
            std::slice::from_raw_parts_mut(first, n * cells * n_words)
        };
        for (c, out) in out.chunks_exact_mut(n * n_words).enumerate() {
            for (i, vector) in vectors.clone().enumerate() {
                let from = &x.get(vector)[c * CELL..];
                if let Some(from) = from.first_chunk() {
                    put(from, (i, n), out);
                }
            }
        }
    }
}

/// Writes words of a vector to a block of so many: each beside that of the other vectors.
#[inline(always)]
pub fn lay_words(words: &[u32], (vector, n_vectors): (usize, usize), block: &mut [u32]) {
    for (of_vectors, word) in block.chunks_exact_mut(n_vectors).zip(words) {
        of_vectors[vector] = *word;
    }
}
