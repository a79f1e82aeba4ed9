//! Parameters of sampling.

use crate::layout::shared_struct;

shared_struct! {
    /// Adds each row's biases to its logits and penalises what came before, by the rule of its sequence.
    pub struct PenaltiesParams = "PenaltiesParams", size = 32 {
        /// Number of rows of logits. Row i belongs to row `outputs[i]` of the row table.
        0 => n_rows: u32,
        /// Logits of a row; an id beyond it is passed over.
        4 => vocab_size: u32,
        /// Tokens that the history keeps of each sequence: token t lies at `t % history_stride`.
        8 => history_stride: u32,
        /// Sequences of the history and of the rules.
        12 => n_sequences: u32,
        /// Rows of the row table.
        16 => row_capacity: u32,
        /// Biases of a sequence that there is room for.
        20 => bias_stride: u32,
        /// Unused, zero.
        24 => _pad0: u32,
        /// Unused, zero.
        28 => _pad1: u32,
    }
}

shared_struct! {
    /// The largest of each part of the logits, for vocabularies too large for one threadgroup.
    pub struct ArgmaxPartialParams = "ArgmaxPartialParams", size = 16 {
        /// Number of rows of logits.
        0 => n_rows: u32,
        /// Logits of a row.
        4 => count: u32,
        /// Logits of a part, the last one may have fewer.
        8 => part: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// Greedy choice of the next token of each row.
    pub struct ArgmaxParams = "ArgmaxParams", size = 32 {
        /// Number of rows of logits. Row i belongs to row `outputs[i]` of the row table.
        0 => n_rows: u32,
        /// Values of a row.
        4 => count: u32,
        /// 1: value i stands for token `ids[i]`; 0: for token i.
        8 => indexed: u32,
        /// Tokens that the history keeps of each sequence: token t lies at `t % history_stride`.
        12 => history_stride: u32,
        /// Sequences of the history and of the rules.
        16 => n_sequences: u32,
        /// Rows of the row table.
        20 => row_capacity: u32,
        /// Unused, zero.
        24 => _pad0: u32,
        /// Unused, zero.
        28 => _pad1: u32,
    }
}

shared_struct! {
    /// Draws the next token of each row, by the rule of its sequence.
    pub struct DrawParams = "DrawParams", size = 32 {
        /// Number of rows of logits. Row i belongs to row `outputs[i]` of the row table.
        0 => n_rows: u32,
        /// Logits of a row.
        4 => vocab_size: u32,
        /// Tokens that the history keeps of each sequence: token t lies at `t % history_stride`.
        8 => history_stride: u32,
        /// Sequences of the history and of the rules.
        12 => n_sequences: u32,
        /// Rows of the row table.
        16 => row_capacity: u32,
        /// Unused, zero.
        20 => _pad0: u32,
        /// Unused, zero.
        24 => _pad1: u32,
        /// Unused, zero.
        28 => _pad2: u32,
    }
}

shared_struct! {
    /// Records the log probability of each row's token and those of its best tokens.
    pub struct TokenScoresParams = "TokenScoresParams", size = 32 {
        /// Number of rows of logits. Row i belongs to row `outputs[i]` of the row table.
        0 => n_rows: u32,
        /// Logits of a row.
        4 => vocab_size: u32,
        /// Sequences of the rules.
        8 => n_sequences: u32,
        /// Rows of the row table.
        12 => row_capacity: u32,
        /// Rows of one step in the record.
        16 => record_stride: u32,
        /// Steps that the record has room for; after the last it begins again.
        20 => max_steps: u32,
        /// Best tokens of a row that the record has room for.
        24 => max_best: u32,
        /// Unused, zero.
        28 => _pad0: u32,
    }
}

shared_struct! {
    /// Forbids what may not follow in the transcript of each row.
    pub struct SpeechRulesParams = "SpeechRulesParams", size = 32 {
        /// Number of rows of logits. Row i belongs to row `outputs[i]` of the row table.
        0 => n_rows: u32,
        /// Logits of a row; a mask has a bit for each, in whole words of 32.
        4 => vocab_size: u32,
        /// Tokens that the history keeps of each sequence: token t lies at `t % history_stride`.
        8 => history_stride: u32,
        /// Sequences of the history and of the rules.
        12 => n_sequences: u32,
        /// Rows of the row table.
        16 => row_capacity: u32,
        /// The token that ends a transcript; those below are text.
        20 => end: u32,
        /// The first time; all tokens from it on are times.
        24 => first_time: u32,
        /// Times among which the first token is.
        28 => n_first_times: u32,
    }
}

shared_struct! {
    /// Forbids the tokens of some rows that a grammar does not allow.
    pub struct GrammarBitmaskParams = "GrammarBitmaskParams", size = 16 {
        /// Number of rows of logits.
        0 => n_rows: u32,
        /// Logits of a row; a mask has a bit for each, in whole words of 32.
        4 => vocab_size: u32,
        /// Masks that there is room for; a row with another number has none.
        8 => n_masks: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}
