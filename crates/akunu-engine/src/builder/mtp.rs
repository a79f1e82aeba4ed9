//! The block for multi-token prediction, as [`akunu_arch::MtpBlock`] describes it.
//!
//! Its row for a token needs the result h of the model at the token before, so each sequence keeps the last one as a state. While
//! the model reads tokens, the block stores its keys and values beside those of the model ([`Builder::follow`]). A round of
//! guesses runs the whole block ([`Builder::guess`]), and leaves its own result in the place of h:
//!
//! ```text
//! model     tokens  … x₇ x₈     h₇ h₈        block: keys and values of (x₇, h₆) and (x₈, h₇)
//! guesses           x₉  from h₈ ─▶ h'₉, x'₁₀      x'₁₀ from h'₉ ─▶ h'₁₀, x'₁₁      …
//! ```
//!
//! The model reads the same slots afterwards, and overwrites what the guesses have left there.

use akunu_arch::{Attention, BlockNorms, Mixer, MtpBlock};
use akunu_program::op::StatePool;
use akunu_program::{Heads, Op, Rows, Slice, op};

use super::scratch::Vector;
use super::turn::{rope, turned_norms};
use super::{AttentionMemory, Builder, LayerMemory, MixerMemory, Of, SeenKeys};
use crate::weights::{Bound, Weight};

/// The memory of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtpMemory {
    /// That of its layer.
    pub layer: LayerMemory,
    /// h of the last token of each sequence.
    pub hidden: StatePool,
    /// The taps of a convolution that gives the row before, (dim, 2).
    pub before: Slice,
}

impl Builder<'_> {
    /// Behind the layers of the model: stores the block's keys and values of all rows, and h for the rows after them.
    pub fn follow(&mut self, model: &Bound, memory: &MtpMemory) {
        let (Some(mtp), Some(norm)) = (&model.mtp, &model.norm) else {
            return;
        };
        let h = self.scratch.take(self.dim);
        self.norm((Rows::All, self.dim), norm, self.stream.slice(), h.slice());
        let own = self.scratch.take(self.dim);
        let stream = std::mem::replace(&mut self.stream, own);
        let e = self.embedded(model, mtp);
        let before = self.before(h.slice(), memory);
        self.join(mtp, e.slice(), before.slice());
        if let (Mixer::Attention(attention), MixerMemory::Attention(memory)) =
            (&mtp.layer.mixer, &memory.layer.mixer)
        {
            self.keys_and_values(attention, &mtp.layer.norms.mixer, memory);
        }
        self.stream = stream;
    }

    /// A round of guesses: from tokens and the h before them to h' and, normalised, its outputs in `x`.
    pub fn guess(&mut self, model: &Bound, memory: &MtpMemory, [h, x]: [Slice; 2]) {
        let Some(mtp) = &model.mtp else {
            return;
        };
        let e = self.embedded(model, mtp);
        // Whatever this leaves as a state is overwritten by h' below.
        let before = self.before(e.slice(), memory);
        self.join(mtp, e.slice(), before.slice());
        self.layer(&mtp.layer, &memory.layer, None);
        let result = self.scratch.take(self.dim);
        let stream = self.stream.slice();
        self.norm((Rows::All, self.dim), &mtp.norm, stream, result.slice());
        let _unused = self.before(result.slice(), memory);
        self.ops.push(Op::Gather(op::Gather {
            from: stream,
            to: h,
            dim: self.dim,
        }));
        self.norm((Rows::Outputs, self.dim), &mtp.norm, h, x);
    }

    /// The embeddings of the tokens.
    fn embedded(&mut self, model: &Bound, mtp: &MtpBlock<Weight, Slice>) -> Vector {
        let e = self.scratch.take(self.dim);
        self.ops.push(Op::Embed(op::Embed {
            table: mtp.embedding.matrix,
            scale: model.embedding.scale,
            to: e.slice(),
        }));
        e
    }

    /// The row before each row of `x`, 0 before the first of a sequence. The states have those of the last tokens.
    fn before(&mut self, x: Slice, memory: &MtpMemory) -> Vector {
        let to = self.scratch.take(self.dim);
        self.ops.push(Op::ShortConv(op::ShortConv {
            form: op::ConvForm::Plain,
            x,
            stride: self.dim,
            width: self.dim,
            taps: 2,
            weight: memory.before,
            bias: None,
            to: to.slice(),
            state: memory.hidden,
        }));
        to
    }

    /// The input of the block's layer becomes the residual stream.
    fn join(&mut self, mtp: &MtpBlock<Weight, Slice>, e: Slice, h: Slice) {
        let vectors = [(); 2].map(|()| self.scratch.take(self.dim));
        let [normed_e, normed_h] = vectors.each_ref().map(Vector::slice);
        let all = (Rows::All, self.dim);
        self.norm(all, &mtp.embedding_norm, e, normed_e);
        self.norm(all, &mtp.hidden_norm, h, normed_h);
        let to = self.stream.slice();
        let of = Of::all(normed_e, "MTP: embedding");
        self.products(of, &[(&mtp.of_embedding, to)]);
        let of = Of::all(normed_h, "MTP: hidden");
        self.products(Of { add: true, ..of }, &[(&mtp.of_hidden, to)]);
    }

    /// Stores the keys and values of attention whose result is not needed. The queries that turn beside the keys are nobody's.
    fn keys_and_values(
        &mut self,
        attention: &Attention<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        memory: &AttentionMemory,
    ) {
        let SeenKeys::Pages { cache, centre } = memory.keys else {
            return;
        };
        let x = self.input(norms);
        let vectors = [(); 3].map(|()| self.scratch.take(attention.kv_dim()));
        let [q, k, v] = vectors.each_ref().map(Vector::slice);
        let products = [(&attention.k, k), (&attention.v, v)];
        self.products(Of::all(x, "MTP: k, v"), &products);
        self.ops.push(Op::RopeStore(op::RopeStore {
            q,
            k,
            v,
            heads: Heads {
                n_heads: attention.kv_heads,
                n_kv_heads: attention.kv_heads,
                head_dim: attention.head_dim,
            },
            rope: rope(attention, memory.divisors),
            norms: turned_norms(attention),
            centre,
            cache,
        }));
    }
}
