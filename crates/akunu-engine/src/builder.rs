//! A model as a program: one builder for decoders, encoders and both halves of a speech model.
//!
//! It writes a layer as [`akunu_arch`] describes it:
//!
//! ```text
//! x = norm(h);  q, k, v = Wq x, Wk x, Wv x;  turn q and k, store k and v;  h += Wo attention(q)
//! x = norm(h);  h += Wdown (act(Wgate x) * Wup x)
//! ```
//!
//! The residual stream h and its norm x have places of their own. A block that ends with a norm of the sum leaves it in x,
//! which is the residual stream from there on. Other vectors live for a block ([`scratch`]). What differs between models
//! comes from fields of the layers; nothing here asks for a name.

mod attention;
mod choice;
mod experts;
mod images;
mod latent;
mod layer_embeddings;
mod mtp;
mod of_layers;
mod scratch;
mod shared_keys;
mod shift;
mod speech;
mod states;
mod texts;
mod turn;
mod vision;

use std::collections::HashMap;

use akunu_arch::{
    self as arch, Activation, BlockNorms, DenseActivation, Ffn, Gated, Linear, Mixer, NormKind,
};
use akunu_program::{
    ActivationFunction, Buffer, DistanceBias, GateFunction, LayerCache, LearnedBy, Matrix, Op,
    Rows, Slice, Weights, op,
};

pub(crate) use choice::{Lists, Outputs};
pub(crate) use images::ImageMemory;
pub(crate) use mtp::MtpMemory;
pub(crate) use scratch::{Scratch, Vector};
pub(crate) use shift::{Keys, shift};
pub(crate) use speech::{Signal, Spoken};
pub(crate) use states::LayerStates;
pub(crate) use texts::TextPlaces;
pub(crate) use turn::{divisors, pairing};
pub(crate) use vision::Sight;

use crate::weights::{Bound, Weight};
use of_layers::LayerEmbedding;

/// A layer whose weights are on a device.
pub(crate) type Layer = arch::Layer<Weight, Slice>;
type Norm = arch::Norm<Slice>;

/// Products of one vector that are adapted together: q, k and v.
pub(crate) const MAX_TOGETHER: usize = 3;

/// An adapter that some rows of a step have.
pub(crate) struct Adapted<'a> {
    /// A, of (rank, inputs), and B, of (outputs, rank), by the name of the weight whose product they change.
    pub products: &'a HashMap<String, [Matrix; 2]>,
    /// Where `A x` goes, (rows, rank), for products that are adapted together.
    pub down: [Slice; MAX_TOGETHER],
    /// The scale that each sequence has it with, (seats).
    pub factors: Slice,
}

/// The memory that a layer reads besides its rows and weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerMemory {
    /// That of its mixer.
    pub mixer: MixerMemory,
    /// Those across, if it has such attention.
    pub cross: Option<CrossMemory>,
    /// Where its router reports a fault; `None` for layers of encoders, which have no experts.
    pub router: Option<RouterFault>,
}

/// The memory of a mixer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MixerMemory {
    /// None, as there is no mixer.
    None,
    /// That of attention.
    Attention(AttentionMemory),
    /// States of sequences.
    States(LayerStates),
    /// Both of these.
    Both(AttentionMemory, LayerStates),
}

impl MixerMemory {
    /// That of attention, if it has that.
    pub fn attention(&self) -> Option<&AttentionMemory> {
        match self {
            MixerMemory::Attention(memory) | MixerMemory::Both(memory, _) => Some(memory),
            MixerMemory::None | MixerMemory::States(_) => None,
        }
    }
}

/// The memory of attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionMemory {
    /// RoPE divisors, (head_dim / 2); infinite where keys do not turn.
    pub divisors: Slice,
    /// The keys that its rows see.
    pub keys: SeenKeys,
}

/// Where a router reports logits that are not finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouterFault {
    /// The number of its layer.
    pub layer: u32,
    /// A u32, 0 as long as there was none.
    pub place: Slice,
}

/// The keys that the rows of a layer see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SeenKeys {
    /// Those of their sequence until then, which lie in pages.
    Pages {
        cache: LayerCache,
        /// Mean subtracted from the keys, (n_kv_heads, head_dim).
        centre: Option<Slice>,
    },
    /// Those of their text.
    Text {
        distances: Option<DistanceBias>,
        /// Cosines and sines for queries and keys, (rows, 2, head_dim / 2), where RoPE does not follow from the row's position.
        turns: Option<Slice>,
    },
}

/// The memory of attention across.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossMemory {
    /// Queries, (rows, dim). Every layer has its own: they tell when a token was spoken.
    pub q: Buffer,
    /// (windows, n_keys, dim), of f16.
    pub k: Buffer,
    pub v: Buffer,
    pub n_keys: u32,
}

/// Writes the operations of a program.
pub(crate) struct Builder<'a> {
    ops: Vec<Op>,
    scratch: Scratch,
    dim: u32,
    /// The residual stream, (rows, dim).
    stream: Vector,
    /// Its norm, (rows, dim).
    aside: Vector,
    /// The bias of layer norms that have none, (dim).
    zeros: Option<Slice>,
    /// The weights of norms of values, (head_dim).
    ones: Option<Slice>,
    /// The numbers from 0 on, of u32.
    numbers: Option<Slice>,
    /// The number of each head in each row, if matrices of heads are multiplied: (rows, heads) of u32.
    head_numbers: Option<Vector>,
    adapters: Vec<Adapted<'a>>,
    images: Option<&'a ImageMemory>,
}

/// The place for the result of a block, and whether the result is added to the values there.
#[derive(Clone, Copy)]
struct Sum {
    to: Slice,
    add: bool,
}

/// What products of one vector have in common.
#[derive(Clone, Copy)]
struct Of {
    rows: Rows,
    x: Slice,
    /// Whether they are added to what is there.
    add: bool,
    label: &'static str,
}

impl<'a> Builder<'a> {
    /// A builder for a residual stream of this width.
    pub fn new(scratch: Scratch, dim: u32) -> Builder<'a> {
        let (stream, aside) = (scratch.take(dim), scratch.take(dim));
        Builder {
            ops: Vec::new(),
            scratch,
            dim,
            stream,
            aside,
            zeros: None,
            ones: None,
            numbers: None,
            head_numbers: None,
            adapters: Vec::new(),
            images: None,
        }
    }

    /// The same with adapters.
    pub fn with_adapters(self, adapters: Vec<Adapted<'a>>) -> Builder<'a> {
        Builder { adapters, ..self }
    }

    /// The same with a bias for layer norms that have none.
    pub fn with_zeros(self, zeros: Slice) -> Builder<'a> {
        let zeros = Some(zeros);
        Builder { zeros, ..self }
    }

    /// The same with weights of one for norms of values, which have no weights in the file.
    pub fn with_ones(self, ones: Slice) -> Builder<'a> {
        let ones = Some(ones);
        Builder { ones, ..self }
    }

    /// The same with the numbers from 0 on, as many as a layer with matrices of heads has heads.
    pub fn with_numbers(self, numbers: Slice) -> Builder<'a> {
        let numbers = Some(numbers);
        Builder { numbers, ..self }
    }

    /// The operations.
    pub fn ops(self) -> Vec<Op> {
        self.ops
    }

    /// Looks up the tokens and runs every layer; the result is in the residual stream.
    pub fn layers(&mut self, model: &Bound, memory: &[LayerMemory]) {
        self.embedding(&model.embedding);
        self.number_heads(model);
        let embeddings = model.embedding.of_layers.as_ref();
        let of_layers = embeddings.map(|embeddings| self.layer_embeddings(embeddings));
        for (at, (layer, memory)) in model.layers.iter().zip(memory).enumerate() {
            let embedding = of_layers.as_ref().map(|all| all.of_layer(at));
            self.layer(layer, memory, embedding);
            self.add_deep_images(at);
        }
    }

    /// The normalised residual streams of the rows whose logits are wanted: `h`, and `x` after the norm.
    pub fn hidden(&mut self, model: &Bound, [h, x]: [Slice; 2]) {
        self.ops.push(Op::Gather(op::Gather {
            from: self.stream.slice(),
            to: h,
            dim: self.dim,
        }));
        if let Some(norm) = &model.norm {
            self.norm((Rows::Outputs, self.dim), norm, h, x);
        }
    }

    fn embedding(&mut self, embedding: &arch::Embedding<Weight, Slice>) {
        let h = self.stream.slice();
        self.ops.push(Op::Embed(op::Embed {
            table: embedding.tokens.matrix,
            scale: embedding.scale,
            to: h,
        }));
        self.place_images();
        let tables = [
            (LearnedBy::Kind, &embedding.kinds),
            (LearnedBy::Position, &embedding.positions),
        ];
        for (by, table) in tables {
            let Some(table) = table else { continue };
            let before = size_of::<f32>() * (table.first * self.dim) as usize;
            self.ops.push(Op::AddLearned(op::AddLearned {
                by,
                table: Slice {
                    offset: table.weight.offset + before,
                    ..table.weight
                },
                n_entries: table.entries,
                x: h,
                dim: self.dim,
            }));
        }
        if let Some(norm) = &embedding.norm {
            self.norm_stream(norm);
        }
    }

    /// Runs a layer. `embedding` is that of the tokens for this layer, if the model has some.
    fn layer(&mut self, layer: &Layer, memory: &LayerMemory, embedding: Option<LayerEmbedding>) {
        let norms = &layer.norms.mixer;
        match (&layer.mixer, &memory.mixer) {
            (Mixer::None, MixerMemory::None) => {}
            (Mixer::Attention(attention), MixerMemory::Attention(memory)) => {
                let x = self.input(norms);
                self.attention(attention, norms, (x, memory));
            }
            (Mixer::ShortConv(conv), MixerMemory::States(states)) => {
                self.short_conv(conv, norms, states);
            }
            (Mixer::Ssd(mamba), MixerMemory::States(states)) => {
                let x = self.input(norms);
                self.ssd(mamba, norms, (x, states));
            }
            (Mixer::Both(both), MixerMemory::Both(memory, states)) => {
                // The norm that both read stays aside while the first adds its result.
                let x = self.input(norms);
                self.attention(&both.attention, norms, (x, memory));
                self.ssd(&both.ssd, norms, (x, states));
            }
            (Mixer::DeltaNet(net), MixerMemory::States(states)) => {
                self.delta_net(net, norms, states);
            }
            _ => unreachable!("the memory of a layer is that of its mixer"),
        }
        if let (Some(cross), Some(memory)) = (&layer.cross, &memory.cross) {
            self.cross_attention(cross, memory);
        }
        let x = match layer.is_parallel {
            // The norm that the mixer read is still there.
            true => self.aside.slice(),
            false => self.input(&layer.norms.ffn),
        };
        self.feed_forward(&layer.ffn, &layer.norms.ffn, x, memory.router);
        if let (Some(input), Some(embedding)) = (&layer.input, embedding) {
            self.layer_input(input, embedding);
        }
        if let Some(scale) = layer.scale {
            self.scale_stream(scale);
        }
    }

    /// The residual stream times a number becomes the residual stream.
    fn scale_stream(&mut self, scale: f32) {
        self.ops.push(Op::Weigh(op::Weigh {
            rows: Rows::All,
            x: self.stream.slice(),
            weights: Weights::One(scale),
            n_used: 1,
            width: self.dim,
            to: self.aside.slice(),
            add: false,
        }));
        std::mem::swap(&mut self.stream, &mut self.aside);
    }

    fn feed_forward(
        &mut self,
        ffn: &Ffn<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        x: Slice,
        router: Option<RouterFault>,
    ) {
        match ffn {
            Ffn::None => {}
            Ffn::Dense(dense) => {
                let (up, width) = (self.scratch.take(dense.width), dense.width);
                self.products(Of::all(x, "up"), &[(&dense.up, up.slice())]);
                self.ops.push(Op::Activate(op::Activate {
                    function: activation_function(dense.activation),
                    rows: Rows::All,
                    x: up.slice(),
                    width,
                }));
                self.add_to_stream(&dense.down, up.slice(), norms, "down");
            }
            Ffn::Gated(gated) => {
                let [activated, _gate, _up] = self.gate(gated, x);
                self.add_to_stream(&gated.down, activated.slice(), norms, "down");
            }
            Ffn::Experts(experts) => {
                let Some(fault) = router else {
                    unreachable!("layers with experts have a place for faults");
                };
                self.block_result(norms, |builder, sum| {
                    builder.experts(experts, x, sum, fault);
                });
            }
        }
    }

    /// `act(Wgate x) * Wup x`, and both products, which live as long as the block.
    fn gate(&mut self, gated: &Gated<Weight, Slice>, x: Slice) -> [Vector; 3] {
        let vectors = [(); 3].map(|()| self.scratch.take(gated.width));
        let [to, gate, up] = vectors.each_ref().map(Vector::slice);
        let products = [(&gated.gate, gate), (&gated.up, up)];
        self.products(Of::all(x, "gate and up"), &products);
        self.ops.push(Op::Gate(op::Gate {
            activation: gate_function(gated.activation),
            gate,
            up,
            to,
            width: gated.width,
        }));
        vectors
    }

    /// What a block reads: the normalised residual stream, or the stream as it is.
    fn input(&mut self, norms: &BlockNorms<Slice>) -> Slice {
        match &norms.input {
            Some(norm) => self.norm_aside(norm),
            None => self.stream.slice(),
        }
    }

    /// A block's last product goes into the residual stream, or beside it when a norm comes between.
    fn add_to_stream(
        &mut self,
        linear: &Linear<Weight, Slice>,
        x: Slice,
        norms: &BlockNorms<Slice>,
        label: &'static str,
    ) {
        self.block_result(norms, |builder, Sum { to, add }| {
            let of = Of::all(x, label);
            builder.products(Of { add, ..of }, &[(linear, to)]);
        });
    }

    /// The result of a block goes into the residual stream, or beside it when a norm comes between.
    fn block_result(&mut self, norms: &BlockNorms<Slice>, write: impl FnOnce(&mut Self, Sum)) {
        let h = self.stream.slice();
        if let Some(norm) = &norms.output {
            let y = self.scratch.take(self.dim);
            let (to, add) = (y.slice(), false);
            write(self, Sum { to, add });
            self.ops.push(Op::AddNorm(op::AddNorm {
                x: to,
                weight: norm.weight,
                to: h,
                dim: self.dim,
                eps: norm.eps,
            }));
        } else {
            write(self, Sum { to: h, add: true });
        }
        if let Some(norm) = &norms.sum {
            self.norm_stream(norm);
        }
    }

    /// The norm of the residual stream becomes the residual stream.
    fn norm_stream(&mut self, norm: &Norm) {
        self.norm_aside(norm);
        std::mem::swap(&mut self.stream, &mut self.aside);
    }

    /// The norm of the residual stream, and its place.
    fn norm_aside(&mut self, norm: &Norm) -> Slice {
        let (x, to) = (self.stream.slice(), self.aside.slice());
        self.norm((Rows::All, self.dim), norm, x, to);
        to
    }

    fn norm(&mut self, (rows, dim): (Rows, u32), norm: &Norm, x: Slice, to: Slice) {
        let (weight, eps) = (norm.weight, norm.eps);
        self.ops.push(match norm.kind {
            NormKind::Rms => Op::Norm(op::Norm {
                rows,
                x,
                weight,
                to,
                dim,
                eps,
            }),
            NormKind::Layer => Op::LayerNorm(op::LayerNorm {
                rows,
                x,
                weight,
                bias: match norm.bias.or(self.zeros) {
                    Some(bias) => bias,
                    None => unreachable!("models with such norms have zeros"),
                },
                to,
                dim,
                eps,
            }),
        });
    }

    /// Products of one vector, and what adapters add to them: `to += factor * B (A x)`.
    fn products(&mut self, of: Of, products: &[(&Linear<Weight, Slice>, Slice)]) {
        let Of {
            rows,
            x,
            add,
            label,
        } = of;
        let part = |weight, x, to, add| {
            Op::Product(op::Product {
                rows,
                weight,
                x,
                to,
                add,
                bias: None,
                label: "adapter",
            })
        };
        self.ops.extend(products.iter().map(|&(linear, to)| {
            Op::Product(op::Product {
                rows,
                weight: linear.weight.matrix,
                x,
                to,
                add,
                bias: linear.bias,
                label,
            })
        }));
        for adapter in &self.adapters {
            let pairs = products.iter().zip(adapter.down);
            let adapted: Vec<(Slice, [Matrix; 2], Slice)> = pairs
                .filter_map(|((linear, to), down)| {
                    let matrices = adapter.products.get(&linear.weight.name)?;
                    Some((down, *matrices, *to))
                })
                .collect();
            let adapted = adapted.iter();
            let scale = |&(x, [a, _], _): &(Slice, [Matrix; 2], Slice)| {
                Op::ScaleRows(op::ScaleRows {
                    rows,
                    x,
                    width: a.rows,
                    factors: adapter.factors,
                })
            };
            self.ops.extend(
                adapted
                    .clone()
                    .map(|&(down, [a, _], _)| part(a, x, down, false)),
            );
            self.ops.extend(adapted.clone().map(scale));
            self.ops
                .extend(adapted.map(|&(down, [_, b], to)| part(b, down, to, true)));
        }
    }
}

impl Of {
    /// Products for all rows that overwrite what is there.
    fn all(x: Slice, label: &'static str) -> Of {
        Of {
            rows: Rows::All,
            x,
            add: false,
            label,
        }
    }

    /// Products for the outputs alone.
    fn outputs(x: Slice, label: &'static str) -> Of {
        Of {
            rows: Rows::Outputs,
            ..Of::all(x, label)
        }
    }
}

fn gate_function(activation: Activation) -> GateFunction {
    match activation {
        Activation::Silu => GateFunction::Silu,
        Activation::Gelu => GateFunction::Gelu,
        Activation::GeluErf => GateFunction::GeluErf,
        Activation::SwigluOai => GateFunction::SwigluOai,
    }
}

fn activation_function(activation: DenseActivation) -> ActivationFunction {
    match activation {
        DenseActivation::GeluErf => ActivationFunction::GeluErf,
        DenseActivation::Gelu => ActivationFunction::Gelu,
        DenseActivation::ReluSquared => ActivationFunction::ReluSquared,
    }
}
