//! Parameters of sampling.

use crate::layout::shared_struct;

shared_struct! {
    /// `logits[i] *= inv_temperature`, in place.
    pub struct TemperatureScaleParams = "TemperatureScaleParams", size = 16 {
        /// `1 / temperature`.
        0 => inv_temperature: f32,
        /// Number of elements (the vocabulary size).
        4 => count: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// For each listed token: a positive logit is divided by the penalty, a negative one multiplied.
    pub struct RepetitionPenaltyParams = "RepetitionPenaltyParams", size = 16 {
        /// Above 1 discourages, below 1 encourages.
        0 => penalty: f32,
        /// Number of token ids in the list. Patched per token.
        4 => n_tokens: u32,
        /// Number of logits; an id beyond it is passed over. Padding in the reference.
        8 => vocab_size: u32,
        /// Unused, zero.
        12 => _pad0: u32,
    }
}

shared_struct! {
    /// The largest of each part of the logits, for vocabularies too large for one threadgroup.
    pub struct ArgmaxPartialParams = "ArgmaxPartialParams", size = 16 {
        /// Number of logits.
        0 => count: u32,
        /// Logits of a part, the last one may have fewer.
        4 => part: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}

shared_struct! {
    /// Greedy choice of the next token.
    pub struct ArgmaxParams = "ArgmaxParams", size = 16 {
        /// Number of values.
        0 => count: u32,
        /// Position of the token that the values follow; the choice goes to `history[pos + 1]`.
        /// Patched per token.
        4 => pos: u32,
        /// Room in the history; a position beyond it is not recorded.
        8 => history_len: u32,
        /// 1: value i stands for token `ids[i]`; 0: for token i.
        12 => indexed: u32,
    }
}

shared_struct! {
    /// The k largest values of each part, in descending order.
    pub struct TopKParams = "TopKParams", size = 16 {
        /// Number of values.
        0 => count: u32,
        /// How many to keep of each part, at most 256.
        4 => k: u32,
        /// Values of a part, at most 8192; the last part may have fewer.
        8 => part: u32,
        /// 1: value i stands for token `ids[i]`; 0: for token i.
        12 => indexed: u32,
    }
}

shared_struct! {
    /// Random choice among the k best tokens.
    pub struct GumbelTopKParams = "GumbelTopKParams", size = 32 {
        /// Number of candidates, at most 256.
        0 => k: u32,
        /// Position of the token that the values follow; the choice goes to `history[pos + 1]`.
        /// Patched per token.
        4 => pos: u32,
        /// Room in the history; a position beyond it is not recorded.
        8 => history_len: u32,
        /// `1 / temperature`, applied after the candidates are thinned out.
        12 => inv_temperature: f32,
        /// The best tokens are kept until their probabilities sum to this; 1 keeps all.
        16 => top_p: f32,
        /// A token is kept if it is at least this share as probable as the best one; 0 keeps all.
        20 => min_p: f32,
        /// Low word of the seed.
        24 => seed_lo: u32,
        /// High word of the seed.
        28 => seed_hi: u32,
    }
}

shared_struct! {
    /// Forbids the listed tokens.
    pub struct TokenSuppressParams = "TokenSuppressParams", size = 16 {
        /// Number of token ids in the list.
        0 => n_tokens: u32,
        /// Number of logits; an id beyond it is passed over.
        4 => vocab_size: u32,
        /// Unused, zero.
        8 => _pad0: u32,
        /// Unused, zero.
        12 => _pad1: u32,
    }
}
