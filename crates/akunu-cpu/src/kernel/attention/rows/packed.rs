//! The keys and values of a KV head, laid out for the products of all its jobs.
//!
//! They are blocks of [`BLOCK`] keys, one after the other: the keys as (BLOCK, head_dim), then their values in panels,
//! (columns / width, BLOCK, width). The columns behind the head are 0; what lies behind the last key is anything.

use super::super::blocks::BLOCK;
use super::super::product::tile_columns;
use super::Job;
use crate::number::Number;
use crate::simd::Lanes;

impl<T: Number> Job<'_, T> {
    /// Floats of the keys of a block, and of its values.
    fn block_room<L: Lanes>(&self) -> [usize; 2] {
        let head_dim = self.problem.head_dim;
        let columns = head_dim.next_multiple_of(tile_columns::<L>());
        [BLOCK * head_dim, BLOCK * columns]
    }

    /// Floats of all blocks.
    pub(super) fn packed_room<L: Lanes>(&self) -> usize {
        let [keys, values] = self.block_room::<L>();
        self.keys.len().div_ceil(BLOCK) * (keys + values)
    }

    /// The keys and the values of a block.
    pub(super) fn packed_block<'p, L: Lanes>(
        &self,
        packed: &'p [f32],
        block: usize,
    ) -> (&'p [f32], &'p [f32]) {
        let [keys, values] = self.block_room::<L>();
        packed[block * (keys + values)..][..keys + values].split_at(keys)
    }

    /// Lays out all keys and values that the queries of the job see.
    #[inline(always)]
    pub(super) fn pack<L: Lanes>(&self, packed: &mut [f32]) {
        let (problem, width) = (self.problem, tile_columns::<L>());
        let head_dim = problem.head_dim;
        let [n_keys, n_values] = self.block_room::<L>();
        let blocks = packed.chunks_exact_mut(n_keys + n_values);
        for (first, block) in self.keys.clone().step_by(BLOCK).zip(blocks) {
            let (keys, values) = block.split_at_mut(n_keys);
            for (i, key) in (first..self.keys.end.min(first + BLOCK)).enumerate() {
                let at = key * problem.stride + self.kv_heads.start * head_dim;
                let (k, v) = (&problem.k[at..][..head_dim], &problem.v[at..][..head_dim]);
                let panels = values.chunks_exact_mut(BLOCK * width);
                widen::<L, T>(k, &mut keys[i * head_dim..][..head_dim]);
                for (panel, v) in panels.zip(v.chunks(width)) {
                    widen::<L, T>(v, &mut panel[i * width..][..width]);
                }
            }
        }
    }
}

/// Numbers as floats, and zeros behind them.
#[inline(always)]
fn widen<L: Lanes, T: Number>(from: &[T], to: &mut [f32]) {
    let (to, behind) = to.split_at_mut(from.len());
    let whole = from.len() / L::N * L::N;
    let rest = from.len() - whole;
    // SAFETY: `reach`: as many numbers are there in both.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            T::load::<L>(from.as_ptr().add(at)).store(to.as_mut_ptr().add(at));
        }
        if rest > 0 {
            let last: L = T::load_part(from.as_ptr().add(whole), rest);
            last.store_part(to.as_mut_ptr().add(whole), rest);
        }
    }
    behind.fill(0.0);
}
