//! What lies in device memory and changes from token to token: a row for each token of a step, and a rule of choice
//! for each sequence.

use crate::layout::shared_struct;

shared_struct! {
    /// One token of a step: whose it is and where it stands.
    pub struct Row = "Row", size = 32 {
        /// Its sequence: the row of the page table and of the history, and the rule of its choice.
        0 => sequence: u32,
        /// What RoPE turns by.
        4 => position: u32,
        /// Where its own key and value go, among the slots of its sequence.
        8 => slot: u32,
        /// It sees the slots below this; with a window, the last ones of them.
        12 => length: u32,
        /// Tokens that were chosen for it since it was written; where its next one is recorded.
        16 => step: u32,
        /// [`Row::ACTIVE`], or 0: an idle row stores nothing, attends to nothing and chooses nothing. With
        /// [`Row::ALONE`] an active row is computed as if no other of its sequence were there; with [`Row::SECOND`] it is
        /// of the second text of a pair; with [`Row::IMAGE`] it is of an image, whose features replace the embedding.
        20 => flags: u32,
        /// Slots of other branches of its tree: with bit i, it does not see slot `length - 1 - i`. Bits 0, its own slot,
        /// and 31 are never set.
        24 => hidden: u32,
        /// Blocks of states: the one that it goes on from in the low half, the one that it leaves its own in in the high
        /// half; [`Row::NO_STATE`] for a state of zeros, or where nothing is left. Models without states ignore it.
        28 => states: u32,
    }
}

impl Row {
    /// No block of a state.
    pub const NO_STATE: u16 = u16::MAX;
    /// The flag of a row that takes part.
    pub const ACTIVE: u32 = 1;
    /// The flag of a row whose attention is rounded as that of a single row, also beside others of its sequence.
    pub const ALONE: u32 = 2;
    /// The flag of a row that is of the second text of a pair, for models that tell the two apart.
    pub const SECOND: u32 = 4;
    /// The flag of a row of an image, whose features replace the embedding of its token.
    pub const IMAGE: u32 = 8;

    /// The row of the token at `position` of a sequence, which sees itself and all before it.
    pub const fn at(sequence: u32, position: u32) -> Row {
        Row {
            sequence,
            position,
            slot: position,
            length: position + 1,
            step: 0,
            flags: Row::ACTIVE,
            hidden: 0,
            states: u32::MAX,
        }
    }

    /// The row of a token of a tree: it is stored in a slot of its own, and does not see the `hidden` slots before it,
    /// which other branches have. Its position is that of a text without them.
    pub const fn in_tree(sequence: u32, slot: u32, hidden: u32) -> Row {
        Row {
            position: slot - hidden.count_ones(),
            hidden,
            ..Row::at(sequence, slot)
        }
    }

    /// The row of token `position` of a text of `length` tokens, all of which it sees.
    pub const fn of_text(sequence: u32, position: u32, length: u32) -> Row {
        Row {
            length,
            ..Row::at(sequence, position)
        }
    }

    /// The same row, which goes on from one state and leaves its own in a block.
    pub const fn with_states(self, from: u16, to: u16) -> Row {
        let states = from as u32 | (to as u32) << 16;
        Row { states, ..self }
    }

    /// How a row says a block, of which there are fewer than [`Row::NO_STATE`].
    pub const fn state_number(block: Option<u32>) -> u16 {
        match block {
            Some(block) => block as u16,
            None => Row::NO_STATE,
        }
    }

    /// The block of the state that it goes on from, if it is not the first of its sequence.
    pub const fn state_from(&self) -> Option<u32> {
        Row::block(self.states & 0xffff)
    }

    /// The block that it leaves its state in, if it does.
    pub const fn state_to(&self) -> Option<u32> {
        Row::block(self.states >> 16)
    }

    const fn block(number: u32) -> Option<u32> {
        if number == Row::NO_STATE as u32 {
            return None;
        }
        Some(number)
    }

    /// Moves on by as many tokens of its sequence, of which the next goes on from the block that this one left.
    pub const fn advance(&mut self, tokens: u32) {
        self.position += tokens;
        self.slot += tokens;
        self.length += tokens;
        self.step += tokens;
        self.states = self.states >> 16 | self.states & 0xffff_0000;
    }

    /// The same row, of the second text of a pair.
    pub const fn second(self) -> Row {
        Row {
            flags: self.flags | Row::SECOND,
            ..self
        }
    }

    /// Whether it is of the second text of a pair.
    pub const fn is_second(&self) -> bool {
        self.flags & Row::SECOND != 0
    }

    /// The same row at an earlier position: the images before it take fewer positions than rows.
    pub const fn earlier(self, positions: u32) -> Row {
        Row {
            position: self.position - positions,
            ..self
        }
    }

    /// The same row, of an image.
    pub const fn of_image(self) -> Row {
        Row {
            flags: self.flags | Row::IMAGE,
            ..self
        }
    }

    /// Whether it is a row of an image that takes part.
    pub const fn is_of_image(&self) -> bool {
        self.is_active() && self.flags & Row::IMAGE != 0
    }

    /// The same row, computed as if it were the only one of its sequence.
    pub const fn alone(self) -> Row {
        Row {
            flags: self.flags | Row::ALONE,
            ..self
        }
    }

    /// Whether it is computed as if it were the only one of its sequence.
    pub const fn is_alone(&self) -> bool {
        self.flags & Row::ALONE != 0
    }

    /// Whether it takes part.
    pub const fn is_active(&self) -> bool {
        self.flags & Row::ACTIVE != 0
    }
}

shared_struct! {
    /// How the tokens of one sequence are chosen. All zero but the temperature and the two penalties that are
    /// factors: nothing is cut and nothing is penalised.
    pub struct SamplingRule = "SamplingRule", size = 112 {
        /// What logits are divided by before the draw; 0 takes the best token, and nothing is cut or drawn.
        0 => temperature: f32,
        /// How far the temperature moves up and down with the entropy; 0: not at all.
        4 => dynamic_range: f32,
        /// How the entropy, as a share of the largest possible, is bent: its power.
        8 => dynamic_exponent: f32,
        /// Low word of the seed.
        12 => seed_lo: u32,
        /// High word of the seed.
        16 => seed_hi: u32,
        /// Tokens are kept whose logit is at most this many standard deviations below the best one; 0 keeps all.
        20 => n_sigma: f32,
        /// As many of the best tokens are kept; 0 keeps all.
        24 => top_k: u32,
        /// Tokens whose surprise is nearest to the expected one are kept until their probabilities sum to this; 0 and 1
        /// keep all.
        28 => typical_p: f32,
        /// The best tokens are kept until their probabilities sum to this; 0 and 1 keep all.
        32 => top_p: f32,
        /// A token is kept if it is at least this share as probable as the best one; 0 keeps all.
        36 => min_p: f32,
        /// How often all tokens that are probable enough are left out but the least probable of them; 0: never.
        40 => xtc_probability: f32,
        /// What is probable enough for that; above 0.5 it cannot happen.
        44 => xtc_threshold: f32,
        /// The surprise in bits that mirostat aims at, instead of all cuts; 0: no mirostat.
        48 => mirostat_tau: f32,
        /// How fast mirostat corrects itself.
        52 => mirostat_eta: f32,
        /// A positive logit of a token that came before is divided by this, a negative one multiplied; 1 does nothing.
        56 => repetition: f32,
        /// Subtracted from the logit of a token for each time that it came before.
        60 => frequency: f32,
        /// Subtracted once from the logit of a token that came before.
        64 => presence: f32,
        /// How many of the last tokens those three count; 0 for all.
        68 => penalty_window: u32,
        /// What a token is penalised by that would make a repeated run of `dry_allowed` tokens longer; 0: nothing.
        72 => dry_multiplier: f32,
        /// The factor for each token that the repeated run is longer.
        76 => dry_base: f32,
        /// A repeated run of this many tokens, at least 1, begins to cost.
        80 => dry_allowed: u32,
        /// How many of the last tokens are looked at for repeated runs; 0 for all.
        84 => dry_window: u32,
        /// Tokens in the list of biases.
        88 => n_biases: u32,
        /// 0: log probabilities are not asked for; n + 1: those of the chosen token and of the n best.
        92 => n_scores: u32,
        /// Of a transcript: the number of its first token in the sequence, after the prompt.
        96 => transcript_start: u32,
        /// Of a transcript: 1 if it has times, 0 if there are none in it.
        100 => has_times: u32,
        /// The number of the first token that these penalties and DRY count: the first one after the prompt, or 0.
        104 => penalty_start: u32,
        /// Unused, zero.
        108 => _pad0: u32,
    }
}

impl SamplingRule {
    /// Keeps everything, penalises nothing, and draws at temperature 1.
    pub const PLAIN: SamplingRule = SamplingRule {
        temperature: 1.0,
        dynamic_range: 0.0,
        dynamic_exponent: 1.0,
        seed_lo: 0,
        seed_hi: 0,
        n_sigma: 0.0,
        top_k: 0,
        typical_p: 0.0,
        top_p: 0.0,
        min_p: 0.0,
        xtc_probability: 0.0,
        xtc_threshold: 0.0,
        mirostat_tau: 0.0,
        mirostat_eta: 0.0,
        repetition: 1.0,
        frequency: 0.0,
        presence: 0.0,
        penalty_window: 0,
        dry_multiplier: 0.0,
        dry_base: 0.0,
        dry_allowed: 0,
        dry_window: 0,
        n_biases: 0,
        n_scores: 0,
        transcript_start: 0,
        has_times: 0,
        penalty_start: 0,
        _pad0: 0,
    };
}

shared_struct! {
    /// Records the token of each active row and moves the row on by one.
    pub struct AdvanceRowsParams = "AdvanceRowsParams", size = 16 {
        /// Number of rows.
        0 => n_rows: u32,
        /// Tokens of one step in the record.
        4 => chosen_stride: u32,
        /// Steps that the record has room for; after the last it begins again. 0: nothing is recorded.
        8 => max_steps: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Copies some rows of a matrix: those whose results are wanted.
    pub struct GatherRowsParams = "GatherRowsParams", size = 16 {
        /// Number of rows to copy.
        0 => n_rows: u32,
        /// Elements of a row.
        4 => dim: u32,
        /// Rows of the matrix.
        8 => row_capacity: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Multiplies each row of a matrix by the factor of its sequence.
    pub struct ScaleRowsParams = "ScaleRowsParams", size = 32 {
        /// Number of rows to scale.
        0 => n_rows: u32,
        /// Elements of a row.
        4 => cols: u32,
        /// Rows of the row table.
        8 => row_capacity: u32,
        /// Factors that there are.
        12 => n_sequences: u32,
        /// 1: row i of the matrix is that of entry `outputs[i]` of the row table; 0: of entry i.
        16 => by_output: u32,
        /// Unused, zero.
        20 => _pad0: u32,
        /// Unused, zero.
        24 => _pad1: u32,
        /// Unused, zero.
        28 => _pad2: u32,
    }
}
