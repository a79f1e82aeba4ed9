//! Which type each tensor gets: a pure function of the tensors' names and shapes, a few facts about the
//! model, and what was asked for.
//!
//! The rules are llama.cpp's, so that a name means the same file in both programs. Most matrices get the
//! recipe's own type. The output matrix, or the token embedding where that is the same, gets six bits or
//! more: its errors reach the logits directly. Values of the attention and the last matrix of the
//! feed-forward network get more bits in some or all layers, depending on the recipe.

use super::facts::Facts;
use super::recipe::Recipe;
use akunu_gguf::TensorInfo;
use akunu_types::DType;
use akunu_types::DType::{
    F16, F32, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0,
};
use akunu_types::format::Kind;

/// Parts of the names of matrices that are no operand of a large matrix product: norms, tables added
/// value by value, routers of experts, short convolutions.
const KEPT: &[&str] = &[
    "_norm.weight",
    "position_embd",
    "token_types.weight",
    "ffn_gate_inp.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "attn_rel_b.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
];

/// What a type falls back to where its blocks do not fit a row: the nearest type with blocks of 32 that
/// is no less exact.
const FALLBACKS: &[(DType, DType)] = &[
    (Q2_K, Q4_0),
    (Q3_K, Q4_0),
    (Q4_K, Q5_0),
    (Q5_K, Q5_1),
    (Q6_K, Q8_0),
    (IQ4_XS, IQ4_NL),
];

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub recipe: Recipe,
    /// The type of the output matrix, instead of the recipe's.
    pub output: Option<DType>,
    /// The type of the token embedding, instead of the recipe's.
    pub embedding: Option<DType>,
    /// All matrices in the recipe's own type.
    pub pure: bool,
    /// Whether there is an importance matrix.
    pub has_importance: bool,
}

/// A tensor's type, and the one it would have if its rows fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub dtype: DType,
    pub wanted: DType,
}

/// The type of each tensor, in the order of the list.
pub fn choose(tensors: &[TensorInfo], facts: Facts, wish: Wish) -> Vec<Choice> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&at| (layer(&tensors[at].name), &tensors[at].name));
    let mut mix = Mix {
        facts,
        wish,
        values_seen: 0,
        downs_seen: 0,
    };
    let mut choices: Vec<Option<Choice>> = vec![None; tensors.len()];
    for at in order {
        choices[at] = Some(mix.choice(&tensors[at]));
    }
    choices.into_iter().flatten().collect()
}

/// The number of the layer; tensors that belong to none come first.
fn layer(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Whether the output of this tensor holds values of the attention.
pub fn computes_values(name: &str) -> bool {
    let kinds = ["attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"];
    kinds.iter().any(|kind| name.contains(kind))
}

/// Walks through the tensors, layer after layer.
struct Mix {
    facts: Facts,
    wish: Wish,
    /// Tensors so far that compute values.
    values_seen: usize,
    /// Last matrices of feed-forward networks so far.
    downs_seen: usize,
}

impl Mix {
    fn choice(&mut self, tensor: &TensorInfo) -> Choice {
        let wanted = self.wanted(tensor);
        let fits = |dtype: &DType| tensor.dims.cols().is_multiple_of(dtype.block_len());
        let fallback = FALLBACKS.iter().find(|(from, _)| *from == wanted);
        let dtype = [Some(wanted), fallback.map(|&(_, to)| to)]
            .into_iter()
            .flatten()
            .find(fits)
            .unwrap_or(F16);
        Choice { dtype, wanted }
    }

    fn wanted(&mut self, tensor: &TensorInfo) -> DType {
        let name = &*tensor.name;
        if tensor.dims.rows() == 1 {
            return if is_float(tensor.dtype) {
                F32
            } else {
                tensor.dtype
            };
        }
        let is_kept = KEPT.iter().any(|part| name.contains(part));
        if is_kept || !name.ends_with("weight") {
            return tensor.dtype;
        }
        let is_embedding = matches!(name, "token_embd.weight" | "per_layer_token_embd.weight");
        let is_output = name == "output.weight" || is_embedding && self.facts.is_tied;
        let asked_for = [
            self.wish.embedding.filter(|_| is_embedding),
            self.wish.output.filter(|_| is_output),
        ];
        if let Some(dtype) = asked_for.into_iter().flatten().next() {
            return dtype;
        }
        let own = self.own();
        if self.wish.pure || is_float(own) {
            own
        } else if self.wish.recipe == Recipe::Mxfp4Experts {
            let is_of_experts = tensor.dims.as_slice().len() > 2;
            if is_of_experts && !is_output {
                own
            } else {
                Q8_0
            }
        } else if is_output {
            if own == Q8_0 { Q8_0 } else { Q6_K }
        } else {
            self.in_a_layer(name)
        }
    }

    /// The type of most matrices.
    fn own(&self) -> DType {
        self.wish.recipe.row().dtype
    }

    fn in_a_layer(&mut self, name: &str) -> DType {
        if computes_values(name) {
            self.values()
        } else if name.contains("attn_k.weight") && self.facts.n_experts == 8 {
            Q8_0
        } else if name.contains("attn_output.weight") {
            self.attention_output()
        } else if name.contains("ffn_down") {
            self.down(name)
        } else {
            self.own()
        }
    }

    /// Values of the attention: small where heads share them, and all heads suffer from their errors.
    fn values(&mut self) -> DType {
        let at = self.values_seen;
        self.values_seen += 1;
        let is_shared = self.facts.n_sharing >= 4;
        let dtype = match self.wish.recipe {
            Recipe::Q2K | Recipe::Q2KSmall if is_shared => Q4_K,
            Recipe::Q2K => Q3_K,
            Recipe::Q3KMedium if at < 2 => Q5_K,
            Recipe::Q3KMedium => Q4_K,
            Recipe::Q3KLarge => Q5_K,
            Recipe::Q4KSmall if at < 4 => Q5_K,
            Recipe::Q4KMedium | Recipe::Q5KMedium if gets_more(at, self.facts.n_values) => Q6_K,
            Recipe::Of(IQ4_NL | IQ4_XS) if is_shared => Q5_K,
            _ => self.own(),
        };
        match dtype {
            _ if self.facts.n_experts == 8 => Q8_0,
            Q3_K | Q4_K if self.facts.is_70b => Q5_K,
            dtype => dtype,
        }
    }

    fn attention_output(&self) -> DType {
        let recipe = self.wish.recipe;
        if self.facts.n_experts == 8 {
            return match recipe {
                Recipe::Q2K
                | Recipe::Q3KSmall
                | Recipe::Q3KMedium
                | Recipe::Q4KSmall
                | Recipe::Q4KMedium
                | Recipe::Of(IQ4_NL | IQ4_XS) => Q5_K,
                _ => self.own(),
            };
        }
        match recipe {
            Recipe::Q2K => Q3_K,
            Recipe::Q3KMedium => Q4_K,
            Recipe::Q3KLarge => Q5_K,
            _ => self.own(),
        }
    }

    /// The last matrix of a feed-forward network: what it adds stays in the residual stream.
    fn down(&mut self, name: &str) -> DType {
        let counted = self.downs_seen;
        self.downs_seen += 1;
        // Experts may be tensors of their own, several in a layer.
        let at = match layer(name) {
            Some(layer) if self.facts.n_experts > 1 => layer,
            _ => counted,
        };
        let n = self.facts.n_layers;
        let is_early = at < n / 8;
        match self.wish.recipe {
            Recipe::Q2K => Q3_K,
            Recipe::Q2KSmall if is_early => Q4_K,
            Recipe::Q3KMedium if at < n / 16 => Q5_K,
            Recipe::Q3KMedium => Q4_K,
            Recipe::Q3KLarge => Q5_K,
            Recipe::Q4KSmall if is_early => Q5_K,
            Recipe::Q4KMedium | Recipe::Q5KMedium if gets_more(at, n) => Q6_K,
            Recipe::Of(IQ4_NL | IQ4_XS) if is_early && !self.wish.has_importance => Q5_K,
            // The first layers have a few very large activations, which a step that serves the
            // important columns would leave out: a minimum of their own helps.
            Recipe::Of(Q4_0) if is_early && self.wish.has_importance => Q4_1,
            Recipe::Of(Q5_0) if is_early && self.wish.has_importance => Q5_1,
            _ => self.own(),
        }
    }
}

/// Whether this layer is one of those with more bits: the first eighth, the last eighth, and every third
/// between.
fn gets_more(at: usize, n: usize) -> bool {
    at < n / 8 || at >= 7 * n / 8 || (at - n / 8) % 3 == 2
}

/// Whether a type is a plain number.
pub fn is_float(dtype: DType) -> bool {
    dtype.kind() == Kind::Numbers
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
