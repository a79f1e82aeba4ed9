//! Softmax attention: queries, keys and values, their norms, and the keys that rows see.

use akunu_arch::{self as arch, Attention, BlockNorms, Cross};
use akunu_program::{DistanceBias, HeadNorms, LayerCache, Op, Pairing, RowKeys, Rows, Slice, op};

use super::scratch::Vector;
use super::turn::{heads, magnitude, pairing, rope, scaled_queries, turned_norms};
use super::{AttentionMemory, Builder, CrossMemory, Of, SeenKeys};
use crate::weights::Weight;

/// The vectors of attention.
struct Attended {
    q: Slice,
    k: Slice,
    v: Slice,
    /// The result.
    to: Slice,
}

impl Builder<'_> {
    pub(super) fn attention(
        &mut self,
        attention: &Attention<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        (x, memory): (Slice, &AttentionMemory),
    ) {
        if let Some(latent) = &attention.latent {
            return self.latent_attention(attention, latent, norms, (x, memory));
        }
        if attention.keys_of.is_some() {
            return self.attention_to_earlier(attention, norms, (x, memory));
        }
        let [q_dim, kv_dim] = [attention.q_dim(), attention.kv_dim()];
        let vectors = [q_dim, kv_dim, kv_dim, q_dim].map(|width| self.scratch.take(width));
        let [q, k, v, to] = vectors.each_ref().map(Vector::slice);
        let (v, gate) = self.queries_keys_values(attention, x, ([q, k, v], memory));
        let [normed_q, normed_k] = [q_dim, kv_dim].map(|width| {
            let norms = attention.row_norm.as_ref();
            norms.map(|_| self.scratch.take(width))
        });
        let [q, k] = match (&attention.row_norm, &normed_q, &normed_k) {
            (Some(norms), Some(to_q), Some(to_k)) => {
                let (to_q, to_k) = (to_q.slice(), to_k.slice());
                self.norm((Rows::All, q_dim), &norms.q, q, to_q);
                self.norm((Rows::All, kv_dim), &norms.k, k, to_k);
                [to_q, to_k]
            }
            _ => [q, k],
        };
        let normed_v = attention
            .value_eps
            .map(|eps| self.norm_values(attention, eps, v));
        let v = normed_v.as_ref().map_or(v, Vector::slice);
        let vectors = Attended { q, k, v, to };
        match memory.keys {
            SeenKeys::Pages { cache, centre } => {
                self.store_and_attend(attention, &vectors, (memory.divisors, cache, centre));
            }
            SeenKeys::Text { distances, turns } => {
                self.attend_to_text(attention, &vectors, (memory.divisors, distances, turns));
            }
        }
        let gated = gate.map(|gate| self.gated_result(&gate, to, q_dim));
        let to = gated.as_ref().map_or(to, Vector::slice);
        self.add_to_stream(&attention.output, to, norms, "attention output");
    }

    /// The products of x that attention reads; the values, which may be the keys, and the gate of the result.
    fn queries_keys_values(
        &mut self,
        attention: &Attention<Weight, Slice>,
        x: Slice,
        ([q, k, v], memory): ([Slice; 3], &AttentionMemory),
    ) -> (Slice, Option<Vector>) {
        let q_dim = attention.q_dim();
        let both = (attention.has_gate).then(|| self.scratch.take(2 * q_dim));
        let queries = both.as_ref().map_or(q, Vector::slice);
        let products = [
            (&attention.q, queries),
            (&attention.k, k),
            (&attention.v, v),
        ];
        let v = match keys_are_values(attention, memory) {
            true => {
                self.products(Of::all(x, "q, k"), &products[..2]);
                k
            }
            false => {
                self.products(Of::all(x, "q, k, v"), &products);
                v
            }
        };
        let own_gate = attention.gate.as_ref().map(|linear| {
            let gate = self.scratch.take(q_dim);
            self.products(Of::all(x, "attention gate"), &[(linear, gate.slice())]);
            gate
        });
        let gate = both.map(|both| self.split_queries(attention, both.slice(), q));
        let gate = gate.or(own_gate);
        (v, gate)
    }

    /// Stores keys and values in pages, and attends to those of the sequence.
    fn store_and_attend(
        &mut self,
        attention: &Attention<Weight, Slice>,
        vectors: &Attended,
        (divisors, cache, centre): (Slice, LayerCache, Option<Slice>),
    ) {
        let &Attended { q, k, v, to } = vectors;
        let turned = self.turned_by_axes(attention, [q, k], divisors);
        let [q, k] = turned.as_ref().map_or([q, k], |turned| turned.heads);
        let (norms, normed) = match turned {
            Some(_) => (None, None),
            None => self.head_norms(attention, [q, k]),
        };
        let [q, k] = normed
            .as_ref()
            .map_or([q, k], |heads| heads.each_ref().map(Vector::slice));
        self.ops.push(Op::RopeStore(op::RopeStore {
            q,
            k,
            v,
            heads: heads(attention),
            rope: match &turned {
                Some(turned) => turned.rope,
                None => rope(attention, divisors),
            },
            norms,
            centre,
            cache,
        }));
        self.attend(attention, cache, [q, to]);
    }

    /// Attends to the rows of the same text.
    fn attend_to_text(
        &mut self,
        attention: &Attention<Weight, Slice>,
        vectors: &Attended,
        (divisors, distances, turns): (Slice, Option<DistanceBias>, Option<Slice>),
    ) {
        let &Attended { q, k, v, to } = vectors;
        let turned = [(q, attention.heads), (k, attention.kv_heads)];
        for (x, n_heads) in turned.into_iter().filter(|_| attention.rope.is_some()) {
            self.ops.push(Op::Rope(op::Rope {
                x,
                n_heads,
                head_dim: attention.head_dim,
                rope: rope(attention, divisors),
            }));
        }
        if let Some(turns) = turns {
            self.ops.extend(turned.map(|(x, n_heads)| {
                Op::TurnHeads(op::TurnHeads {
                    x,
                    n_heads,
                    head_dim: attention.head_dim,
                    turns,
                })
            }));
        }
        self.ops.push(Op::AttendRows(op::AttendRows {
            q,
            k,
            v,
            to,
            heads: heads(attention),
            keys: match attention.window {
                Some(window) => RowKeys::Nearby { reach: window / 2 },
                None => RowKeys::OwnText,
            },
            scale: attention.scale,
            bias: distances,
        }));
    }

    /// Norms of the heads of queries and keys that are computed where heads turn; or, for heads that turn by pairs of neighbours, which
    /// no kernel normalises, the normalised heads.
    fn head_norms(
        &mut self,
        attention: &Attention<Weight, Slice>,
        heads: [Slice; 2],
    ) -> (Option<HeadNorms>, Option<[Vector; 2]>) {
        let Some(norms) = &attention.qk_norm else {
            return (None, None);
        };
        if pairing(attention) == Pairing::Halves {
            return (turned_norms(attention), None);
        }
        (None, Some(self.normed_heads(attention, norms, heads)))
    }

    /// The heads of queries and keys, normalised.
    pub(super) fn normed_heads(
        &mut self,
        attention: &Attention<Weight, Slice>,
        norms: &arch::HeadNorms<Slice>,
        heads: [Slice; 2],
    ) -> [Vector; 2] {
        let to = [attention.q_dim(), attention.kv_dim()].map(|width| self.scratch.take(width));
        let counts = [attention.heads, attention.kv_heads];
        let of = heads
            .into_iter()
            .zip([norms.q, norms.k])
            .zip(counts)
            .zip(&to);
        for (((x, weight), n_heads), to) in of {
            self.ops.push(Op::HeadNorm(op::HeadNorm {
                x,
                weight,
                to: to.slice(),
                n_heads,
                head_dim: attention.head_dim,
                eps: norms.eps,
            }));
        }
        to
    }

    /// Attention of turned queries to keys in pages.
    pub(super) fn attend(
        &mut self,
        attention: &Attention<Weight, Slice>,
        cache: LayerCache,
        [q, to]: [Slice; 2],
    ) {
        self.ops.extend(scaled_queries(attention, q));
        self.ops.push(Op::Attend(op::Attend {
            q,
            to,
            heads: heads(attention),
            cache,
            scale: attention.scale * magnitude(attention),
            softcap: attention.softcap,
            sinks: attention.sinks,
        }));
    }

    /// Values whose heads are divided by their root mean square.
    fn norm_values(&mut self, attention: &Attention<Weight, Slice>, eps: f32, v: Slice) -> Vector {
        let Some(weight) = self.ones else {
            unreachable!("models with such values have ones");
        };
        let to = self.scratch.take(attention.kv_dim());
        self.ops.push(Op::HeadNorm(op::HeadNorm {
            x: v,
            weight,
            to: to.slice(),
            n_heads: attention.kv_heads,
            head_dim: attention.head_dim,
            eps,
        }));
        to
    }

    pub(super) fn cross_attention(&mut self, cross: &Cross<Weight, Slice>, memory: &CrossMemory) {
        let (attention, q) = (&cross.attention, memory.q.into());
        let x = self.norm_aside(&cross.norm);
        self.products(Of::all(x, "q across"), &[(&attention.q, q)]);
        let to = self.scratch.take(attention.q_dim());
        self.ops.push(Op::AttendRows(op::AttendRows {
            q,
            k: memory.k.into(),
            v: memory.v.into(),
            to: to.slice(),
            heads: heads(attention),
            keys: RowKeys::Across {
                n_keys: memory.n_keys,
            },
            scale: attention.scale,
            bias: None,
        }));
        self.add_to_stream(
            &attention.output,
            to.slice(),
            &BlockNorms::NONE,
            "attention across",
        );
    }
}

/// Whether keys and values are one product, which is then computed once. Those of texts turn in place, so that values need their own.
fn keys_are_values(attention: &Attention<Weight, Slice>, memory: &AttentionMemory) -> bool {
    let (k, v) = (&attention.k, &attention.v);
    let is_same =
        (&k.weight.name, k.weight.matrix, k.bias) == (&v.weight.name, v.weight.matrix, v.bias);
    is_same && matches!(memory.keys, SeenKeys::Pages { .. })
}
