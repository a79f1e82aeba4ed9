//! The encoder of a speech model: from a spectrogram to the keys and values of every layer of the decoder.
//!
//! ```text
//! h = gelu(conv2(gelu(conv1(spectrogram)))) + positions;  layers as in every encoder
//! for each layer of the decoder   K, V = Wk norm(h), Wv norm(h), as halves
//! ```

use akunu_arch::{Convolution, SoundEncoder, Speech};
use akunu_program::{
    ActivationFunction, Buffer, ChoiceMemory, Choose, LearnedBy, Op, Rows, ScoreMemory, Slice,
    TranscriptTokens, Windows, op,
};

use super::{AttentionMemory, Builder, LayerMemory, MixerMemory, Of, SeenKeys};
use crate::weights::Weight;

/// The signal around the convolutions: a step of zeros, the steps of a window, and zeros.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    /// (2 * n_positions, n_mels).
    pub spectrogram: Buffer,
    /// The same after the first convolution, (2 * n_positions, dim).
    pub signal: Buffer,
}

/// The memory of the choice of a token.
#[derive(Clone, Copy)]
pub(crate) struct Spoken {
    /// (windows, vocabulary).
    pub logits: Slice,
    /// The tokens that may be said.
    pub masks: Slice,
    pub choice: ChoiceMemory,
    pub scores: ScoreMemory,
}

impl Builder<'_> {
    /// The choice of a token from the logits of each row, among those that may follow, and the record of how probable it
    /// was among them; then every row moves on to it.
    pub fn say(&mut self, how: Choose, memory: Spoken, tokens: TranscriptTokens, vocab_size: u32) {
        let Spoken {
            logits,
            masks,
            choice,
            scores,
        } = memory;
        self.ops.push(Op::SpeechRules(op::SpeechRules {
            logits,
            vocab_size,
            masks,
            tokens,
        }));
        self.ops.push(Op::Choose(op::Choose {
            how,
            logits,
            vocab_size,
            memory: choice,
        }));
        self.ops.push(Op::Score(op::Score {
            memory: scores,
            vocab_size,
        }));
        self.ops.push(Op::Advance);
    }

    /// Encodes a window. `across` has the place of its keys and values for each layer of the decoder.
    pub fn listen(
        &mut self,
        speech: &Speech<Weight, Slice>,
        signal: Signal,
        across: &[[Slice; 2]],
    ) {
        let encoder = &speech.encoder;
        self.convolutions(encoder, signal);
        for layer in &encoder.layers {
            let memory = LayerMemory {
                mixer: MixerMemory::Attention(AttentionMemory {
                    // Nothing turns.
                    divisors: signal.signal.into(),
                    keys: SeenKeys::Text {
                        distances: None,
                        turns: None,
                    },
                }),
                cross: None,
                router: None,
            };
            self.layer(layer, &memory, None);
        }
        let x = self.norm_aside(&encoder.norm);
        let aside = self.scratch.take(self.dim);
        let crosses = speech.decoder.layers.iter();
        for (cross, across) in crosses.filter_map(|layer| layer.cross.as_ref()).zip(across) {
            let attention = &cross.attention;
            for (linear, to) in [&attention.k, &attention.v].into_iter().zip(*across) {
                self.products(Of::all(x, "k, v across"), &[(linear, aside.slice())]);
                self.ops.push(Op::Halves(op::Halves {
                    rows: Rows::All,
                    x: aside.slice(),
                    to,
                    width: attention.kv_dim(),
                }));
            }
        }
    }

    /// The two convolutions and the positions.
    fn convolutions(&mut self, encoder: &SoundEncoder<Weight, Slice>, signal: Signal) {
        let (dim, n_positions, h) = (self.dim, encoder.n_positions, self.stream.slice());
        let after_zeros = Slice {
            buffer: signal.signal,
            offset: size_of::<f32>() * dim as usize,
        };
        let convolve =
            |convolution: &Convolution<Weight, Slice>, x: Slice, windows: Windows, to: Slice| {
                Op::Convolve(op::Convolve {
                    weight: convolution.weight.matrix,
                    bias: convolution.bias,
                    x,
                    windows,
                    to,
                })
            };
        let gelu = |x: Slice, width: u32| {
            Op::Activate(op::Activate {
                function: ActivationFunction::GeluErf,
                rows: Rows::All,
                x,
                width,
            })
        };
        let [first, second] = &encoder.convolutions;
        let steps = Windows {
            count: 2 * n_positions,
            stride: encoder.n_mels,
        };
        let halved = Windows {
            count: n_positions,
            stride: 2 * dim,
        };
        self.ops.push(convolve(
            first,
            signal.spectrogram.into(),
            steps,
            after_zeros,
        ));
        // Two steps of the signal for each position.
        self.ops.push(gelu(after_zeros, 2 * dim));
        self.ops
            .push(convolve(second, signal.signal.into(), halved, h));
        self.ops.push(gelu(h, dim));
        self.ops.push(Op::AddLearned(op::AddLearned {
            by: LearnedBy::Position,
            table: encoder.positions,
            n_entries: n_positions,
            x: h,
            dim,
        }));
    }
}
