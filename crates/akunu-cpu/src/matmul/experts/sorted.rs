//! The results of a step in the order of their experts.

use std::ops::Range;

use akunu_kernels::kernel::experts::Experts;

use crate::matmul::gemm::Gemm;

/// The results of the experts that are used, and the pieces of their outputs that parts take.
#[derive(Default)]
pub struct Sorted {
    results: Vec<usize>,
    shares: Vec<Share>,
    counts: Vec<usize>,
    n_items: usize,
    n_pieces: usize,
}

/// The results of one expert.
pub struct Share {
    /// Which one.
    pub expert: u32,
    /// Its results, in the order of all.
    results: Range<usize>,
    /// How they are multiplied if they are many.
    pub many: Option<Many>,
    /// Pieces of outputs of the experts before.
    first_item: usize,
    /// Pieces of laid out vectors of the experts before.
    first_piece: usize,
}

/// How the results of an expert are multiplied.
pub struct Many {
    /// The gemm.
    pub gemm: Gemm,
    /// Groups of outputs that are computed at once.
    pub at_once: usize,
    /// Where its laid out vectors begin.
    pub packed_at: usize,
}

impl Many {
    /// Pieces of `n` outputs.
    pub fn items(&self, n: usize) -> usize {
        n.div_ceil(self.gemm.group()).div_ceil(self.at_once)
    }

    /// The outputs of a piece, in whole groups: the last may end behind `n`.
    pub fn outputs(&self, item: usize, n: usize) -> Range<usize> {
        let end = n.div_ceil(self.gemm.group()).min((item + 1) * self.at_once);
        item * self.at_once * self.gemm.group()..end * self.gemm.group()
    }
}

impl Sorted {
    /// Sorts the results by counting.
    pub fn sort(&mut self, experts: &Experts, ids: &[u32]) {
        self.counts.clear();
        self.counts.resize(experts.params.n_experts as usize, 0);
        for result in 0..ids.len() {
            self.counts[experts.expert(ids, result)] += 1;
        }
        self.shares.clear();
        let mut before = 0;
        for (count, expert) in self.counts.iter_mut().zip(0..) {
            if *count > 0 {
                self.shares.push(Share {
                    expert,
                    results: before..before + *count,
                    many: None,
                    first_item: 0,
                    first_piece: 0,
                });
            }
            before += std::mem::replace(count, before);
        }
        self.results.resize(ids.len(), 0);
        for result in 0..ids.len() {
            let next = &mut self.counts[experts.expert(ids, result)];
            self.results[*next] = result;
            *next += 1;
        }
    }

    /// Numbers the pieces of all experts: `count` says how many of its outputs an expert has, and of its vectors.
    pub fn number(&mut self, count: impl Fn(&Share) -> (usize, usize)) {
        (self.n_items, self.n_pieces) = (0, 0);
        for share in &mut self.shares {
            (share.first_item, share.first_piece) = (self.n_items, self.n_pieces);
            let (items, pieces) = count(share);
            self.n_items += items;
            self.n_pieces += pieces;
        }
    }

    /// Pieces of all outputs.
    pub fn n_items(&self) -> usize {
        self.n_items
    }

    /// The expert of a piece of outputs, and which of its pieces it is.
    pub fn find_item(&self, item: usize) -> (&Share, usize) {
        let after = (self.shares).partition_point(|share| share.first_item <= item);
        let share = &self.shares[after - 1];
        (share, item - share.first_item)
    }

    /// Pieces of all vectors that are laid out.
    pub fn n_pieces(&self) -> usize {
        self.n_pieces
    }

    /// The expert of a piece of vectors, and which of its pieces it is.
    pub fn find_piece(&self, piece: usize) -> (&Share, usize) {
        // Experts without pieces begin where the next one does: the last of them is the one that has the piece.
        let after = (self.shares).partition_point(|share| share.first_piece <= piece);
        let share = &self.shares[after - 1];
        (share, piece - share.first_piece)
    }

    /// The experts that are used.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// The experts that are used.
    pub fn shares_mut(&mut self) -> &mut [Share] {
        &mut self.shares
    }

    /// The results of an expert.
    pub fn results(&self, share: &Share) -> &[usize] {
        &self.results[share.results.clone()]
    }
}

impl Share {
    /// How many results the expert has.
    pub fn count(&self) -> usize {
        self.results.len()
    }
}
