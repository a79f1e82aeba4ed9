//! `sort_experts_u32`: the results of all rows' experts in the order of their experts, and in tiles of one expert each.
//!
//! ```text
//! order = the numbers of the results, by expert, those of one expert in the order of the rows
//! tiles = expert, first place in the order and count of `tile` results of an expert or, of its last tile, fewer
//! ```
//!
//! A result is one of the `n_used` experts of a row. Expert e, whose results begin at place f, has the tiles from `f / tile + e` on:
//! those of the expert before end there at the latest. What is left between the two are tiles of no results. So each expert finds
//! its tiles without those of the others, and there are as many tiles however the results are shared out ([`n_tiles`]). An id
//! beyond the experts is the last one.

use akunu_types::params::SortExpertsParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::table::{Args, Family, KernelRow, Launch, buffers, usual_threads};
use crate::twin::Twin;

/// Numbers of a tile: expert, first place, count.
pub const TILE_WORDS: u32 = 3;

/// Most threads of a threadgroup.
const MAX_THREADS: u32 = 256;

/// Tiles of so many results.
pub fn n_tiles(n_results: u32, n_experts: u32, tile: u32) -> u32 {
    (n_results / tile.max(1)).saturating_add(n_experts)
}

buffers! {
    pub struct Buffers, Slices(p: SortExpertsParams at 3) {
        ids: read u32 = ids_len(&p),
        order: write u32 = [p.n_results],
        tiles: write u32 = [n_tiles(p.n_results, p.n_experts, p.tile), TILE_WORDS],
    }
}

/// No experts and empty tiles make a buffer larger than any.
fn ids_len(p: &SortExpertsParams) -> usize {
    match (p.n_experts, p.tile) {
        (0, _) | (_, 0) => usize::MAX,
        _ => p.n_results as usize,
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("sort_experts_u32", ""),
    family: Family::Experts,
    source: "sort_experts",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: SortExpertsParams = args.params();
    let threads = p.n_results.div_ceil(4).next_multiple_of(SIMD_WIDTH);
    let threads = threads.clamp(SIMD_WIDTH, MAX_THREADS.min(usual_threads(chip)));
    Launch::new([p.n_experts, 1, 1], [threads, 1, 1])
}

fn twin(t: &mut Twin) {
    let p: SortExpertsParams = t.params();
    let Slices { ids, order, tiles } = Slices::of(t);
    sort(&p, ids, order, tiles);
}

/// The order of the results, and their tiles.
pub fn sort(p: &SortExpertsParams, ids: &[u32], order: &mut [u32], tiles: &mut [u32]) {
    let mut places = order.iter_mut();
    let mut all_tiles = tiles.chunks_exact_mut(TILE_WORDS as usize);
    let (mut first, mut n_written) = (0, 0);
    for expert in 0..p.n_experts {
        let is_own = |id: u32| id.min(p.n_experts - 1) == expert;
        let own = (0..).zip(ids).filter(|&(_, &id)| is_own(id));
        let mut count = 0;
        for ((result, _), place) in own.zip(&mut places) {
            *place = result;
            count += 1;
        }
        let end = (first + count) / p.tile + expert + 1;
        for (tile, at) in (&mut all_tiles).take((end - n_written) as usize).zip(0..) {
            let done = count.min(at * p.tile);
            tile.copy_from_slice(&[expert, first + done, (count - done).min(p.tile)]);
        }
        (first, n_written) = (first + count, end);
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        let mut rng = Rng::new(46);
        // One result; all of the last expert; more than a result for each thread and a share of it.
        let mut cases = vec![
            case([1, 1, 1], 1, 8),
            case([37, 4, 512], 1, 32),
            case([515, 16, 64], 64, 32),
        ];
        for _ in 0..12 {
            let n_experts = 2 + rng.below(511);
            let n_used = 1 + rng.below(n_experts.min(16));
            let n_rows = 1 + rng.below(70);
            let n_chosen = 1 + rng.below(n_experts);
            cases.push(case(
                [n_rows, n_used, n_experts],
                n_chosen,
                1 + rng.below(64),
            ));
        }
        cases
    }

    /// So many rows, experts of a row and experts, of which only the last `n_chosen` are used; results of a tile. Exact.
    fn case([n_rows, n_used, n_experts]: [u32; 3], n_chosen: u32, tile: u32) -> Case {
        let params = SortExpertsParams {
            n_results: n_rows * n_used,
            n_experts,
            tile,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(params.n_results * 31 + n_experts));
        let first = n_experts - n_chosen;
        // One more than there are.
        let ids: Vec<u32> = (0..params.n_results)
            .map(|_| first + rng.below(n_chosen + 1))
            .collect();
        let n_tiles = n_tiles(params.n_results, n_experts, tile) * TILE_WORDS;
        let label =
            format!("{n_rows} rows, {n_used} of {n_experts}, {n_chosen} chosen, tiles of {tile}");
        Case::new(label, &params, 0.0)
            .bind(&ids)
            .bind(&vec![u32::MAX; params.n_results as usize])
            .bind(&vec![u32::MAX; n_tiles as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when results of one expert are out of order, when an expert's tiles begin elsewhere, or when those that are left over
    /// are not empty.
    #[test]
    fn results_are_sorted_by_expert_then_row() {
        let p = SortExpertsParams {
            n_results: 7,
            n_experts: 4,
            tile: 2,
            ..Default::default()
        };
        let (mut order, mut tiles) = ([9; 7], [9; 21]);
        sort(&p, &[3, 1, 1, 3, 1, 0, 99], &mut order, &mut tiles);
        assert_eq!(order, [5, 1, 2, 4, 0, 3, 6]);
        let expected = [
            [0, 0, 1],
            [1, 1, 2],
            [1, 3, 1],
            [1, 4, 0],
            [2, 4, 0],
            [3, 4, 2],
            [3, 6, 1],
        ];
        assert_eq!(tiles.as_chunks::<3>().0, expected);
    }
}
