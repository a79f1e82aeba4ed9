//! A speech model as data: an encoder of sound, and a decoder that attends to its result.

use crate::layer::{Layer, Norm};
use crate::model::Model;
use crate::weights::{Bind, NamedMatrix, NamedVector};

/// A speech model.
#[derive(Clone, Debug, PartialEq)]
pub struct Speech<M = NamedMatrix, V = NamedVector> {
    /// From a spectrogram to what the decoder attends to.
    pub encoder: SoundEncoder<M, V>,
    /// From tokens to the logits of the next one. Its layers have cross-attention.
    pub decoder: Model<M, V>,
    /// Tokens that are never said.
    pub suppressed: Vec<u32>,
    /// Tokens that are not said first.
    pub suppressed_first: Vec<u32>,
    /// The heads of the decoder whose attention gives the times of words, as (layer, head); empty if they are not known.
    pub alignment_heads: Vec<(u32, u32)>,
}

/// The encoder of a speech model: two convolutions with GELU, the second of which halves the number of steps, positions,
/// layers and a norm.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundEncoder<M = NamedMatrix, V = NamedVector> {
    /// Filters of the spectrogram.
    pub n_mels: u32,
    /// Positions: two frames of the spectrogram each.
    pub n_positions: u32,
    /// The convolutions.
    pub convolutions: [Convolution<M, V>; 2],
    /// (positions, dim).
    pub positions: V,
    /// The layers.
    pub layers: Vec<Layer<M, V>>,
    /// The norm of the result.
    pub norm: Norm<V>,
}

/// A convolution over time: a product of each window of the signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution<M = NamedMatrix, V = NamedVector> {
    /// (outputs, taps * channels).
    pub weight: M,
    /// (outputs).
    pub bias: V,
}

impl Convolution {
    fn bind<B: Bind>(&self, to: &mut B) -> Result<Convolution<B::Matrix, B::Vector>, B::Error> {
        Ok(Convolution {
            weight: to.matrix(&self.weight)?,
            bias: to.vector(&self.bias)?,
        })
    }
}

impl<M, V> Speech<M, V> {
    /// Query heads of all attention.
    pub fn n_heads(&self) -> u32 {
        let heads = self.decoder.attention().map(|attention| attention.heads);
        heads.max().unwrap_or(0)
    }
}

impl Speech {
    /// The same model with other weights.
    pub fn bind<B: Bind>(&self, to: &mut B) -> Result<Speech<B::Matrix, B::Vector>, B::Error> {
        let encoder = &self.encoder;
        let [first, second] = &encoder.convolutions;
        let layers = encoder.layers.iter().map(|layer| layer.bind(to));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Speech {
            encoder: SoundEncoder {
                n_mels: encoder.n_mels,
                n_positions: encoder.n_positions,
                convolutions: [first.bind(to)?, second.bind(to)?],
                positions: to.vector(&encoder.positions)?,
                layers,
                norm: encoder.norm.bind(to)?,
            },
            decoder: self.decoder.bind(to)?,
            suppressed: self.suppressed.clone(),
            suppressed_first: self.suppressed_first.clone(),
            alignment_heads: self.alignment_heads.clone(),
        })
    }
}
