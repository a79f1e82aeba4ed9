//! From residual streams to logits and tokens.

use akunu_arch::{Linear, Output};
use akunu_program::{Buffer, ChoiceMemory, Choose, Masks, Op, Rows, ScoreMemory, Slice, op};

use super::{Builder, Of};
use crate::rule::MAX_BIASES;
use crate::weights::{Bound, Weight};

/// Buffers for the rows whose logits are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outputs {
    /// Their residual streams, (outputs, dim).
    pub h: Buffer,
    /// The same, normalised, (outputs, dim).
    pub x: Buffer,
    /// Their logits, (outputs, vocabulary).
    pub logits: Buffer,
    /// The best logit of each part, (outputs, parts), and its token.
    pub parts: [Buffer; 2],
    /// Tokens that may be chosen, for rows that have a grammar.
    pub masks: Masks,
    /// The record of log probabilities, once a sequence has requested it.
    pub scores: Option<ScoreMemory>,
    /// How many there is room for.
    pub capacity: u32,
}

impl Outputs {
    /// All of them, but for the record.
    pub fn buffers(&self) -> impl Iterator<Item = Buffer> {
        let rows = [
            self.h,
            self.x,
            self.logits,
            self.masks.bits,
            self.masks.rows,
        ];
        rows.into_iter().chain(self.parts)
    }
}

/// Memory of the rules of choice, for each seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists {
    /// Tokens with a bias, (seats, [`MAX_BIASES`]).
    pub bias_tokens: Buffer,
    /// The biases.
    pub bias_values: Buffer,
    /// Tokens at which repetitions end, (seats, vocabulary / 32).
    pub breakers: Buffer,
    /// Mirostat's bounds, (seats).
    pub mu: Buffer,
    /// The factor of the logits, (seats).
    pub logit_scale: Buffer,
}

impl Lists {
    /// All of them.
    pub fn buffers(&self) -> [Buffer; 5] {
        [
            self.bias_tokens,
            self.bias_values,
            self.breakers,
            self.mu,
            self.logit_scale,
        ]
    }
}

impl Builder<'_> {
    /// The logits of normalised residual streams. `scales` has the factor of the logits for each sequence,
    /// if the model has one.
    pub fn logits(&mut self, model: &Bound, x: Slice, to: Slice, scales: Option<Slice>) {
        let Output::Logits(logits) = &model.output else {
            unreachable!("a decoder has logits");
        };
        self.logits_by(&logits.weight, model, [x, to], scales);
    }

    /// The same with another weight, that of the block for multi-token prediction.
    pub fn logits_by(
        &mut self,
        weight: &Weight,
        model: &Bound,
        [x, to]: [Slice; 2],
        scales: Option<Slice>,
    ) {
        let Output::Logits(logits) = &model.output else {
            unreachable!("a decoder has logits");
        };
        let linear = Linear {
            weight: weight.clone(),
            bias: None,
        };
        self.products(Of::outputs(x, "logits"), &[(&linear, to)]);
        let width = model.vocab_size;
        if let (Some(_), Some(factors)) = (logits.scale, scales) {
            self.ops.push(Op::ScaleRows(op::ScaleRows {
                rows: Rows::Outputs,
                x: to,
                width,
                factors,
            }));
        }
        if let Some(cap) = logits.softcap {
            self.ops
                .push(Op::Softcap(op::Softcap { x: to, width, cap }));
        }
    }

    /// The choice of a token from the logits of each row, as far as masks allow, and the record of how likely it was.
    pub fn choice(
        &mut self,
        how: Choose,
        (outputs, lists): (&Outputs, &Lists),
        vocab_size: u32,
        [is_masked, is_scored]: [bool; 2],
    ) {
        let logits = Slice::from(outputs.logits);
        let [values, ids] = outputs.parts;
        let choose = Op::Choose(op::Choose {
            how,
            logits,
            vocab_size,
            memory: ChoiceMemory {
                values,
                ids,
                bias_tokens: lists.bias_tokens,
                bias_values: lists.bias_values,
                bias_stride: MAX_BIASES as u32,
                breakers: lists.breakers,
                mu: lists.mu,
            },
        });
        let mask = Op::Mask(op::Mask {
            logits,
            vocab_size,
            masks: outputs.masks,
        });
        let memory = outputs.scores.filter(|_| is_scored);
        let keep = memory.map(|memory| {
            Op::KeepLogits(op::KeepLogits {
                logits,
                to: memory.logits.into(),
                vocab_size,
            })
        });
        let score = memory.map(|memory| Op::Score(op::Score { memory, vocab_size }));
        // How likely a token was is told of the model's own logits, before anything changes them.
        let ops = [keep, is_masked.then_some(mask), Some(choose), score];
        self.ops.extend(ops.into_iter().flatten());
    }

    /// Records the chosen tokens and moves every single row on.
    pub fn advance(&mut self) {
        self.ops.push(Op::Advance);
    }
}
