//! The same model with other weights.

use crate::ffn::{
    Dense, ExpertLinear, ExpertNorms, Experts, Ffn, Gated, Router, SharedExpert, SharedWeight,
};
use crate::latent::Latent;
use crate::layer::{
    Attention, BlockNorms, Both, Cross, HeadNorms, Layer, LayerNorms, Mixer, Norm, RowNorms,
};
use crate::layer_embeddings::{LayerEmbeddings, LayerInput};
use crate::linear::Linear;
use crate::model::{
    Classifier, ClassifierHead, Distances, Embedding, Logits, Model, Output, Table,
};
use crate::state::{DeltaNet, ShortConv, Ssd, SsdGate, Taps};
use crate::weights::Bind;

/// Binds what need not be there.
fn optional<T, U, E>(
    part: Option<&T>,
    bind: impl FnOnce(&T) -> Result<U, E>,
) -> Result<Option<U>, E> {
    part.map(bind).transpose()
}

impl Model {
    /// The same model with other weights.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Model<B::Matrix, B::Vector>, B::Error> {
        Ok(Model {
            arch: self.arch,
            dim: self.dim,
            vocab_size: self.vocab_size,
            context_length: self.context_length,
            long_rope: self.long_rope.clone(),
            images: self.images,
            embedding: self.embedding.bind(to)?,
            layers: self
                .layers
                .iter()
                .map(|layer| layer.bind(to))
                .collect::<Result<_, _>>()?,
            norm: optional(self.norm.as_ref(), |norm| norm.bind(to))?,
            output: self.output.bind(to)?,
            mtp: optional(self.mtp.as_ref(), |mtp| mtp.bind(to))?,
        })
    }
}

impl Embedding {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Embedding<B::Matrix, B::Vector>, B::Error> {
        Ok(Embedding {
            tokens: to.matrix(&self.tokens)?,
            scale: self.scale,
            kinds: optional(self.kinds.as_ref(), |table| table.bind(to))?,
            positions: optional(self.positions.as_ref(), |table| table.bind(to))?,
            distances: optional(self.distances.as_ref(), |distances| {
                Ok(Distances {
                    buckets: distances.buckets,
                    weight: to.vector(&distances.weight)?,
                })
            })?,
            norm: optional(self.norm.as_ref(), |norm| norm.bind(to))?,
            of_layers: optional(self.of_layers.as_ref(), |embeddings| embeddings.bind(to))?,
        })
    }
}

impl LayerEmbeddings {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<LayerEmbeddings<B::Matrix, B::Vector>, B::Error> {
        Ok(LayerEmbeddings {
            width: self.width,
            tokens: to.matrix(&self.tokens)?,
            token_scale: self.token_scale,
            projection: self.projection.bind(to)?,
            norm: self.norm.bind(to)?,
            scale: self.scale,
        })
    }
}

impl Table {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Table<B::Vector>, B::Error> {
        Ok(Table {
            weight: to.vector(&self.weight)?,
            first: self.first,
            entries: self.entries,
        })
    }
}

impl Output {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Output<B::Matrix, B::Vector>, B::Error> {
        Ok(match self {
            Output::Logits(logits) => Output::Logits(Logits {
                weight: to.matrix(&logits.weight)?,
                is_tied: logits.is_tied,
                scale: logits.scale,
                softcap: logits.softcap,
            }),
            Output::Texts(classifier) => {
                Output::Texts(optional(classifier.as_ref(), |classifier| {
                    classifier.bind(to)
                })?)
            }
        })
    }
}

impl Classifier {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Classifier<B::Matrix, B::Vector>, B::Error> {
        Ok(Classifier {
            labels: self.labels,
            pooling: self.pooling,
            head: optional(self.head.as_ref(), |head| {
                Ok(match head {
                    ClassifierHead::Tanh(linear) => ClassifierHead::Tanh(linear.bind(to)?),
                    ClassifierHead::GeluNorm(linear, norm) => {
                        ClassifierHead::GeluNorm(linear.bind(to)?, norm.bind(to)?)
                    }
                })
            })?,
            scores: self.scores.bind(to)?,
        })
    }
}

impl Layer {
    /// The same layer with other weights.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Layer<B::Matrix, B::Vector>, B::Error> {
        let mixer_norms = self.norms.mixer.bind(to)?;
        let mixer = self.mixer.bind(to)?;
        let cross = optional(self.cross.as_ref(), |cross| {
            Ok(Cross {
                norm: cross.norm.bind(to)?,
                attention: cross.attention.bind(to)?,
            })
        })?;
        let norms = LayerNorms {
            mixer: mixer_norms,
            ffn: self.norms.ffn.bind(to)?,
        };
        let ffn = self.ffn.bind(to)?;
        Ok(Layer {
            mixer,
            cross,
            ffn,
            norms,
            is_parallel: self.is_parallel,
            input: optional(self.input.as_ref(), |input| {
                Ok(LayerInput {
                    width: input.width,
                    gate: input.gate.bind(to)?,
                    output: input.output.bind(to)?,
                    norm: input.norm.bind(to)?,
                })
            })?,
            scale: self.scale,
        })
    }
}

impl Mixer {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Mixer<B::Matrix, B::Vector>, B::Error> {
        Ok(match self {
            Mixer::None => Mixer::None,
            Mixer::Attention(attention) => Mixer::Attention(attention.bind(to)?),
            Mixer::ShortConv(conv) => Mixer::ShortConv(conv.bind(to)?),
            Mixer::DeltaNet(net) => Mixer::DeltaNet(net.bind(to)?),
            Mixer::Ssd(mamba) => Mixer::Ssd(mamba.bind(to)?),
            Mixer::Both(both) => Mixer::Both(Box::new(Both {
                attention: both.attention.bind(to)?,
                ssd: both.ssd.bind(to)?,
            })),
        })
    }
}

impl Taps {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Taps<B::Vector>, B::Error> {
        Ok(Taps {
            count: self.count,
            weight: to.vector(&self.weight)?,
            bias: optional(self.bias.as_ref(), |bias| to.vector(bias))?,
        })
    }
}

impl ShortConv {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<ShortConv<B::Matrix, B::Vector>, B::Error> {
        Ok(ShortConv {
            width: self.width,
            input: self.input.bind(to)?,
            conv: self.conv.bind(to)?,
            output: self.output.bind(to)?,
        })
    }
}

impl Ssd {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Ssd<B::Matrix, B::Vector>, B::Error> {
        Ok(Ssd {
            heads: self.heads,
            head_dim: self.head_dim,
            groups: self.groups,
            state_size: self.state_size,
            input: self.input.bind(to)?,
            gate: match &self.gate {
                SsdGate::Normed(norm) => SsdGate::Normed(to.vector(norm)?),
                SsdGate::Alone(gate) => SsdGate::Alone(gate.bind(to)?),
            },
            conv: self.conv.bind(to)?,
            dt_bias: to.vector(&self.dt_bias)?,
            a: to.vector(&self.a)?,
            d: to.vector(&self.d)?,
            eps: self.eps,
            output: self.output.bind(to)?,
        })
    }
}

impl DeltaNet {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<DeltaNet<B::Matrix, B::Vector>, B::Error> {
        Ok(DeltaNet {
            key_heads: self.key_heads,
            value_heads: self.value_heads,
            head_dim: self.head_dim,
            order: self.order,
            qkv: self.qkv.bind(to)?,
            conv: self.conv.bind(to)?,
            gate: self.gate.bind(to)?,
            beta: self.beta.bind(to)?,
            alpha: self.alpha.bind(to)?,
            decay: to.vector(&self.decay)?,
            dt_bias: to.vector(&self.dt_bias)?,
            norm: to.vector(&self.norm)?,
            eps: self.eps,
            output: self.output.bind(to)?,
        })
    }
}

impl Attention {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Attention<B::Matrix, B::Vector>, B::Error> {
        Ok(Attention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            keys_of: self.keys_of,
            latent: optional(self.latent.as_ref(), |latent| latent.bind(to))?,
            has_gate: self.has_gate,
            q: self.q.bind(to)?,
            k: self.k.bind(to)?,
            v: self.v.bind(to)?,
            qk_norm: optional(self.qk_norm.as_ref(), |norms| {
                Ok(HeadNorms {
                    q: to.vector(&norms.q)?,
                    k: to.vector(&norms.k)?,
                    eps: norms.eps,
                    turn_first: norms.turn_first,
                })
            })?,
            row_norm: optional(self.row_norm.as_ref(), |norms| {
                Ok(RowNorms {
                    q: norms.q.bind(to)?,
                    k: norms.k.bind(to)?,
                })
            })?,
            gate: optional(self.gate.as_ref(), |gate| gate.bind(to))?,
            output: self.output.bind(to)?,
            value_eps: self.value_eps,
            rope: self.rope,
            window: self.window,
            scale: self.scale,
            temperature: self.temperature,
            softcap: self.softcap,
            sinks: optional(self.sinks.as_ref(), |sinks| to.vector(sinks))?,
        })
    }
}

impl Latent {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Latent<B::Matrix, B::Vector>, B::Error> {
        Ok(Latent {
            rank: self.rank,
            plain_dim: self.plain_dim,
            turned_dim: self.turned_dim,
            value_dim: self.value_dim,
            low: optional(self.low.as_ref(), |(linear, norm)| {
                Ok((linear.bind(to)?, norm.bind(to)?))
            })?,
            compressed: self.compressed.bind(to)?,
            norm: self.norm.bind(to)?,
            keys: self.keys.bind(to)?,
            values: self.values.bind(to)?,
        })
    }
}

impl Ffn {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Ffn<B::Matrix, B::Vector>, B::Error> {
        Ok(match self {
            Ffn::None => Ffn::None,
            Ffn::Dense(dense) => Ffn::Dense(Dense {
                width: dense.width,
                activation: dense.activation,
                up: dense.up.bind(to)?,
                down: dense.down.bind(to)?,
            }),
            Ffn::Gated(gated) => Ffn::Gated(gated.bind(to)?),
            Ffn::Experts(experts) => Ffn::Experts(experts.bind(to)?),
        })
    }
}

impl Gated {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Gated<B::Matrix, B::Vector>, B::Error> {
        Ok(Gated {
            width: self.width,
            activation: self.activation,
            gate: self.gate.bind(to)?,
            up: self.up.bind(to)?,
            down: self.down.bind(to)?,
        })
    }
}

impl Experts {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Experts<B::Matrix, B::Vector>, B::Error> {
        let router = &self.router;
        Ok(Experts {
            count: self.count,
            used: self.used,
            width: self.width,
            activation: self.activation,
            router: Router {
                linear: router.linear.bind(to)?,
                gating: router.gating,
                bias: optional(router.bias.as_ref(), |bias| to.vector(bias))?,
                groups: router.groups,
                normalise: router.normalise,
                scale: router.scale,
            },
            gate: self.gate.bind(to)?,
            up: self.up.bind(to)?,
            down: self.down.bind(to)?,
            shared: optional(self.shared.as_ref(), |shared| {
                Ok(SharedExpert {
                    ffn: shared.ffn.bind(to)?,
                    weight: match &shared.weight {
                        SharedWeight::Number(number) => SharedWeight::Number(*number),
                        SharedWeight::Gate(gate) => SharedWeight::Gate(gate.bind(to)?),
                    },
                })
            })?,
            norms: optional(self.norms.as_ref(), |norms| {
                Ok(ExpertNorms {
                    router: norms.router.bind(to)?,
                    input: norms.input.bind(to)?,
                    output: norms.output.bind(to)?,
                    shared_output: norms.shared_output.bind(to)?,
                })
            })?,
        })
    }
}

impl ExpertLinear {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<ExpertLinear<B::Matrix, B::Vector>, B::Error> {
        Ok(ExpertLinear {
            weight: to.matrix(&self.weight)?,
            rows: self.rows,
            stride: self.stride,
            bias: optional(self.bias.as_ref(), |bias| to.vector(bias))?,
            scale: optional(self.scale.as_ref(), |scale| to.vector(scale))?,
        })
    }
}

impl Linear {
    /// The same product with another weight.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Linear<B::Matrix, B::Vector>, B::Error> {
        Ok(Linear {
            weight: to.matrix(&self.weight)?,
            bias: optional(self.bias.as_ref(), |bias| to.vector(bias))?,
        })
    }
}

impl BlockNorms {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<BlockNorms<B::Vector>, B::Error> {
        Ok(BlockNorms {
            input: optional(self.input.as_ref(), |norm| norm.bind(to))?,
            output: optional(self.output.as_ref(), |norm| norm.bind(to))?,
            sum: optional(self.sum.as_ref(), |norm| norm.bind(to))?,
        })
    }
}

impl Norm {
    /// The same norm with other weights.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Norm<B::Vector>, B::Error> {
        Ok(Norm {
            kind: self.kind,
            weight: to.vector(&self.weight)?,
            bias: optional(self.bias.as_ref(), |bias| to.vector(bias))?,
            eps: self.eps,
        })
    }
}
