//! The sizes of a mixture of experts, as a file says them.

use super::{ExpertParts, Routing};
use crate::error::ArchError;
use crate::ffn::{Gating, Groups};
use crate::file::{Key, ModelFile};
use crate::parts::Parts;
use serde_json::Value;

const COUNT: Key = Key::new(
    &["expert_count"],
    &[
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "moe_num_experts",
    ],
);
const USED: Key = Key::new(
    &["expert_used_count"],
    &["num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"],
);
const WIDTH: Key = Key::new(&["expert_feed_forward_length"], &["moe_intermediate_size"]);
/// Width of the blocks of a model that says nothing else of experts.
const PLAIN_WIDTH: Key = Key::new(&[], &["intermediate_size"]);
const SHARED_COUNT: Key = Key::new(
    &["expert_shared_count"],
    &[
        "n_shared_experts",
        "num_shared_experts",
        "moe_num_shared_experts",
        "num_shared_expert",
    ],
);
const SHARED_WIDTH: Key = Key::new(
    &["expert_shared_feed_forward_length"],
    &[
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "moe_shared_expert_intermediate_size",
    ],
);
const LEADING: Key = Key::new(
    &["leading_dense_block_count"],
    &[
        "first_k_dense_replace",
        "moe_layer_start_index",
        "num_dense_layers",
    ],
);
const STEP: Key = Key::new(
    &["interleave_moe_layer_step"],
    &["decoder_sparse_step", "moe_layer_interval"],
);
const NORMALISE: Key = Key::new(&["expert_weights_norm"], &["norm_topk_prob", "route_norm"]);
const SCALE: Key = Key::new(
    &["expert_weights_scale"],
    &["routed_scaling_factor", "route_scale"],
);
const GROUPS: Key = Key::new(&["expert_group_count"], &["n_group"]);
const GROUPS_USED: Key = Key::new(&["expert_group_used_count"], &["topk_group"]);
const GATING: &str = "expert_gating_func";
/// The same in `config.json`.
const GATING_NAMES: [&str; 3] = ["score_function", "scoring_func", "expert_selection_fn"];
/// Layers without experts, by number.
const DENSE_LAYERS: &str = "mlp_only_layers";
/// What each layer has, by name.
const LAYER_KINDS: &str = "mlp_layer_types";

/// Experts, at most: the kernel that chooses them takes no more.
const MAX_COUNT: u32 = 512;
/// Experts of a token, at most.
const MAX_USED: u32 = 16;
/// Groups, at most.
const MAX_GROUPS: u32 = 32;

impl<'a> ExpertParts<'a> {
    /// The sizes that a file says.
    pub fn read(parts: &'a Parts, routing: Routing) -> Result<ExpertParts<'a>, ArchError> {
        let (file, n_layers) = (parts.file, parts.n_layers);
        let count = file.required(COUNT)?;
        file.check_size(&file.key_name(COUNT), count, MAX_COUNT)?;
        let used = file.of_layers(USED, n_layers)?;
        let used = used.ok_or_else(|| file.missing(USED))?;
        for &used in &used {
            if used > count {
                let found = format!("{used}, and there are {count} experts");
                let key = file.key_name(USED);
                return Err(file.invalid(&key, found, "at most the number of experts"));
            }
            file.check_size(&file.key_name(USED), used, MAX_USED)?;
        }
        let width = parts.expert_width()?;
        for &width in &width {
            file.check_size(&file.key_name(WIDTH), width, 1 << 20)?;
        }
        let shared_width = parts.shared_width(&width)?;
        for &width in shared_width.iter().filter(|&&width| width > 0) {
            file.check_size(&file.key_name(SHARED_WIDTH), width, 1 << 22)?;
        }
        let scale = file.f32(SCALE)?.filter(|&scale| scale != 0.0);
        let scale = scale.unwrap_or(1.0);
        file.check_positive(&file.key_name(SCALE), scale)?;
        let most_used = used.iter().copied().max().unwrap_or(0);
        Ok(ExpertParts {
            parts,
            routing: Routing {
                gating: parts.gating()?.unwrap_or(routing.gating),
                normalise: file.bool(NORMALISE)?.unwrap_or(routing.normalise),
            },
            count,
            used,
            width,
            shared_width,
            are_dense: parts.dense_layers()?,
            groups: parts.groups(count, most_used)?,
            scale,
        })
    }
}

impl ModelFile<'_> {
    /// Whether the file says that there are experts.
    pub fn has_experts(&self) -> Result<bool, ArchError> {
        Ok(self.u32(COUNT)?.is_some_and(|count| count > 0))
    }
}

impl Parts<'_> {
    /// Elements between the products of an expert, in each layer.
    fn expert_width(&self) -> Result<Vec<u32>, ArchError> {
        if let Some(width) = self.file.of_layers(WIDTH, self.n_layers)? {
            return Ok(width);
        }
        // Where layers without experts have a width of their own, this one is that of experts.
        let plain = self.file.of_layers(PLAIN_WIDTH, self.n_layers)?;
        let last = self.ffn.last().copied().unwrap_or(0);
        Ok(plain.unwrap_or_else(|| vec![last; self.n_layers]))
    }

    /// Width of the expert of all tokens, in each layer; 0 for none.
    fn shared_width(&self, width: &[u32]) -> Result<Vec<u32>, ArchError> {
        let of_layers = |key| self.file.of_layers(key, self.n_layers);
        let (own, counts) = (of_layers(SHARED_WIDTH)?, of_layers(SHARED_COUNT)?);
        let of_layer = |at: usize| match (&own, counts.as_ref().map(|counts| counts[at])) {
            (_, Some(0)) | (None, None) => 0,
            (Some(own), _) => own[at],
            (None, Some(n)) => n.saturating_mul(width[at]),
        };
        Ok((0..self.n_layers).map(of_layer).collect())
    }

    /// Whether each layer has no experts.
    fn dense_layers(&self) -> Result<Vec<bool>, ArchError> {
        let leading = self.file.u32(LEADING)?.unwrap_or(0);
        let step = self.file.u32(STEP)?.unwrap_or(1).max(1);
        let list = |key| {
            let config = self.file.config()?;
            config.get(key)?.as_array()
        };
        let (numbers, kinds) = (list(DENSE_LAYERS), list(LAYER_KINDS));
        let is_dense = |(at, number): (usize, u32)| {
            let kind = kinds.and_then(|kinds| kinds.get(at)?.as_str());
            let is_listed = |numbers: &Vec<Value>| numbers.iter().any(|n| *n == at);
            number < leading
                || !(number + 1).is_multiple_of(step)
                || numbers.is_some_and(is_listed)
                || kind == Some("dense")
        };
        Ok((0..self.n_layers).zip(0..).map(is_dense).collect())
    }

    /// How the file says that logits become weights.
    fn gating(&self) -> Result<Option<Gating>, ArchError> {
        if let Some(config) = self.file.config() {
            let name = config.first(&GATING_NAMES, |key| config.string(key))?;
            return match name {
                None => Ok(None),
                Some("softmax") => Ok(Some(Gating::Softmax)),
                Some("sigmoid") => Ok(Some(Gating::Sigmoid)),
                Some(other) => Err(self.file.unsupported(format!("the router's `{other}`"))),
            };
        }
        let gating = self.file.u32(Key::new(&[GATING], &[]))?;
        let gating = gating.filter(|&number| number != 0);
        gating.map_or(Ok(None), |number| match number {
            1 => Ok(Some(Gating::Softmax)),
            2 => Ok(Some(Gating::Sigmoid)),
            3 => Ok(Some(Gating::SoftmaxOfChosen)),
            4 => Ok(Some(Gating::SqrtSoftplus)),
            other => Err(self.file.invalid(GATING, other.to_string(), "1 to 4")),
        })
    }

    fn groups(&self, experts: u32, experts_used: u32) -> Result<Option<Groups>, ArchError> {
        let file = self.file;
        let count = file.u32(GROUPS)?.unwrap_or(1);
        if count <= 1 {
            return Ok(None);
        }
        let used = file.u32(GROUPS_USED)?.unwrap_or(count);
        file.check_size(&file.key_name(GROUPS), count, MAX_GROUPS)?;
        file.check_size(&file.key_name(GROUPS_USED), used, count)?;
        let size = experts / count;
        let is_even = experts.is_multiple_of(count) && size > 1;
        if !is_even || size * used < experts_used {
            let found = format!("{count} for {experts} experts, of which {experts_used} are used");
            let wanted = "a number of groups of equal size that have enough experts";
            return Err(file.invalid(&file.key_name(GROUPS), found, wanted));
        }
        Ok(Some(Groups { count, used }))
    }
}
