//! Latent attention: one stored key for all heads, and matrices of each head before and after.
//!
//! ```text
//! c = norm(Wc x);  key = [turned k x, c]
//! query of head h = [turned part of q, K_hᵀ plain part of q]
//! h += Wo [V_h Σ weight * c]
//! ```
//!
//! The key is the value too; what the sum has of its turned part is left out. The products with matrices of heads are those of experts,
//! where every row uses all of them.

use akunu_arch::{Attention, BlockNorms, ExpertLinear, Latent};
use akunu_program::{Op, Rows, Slice, op};

use super::experts::matrix;
use super::scratch::Vector;
use super::turn::{heads, rope};
use super::{AttentionMemory, Builder, Of, SeenKeys};
use crate::weights::{Bound, Weight};

/// Pieces of rows: where the first begins, the elements of a row, and those from one piece to the next.
#[derive(Clone, Copy)]
struct Pieces {
    at: Slice,
    row: u32,
    piece: u32,
}

impl Pieces {
    /// Pieces that lie side by side in rows of so many.
    fn of(at: Slice, count: u32, piece: u32) -> Pieces {
        Pieces {
            at,
            row: count * piece,
            piece,
        }
    }

    /// The same pieces without their first elements.
    fn after(self, elements: u32) -> Pieces {
        let at = Slice {
            offset: self.at.offset + size_of::<f32>() * elements as usize,
            ..self.at
        };
        Pieces { at, ..self }
    }
}

impl Builder<'_> {
    /// Writes the number of each head into each row, for models with matrices of heads.
    pub(super) fn number_heads(&mut self, model: &Bound) {
        let latent = model
            .attention()
            .filter(|attention| attention.latent.is_some());
        let Some(n_heads) = latent.map(|attention| attention.heads).max() else {
            return;
        };
        let Some(numbers) = self.numbers else {
            unreachable!("models with matrices of heads have numbers");
        };
        let of_rows = self.scratch.take(n_heads);
        // All rows read the same numbers.
        let from = Pieces {
            at: numbers,
            row: 0,
            piece: 0,
        };
        self.copy_pieces(from, Pieces::of(of_rows.slice(), 1, n_heads), [1, n_heads]);
        self.head_numbers = Some(of_rows);
    }

    pub(super) fn latent_attention(
        &mut self,
        attention: &Attention<Weight, Slice>,
        latent: &Latent<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        (x, memory): (Slice, &AttentionMemory),
    ) {
        let SeenKeys::Pages { cache, centre } = memory.keys else {
            unreachable!("layers of encoders have keys of heads");
        };
        let n = attention.heads;
        let widths = [
            attention.q_dim(),
            attention.q_dim(),
            n * latent.rank,
            n * latent.value_dim,
        ];
        let vectors = widths.map(|width| self.scratch.take(width));
        let [q, to, of_heads, result] = vectors.each_ref().map(Vector::slice);
        let low = self.low_query(latent, x);
        let queries_of = low.as_ref().map_or(x, |[_, normed]| normed.slice());
        let of_queries = self.latent_queries(attention, latent, queries_of, [q, of_heads]);
        let [key, of_key @ ..] = self.latent_key(attention, latent, x);
        self.ops.push(Op::RopeStore(op::RopeStore {
            q,
            k: key.slice(),
            v: key.slice(),
            heads: heads(attention),
            rope: rope(attention, memory.divisors),
            norms: None,
            centre,
            cache,
        }));
        self.attend(attention, cache, [q, to]);
        let sums = Pieces::of(to, n, attention.head_dim).after(latent.turned_dim);
        self.copy_pieces(sums, Pieces::of(of_heads, n, latent.rank), [n, latent.rank]);
        self.product_of_heads(&latent.values, n, [of_heads, result]);
        self.add_to_stream(&attention.output, result, norms, "attention output");
        // Until here all of them live: devices may read them later than they are used.
        drop((vectors, low, of_queries, of_key));
    }

    /// Queries in the form of stored keys: the part that will turn, then the product of the rest.
    fn latent_queries(
        &mut self,
        attention: &Attention<Weight, Slice>,
        latent: &Latent<Weight, Slice>,
        x: Slice,
        [q, of_heads]: [Slice; 2],
    ) -> [Vector; 2] {
        let (n, query_dim) = (attention.heads, latent.query_dim());
        let [whole, plain] = [query_dim, latent.plain_dim].map(|dim| self.scratch.take(n * dim));
        self.products(Of::all(x, "q"), &[(&attention.q, whole.slice())]);
        let of_whole = Pieces::of(whole.slice(), n, query_dim);
        let of_plain = Pieces::of(plain.slice(), n, latent.plain_dim);
        self.copy_pieces(of_whole, of_plain, [n, latent.plain_dim]);
        self.product_of_heads(&latent.keys, n, [plain.slice(), of_heads]);
        let queries = Pieces::of(q, n, attention.head_dim);
        let turned = of_whole.after(latent.plain_dim);
        self.copy_pieces(turned, queries, [n, latent.turned_dim]);
        let products = Pieces::of(of_heads, n, latent.rank);
        self.copy_pieces(products, queries.after(latent.turned_dim), [n, latent.rank]);
        [whole, plain]
    }

    /// The first product of queries and its norm, if there are two products.
    fn low_query(&mut self, latent: &Latent<Weight, Slice>, x: Slice) -> Option<[Vector; 2]> {
        let (linear, norm) = latent.low.as_ref()?;
        let width = linear.weight.matrix.rows;
        let [low, normed] = [(); 2].map(|()| self.scratch.take(width));
        self.products(Of::all(x, "low q"), &[(linear, low.slice())]);
        self.norm((Rows::All, width), norm, low.slice(), normed.slice());
        Some([low, normed])
    }

    /// The key that is stored for all heads: the part that will turn, then the compressed vector. Behind it, what it is made of.
    fn latent_key(
        &mut self,
        attention: &Attention<Weight, Slice>,
        latent: &Latent<Weight, Slice>,
        x: Slice,
    ) -> [Vector; 4] {
        let (rank, turned_dim) = (latent.rank, latent.turned_dim);
        let widths = [attention.head_dim, turned_dim, rank, rank];
        let vectors = widths.map(|width| self.scratch.take(width));
        let [key, turned, c, normed] = vectors.each_ref().map(Vector::slice);
        let products = [(&attention.k, turned), (&latent.compressed, c)];
        self.products(Of::all(x, "latent key"), &products);
        self.norm((Rows::All, rank), &latent.norm, c, normed);
        let to = Pieces::of(key, 1, attention.head_dim);
        self.copy_pieces(Pieces::of(turned, 1, turned_dim), to, [1, turned_dim]);
        self.copy_pieces(Pieces::of(normed, 1, rank), to.after(turned_dim), [1, rank]);
        vectors
    }

    /// Each head's part of x times the matrix of the head.
    fn product_of_heads(
        &mut self,
        weight: &ExpertLinear<Weight, Slice>,
        n_heads: u32,
        [x, to]: [Slice; 2],
    ) {
        let Some(ids) = self.head_numbers.as_ref().map(Vector::slice) else {
            unreachable!("heads are numbered before the first layer");
        };
        self.ops.push(Op::ExpertDown(op::ExpertDown {
            weight: matrix(weight),
            experts: [n_heads, n_heads],
            x,
            ids,
            to,
        }));
    }

    fn copy_pieces(&mut self, from: Pieces, to: Pieces, [pieces, width]: [u32; 2]) {
        self.ops.push(Op::CopyPieces(op::CopyPieces {
            x: from.at,
            x_strides: [from.row, from.piece],
            to: to.at,
            to_strides: [to.row, to.piece],
            pieces,
            width,
        }));
    }
}
