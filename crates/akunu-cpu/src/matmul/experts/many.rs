//! Experts with many results: a gemm of all of them, as in a dense prompt.

use akunu_kernels::kernel::experts::Experts;
use akunu_types::DType;

use super::job::{Job, Outputs, Piece};
use super::sorted::{Many, Sorted};
use crate::isa::Level;
use crate::matmul::batch::FEW;
use crate::matmul::gemm::{self, Contents, Gemm};
use crate::matmul::shape::Shape;
use crate::panels::format::ROWS;
use crate::part::Part;
use crate::pieces;

/// Laid out vectors of an expert begin at multiples of this.
const ALIGN: usize = 64;
/// Vectors that one part lays out at a time.
const PIECE: usize = 16;

/// The gemm for results of one expert.
fn gemm_of(level: (Level, bool), experts: &Experts, n_results: usize) -> Option<Gemm> {
    let dtype: DType = experts.first.dtype;
    Gemm::of(level, dtype, (n_results, experts.params.K as usize))
}

/// Bytes of the laid out vectors of one expert.
fn bytes_of(gemm: Gemm, experts: &Experts, n_results: usize) -> usize {
    let bytes = gemm.packed_bytes(n_results, experts.params.K as usize);
    bytes.next_multiple_of(ALIGN)
}

/// Most bytes of all experts' laid out vectors, however the results are shared out: as many as if each expert had that number of
/// results with which a result takes most.
pub fn packed_bytes(level: (Level, bool), experts: &Experts) -> usize {
    let n_results = experts.n_results() as usize;
    let counts = (FEW + 1..=FEW * PIECE).take_while(|&count| count <= n_results);
    let bytes = counts.filter_map(|count| {
        let gemm = gemm_of(level, experts, count)?;
        Some(bytes_of(gemm, experts, count).div_ceil(count))
    });
    bytes.max().unwrap_or(0) * n_results
}

impl<const N: usize> Job<'_, '_, N> {
    /// Decides how the results of each expert are multiplied and which outputs are computed at once. Returns the memory for laid
    /// out vectors, if any expert needs it.
    pub(super) fn plan(&self, n_parts: usize, sorted: &mut Sorted) -> Option<*mut u8> {
        let level = (self.call.level, self.call.exact);
        let n = self.experts.params.N as usize;
        let n_groups = sorted.shares().len() * n.div_ceil(ROWS);
        let mut bytes = 0;
        for share in sorted.shares_mut() {
            let count = share.count();
            share.many = gemm_of(level, &self.experts, count).map(|gemm| Many {
                gemm,
                at_once: (n_groups * ROWS / gemm.group() / n_parts)
                    .clamp(1, gemm.groups_at_once(count)),
                packed_at: bytes,
            });
            if let Some(many) = &share.many {
                bytes += bytes_of(many.gemm, &self.experts, count);
            }
        }
        let packed = (self.call.panels.tiles(bytes)).filter(|_| bytes > 0);
        if packed.is_none() {
            sorted
                .shares_mut()
                .iter_mut()
                .for_each(|share| share.many = None);
        }
        sorted.number(|share| match &share.many {
            Some(many) => (many.items(n), share.count().div_ceil(PIECE)),
            None => (n.div_ceil(ROWS), 0),
        });
        packed
    }

    /// Lays out the vectors of all experts with many results, all parts together.
    pub(super) fn pack(&self, part: &mut Part, sorted: &Sorted, packed: *mut u8) {
        gemm::claim(part, Contents::Experts);
        let mut all = part.divide(sorted.n_pieces());
        while let Some(range) = part.take(&mut all) {
            for piece in range {
                let (share, piece) = sorted.find_piece(piece);
                let Some(many) = &share.many else { continue };
                let x = self.vectors(sorted.results(share));
                let n = many.gemm.pieces_of_x(x.count(), x.len());
                let own = pieces::share(n, piece, x.count().div_ceil(PIECE));
                // SAFETY: `level`: the gemm was chosen for the call's; `reach`: `Panels::tiles` compared the size of all; `own`: nobody
                // reads the memory after `claim` and before the barrier below, and each piece belongs to one part.
                unsafe { many.gemm.pack(&x, own, packed.wrapping_add(many.packed_at)) };
            }
        }
        part.wait();
    }

    /// Multiplies a piece of an expert's outputs with the vectors of its results.
    pub(super) fn many(
        &self,
        part: &mut Part,
        (many, packed): (&Many, *mut u8),
        piece: &Piece<N>,
        products: &mut Vec<f32>,
        store: &mut impl FnMut(Outputs, [&mut [f32]; N]),
    ) {
        let (gemm, n) = (many.gemm, self.experts.params.N as usize);
        let (first, width) = (piece.outputs.start, piece.outputs.len());
        let groups = first / gemm.group()..piece.outputs.end / gemm.group();
        // Whole groups, so that tiles of sums can be stored as they are.
        let count = width.min(n - first);
        let shape = Shape {
            m: piece.results.len(),
            n,
            ldc: width,
            alpha: 1.0,
            beta: 0.0,
        };
        let bytes = packed.wrapping_add(many.packed_at).cast_const();
        products.resize(products.len().max(N * shape.m * width), 0.0);
        let mut all = products.chunks_exact_mut(shape.m * width);
        let mut products: [&mut [f32]; N] = std::array::from_fn(|_| all.next().unwrap_or_default());
        for (weight, products) in piece.weights.iter().zip(&mut products) {
            let y = products.as_mut_ptr().wrapping_sub(first);
            let weight = (weight, self.call.level);
            // SAFETY: `reach`: all parts have laid their pieces out before the barrier; the outputs of the groups lie in `products`, `width`
            // for each vector; `own`: they are this part's.
            unsafe { gemm.multiply(part.scratch, weight, (&shape, bytes), y, groups.clone()) };
        }
        for (at, &result) in piece.results.iter().enumerate() {
            let outputs = Outputs {
                expert: piece.expert as usize,
                result,
                first,
            };
            let of_result = products.each_mut();
            store(
                outputs,
                of_result.map(|all| &mut all[at * width..][..count]),
            );
        }
    }
}
