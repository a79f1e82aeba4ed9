//! The mixtures of experts that decoders have, with the names of their weights.

use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::ffn::{
    Activation, ExpertLinear, Experts, Ffn, Gated, Gating, Groups, Router, SharedExpert,
};
use crate::file::{Key, ModelFile};
use crate::linear::Linear;
use crate::weights::{NamedMatrix, NamedVector};

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
    &["num_experts_per_tok", "moe_k", "moe_topk"],
);
const WIDTH: Key = Key::new(&["expert_feed_forward_length"], &["moe_intermediate_size"]);
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
    &["first_k_dense_replace", "moe_layer_start_index"],
);
const STEP: Key = Key::new(
    &["interleave_moe_layer_step"],
    &["decoder_sparse_step", "moe_layer_interval"],
);
const NORMALISE: Key = Key::new(&["expert_weights_norm"], &["norm_topk_prob"]);
const SCALE: Key = Key::new(&["expert_weights_scale"], &["routed_scaling_factor"]);
const GROUPS: Key = Key::new(&["expert_group_count"], &["n_group"]);
const GROUPS_USED: Key = Key::new(&["expert_group_used_count"], &["topk_group"]);
const GATING: &str = "expert_gating_func";
/// The same in `config.json`.
const GATING_NAMES: [&str; 3] = ["score_function", "scoring_func", "expert_selection_fn"];
/// Layers without experts, by number.
const DENSE_LAYERS: &str = "mlp_only_layers";

/// Experts, at most: the kernel that chooses them takes no more.
const MAX_COUNT: u32 = 512;
/// Experts of a token, at most.
const MAX_USED: u32 = 16;
/// Groups, at most.
const MAX_GROUPS: u32 = 32;

/// How a router chooses where the file does not say.
#[derive(Clone, Copy)]
pub(crate) struct Routing {
    pub gating: Gating,
    pub normalise: bool,
}

/// The sizes of a mixture of experts, and the parts of these sizes.
pub(crate) struct ExpertParts<'a> {
    parts: &'a Parts<'a>,
    routing: Routing,
    count: u32,
    used: u32,
    width: u32,
    /// Width of the expert of all tokens; 0 for none.
    shared_width: u32,
    leading_dense: u32,
    step: u32,
    dense_layers: Vec<u64>,
    groups: Option<Groups>,
    scale: f32,
}

impl<'a> ExpertParts<'a> {
    /// The sizes that a file says.
    pub fn read(parts: &'a Parts, routing: Routing) -> Result<ExpertParts<'a>, ArchError> {
        let file = parts.file;
        let (count, used) = (file.required(COUNT)?, file.required(USED)?);
        file.check_size(&file.key_name(COUNT), count, MAX_COUNT)?;
        if used > count {
            let found = format!("{used}, and there are {count} experts");
            let key = file.key_name(USED);
            return Err(file.invalid(&key, found, "at most the number of experts"));
        }
        file.check_size(&file.key_name(USED), used, MAX_USED)?;
        let width = file.u32(WIDTH)?.or(parts.ffn.last().copied()).unwrap_or(0);
        file.check_size(&file.key_name(WIDTH), width, 1 << 20)?;
        let shared_count = file.u32(SHARED_COUNT)?;
        let shared_width = match (file.u32(SHARED_WIDTH)?, shared_count) {
            (_, Some(0)) | (None, None) => 0,
            (Some(width), _) => width,
            (None, Some(n)) => n.saturating_mul(width),
        };
        if shared_width > 0 {
            file.check_size(&file.key_name(SHARED_WIDTH), shared_width, 1 << 22)?;
        }
        let scale = file.f32(SCALE)?.filter(|&scale| scale != 0.0);
        let scale = scale.unwrap_or(1.0);
        file.check_positive(&file.key_name(SCALE), scale)?;
        let dense_layers = file.config().and_then(|config| config.get(DENSE_LAYERS));
        let dense_layers = dense_layers.and_then(|layers| layers.as_array());
        let layers = dense_layers.into_iter().flatten();
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
            leading_dense: file.u32(LEADING)?.unwrap_or(0),
            step: file.u32(STEP)?.unwrap_or(1).max(1),
            dense_layers: layers.filter_map(serde_json::Value::as_u64).collect(),
            groups: parts.groups(count, used)?,
            scale,
        })
    }

    /// A feed-forward block: the experts, or one with a gate in the layers that have none.
    pub fn ffn(&self, at: usize, experts: impl Fn(Experts) -> Experts) -> Ffn {
        let number = at as u32;
        let is_dense = number < self.leading_dense
            || !(number + 1).is_multiple_of(self.step)
            || self.dense_layers.contains(&(at as u64));
        match is_dense {
            true => Ffn::Gated(self.parts.gated(at, Activation::Silu)),
            false => Ffn::Experts(experts(self.experts(at))),
        }
    }

    /// The same where some files have a bias for the choice.
    pub fn ffn_with_bias_found(&self, at: usize) -> Ffn {
        let name = selection_bias(at);
        let has_bias = self.parts.file.store.tensor(&name).is_some();
        self.ffn(at, |experts| match has_bias {
            true => experts.with_selection_bias(at),
            false => experts,
        })
    }

    /// Experts with a SiLU gate, and one of all tokens if the file has one.
    fn experts(&self, at: usize) -> Experts {
        let (dim, width) = (self.parts.dim, self.width);
        let [gate, up] = self.gate_and_up(at);
        Experts {
            count: self.count,
            used: self.used,
            width,
            activation: Activation::Silu,
            router: Router {
                linear: linear(in_layer(at, "ffn.router"), self.count, dim),
                gating: self.routing.gating,
                bias: None,
                groups: self.groups,
                normalise: self.routing.normalise,
                scale: self.scale,
            },
            gate,
            up,
            down: self.linear(at, "down", [dim, width]),
            shared: (self.shared_width > 0).then(|| SharedExpert {
                ffn: self.shared(at),
                gate: None,
            }),
        }
    }

    /// Two stacks of matrices, or the halves of one.
    fn gate_and_up(&self, at: usize) -> [ExpertLinear; 2] {
        let (dim, width) = (self.parts.dim, self.width);
        let both = self.linear(at, "gate_up", [2 * width, dim]);
        if self.parts.file.store.tensor(&both.weight.name).is_none() {
            return ["gate", "up"].map(|part| self.linear(at, part, [width, dim]));
        }
        [0, width].map(|first| ExpertLinear {
            weight: both.weight.part(first, both.weight.rows - width),
            rows: width,
            ..both.clone()
        })
    }

    fn linear(&self, at: usize, part: &str, [rows, cols]: [u32; 2]) -> ExpertLinear {
        let name = in_layer(at, &format!("ffn.experts.{part}.weight"));
        ExpertLinear {
            weight: NamedMatrix::stacked(name, self.count, [rows, cols]),
            rows,
            stride: rows,
            bias: None,
            scale: None,
        }
    }

    /// The expert of all tokens.
    fn shared(&self, at: usize) -> Gated {
        let (width, dim) = (self.shared_width, self.parts.dim);
        let both = in_layer(at, "ffn.shared.gate_up");
        let both = NamedMatrix::new(format!("{both}.weight"), 2 * width, dim);
        let linear =
            |part, rows, cols| linear(in_layer(at, &format!("ffn.shared.{part}")), rows, cols);
        let [gate, up] = match self.parts.file.store.tensor(&both.name) {
            None => [linear("gate", width, dim), linear("up", width, dim)],
            Some(_) => [0, width].map(|first| Linear {
                weight: both.part(first, width),
                bias: None,
            }),
        };
        Gated {
            width,
            activation: Activation::Silu,
            gate,
            up,
            down: linear("down", dim, width),
        }
    }
}

impl ModelFile<'_> {
    /// Whether the file says that there are experts.
    pub fn has_experts(&self) -> Result<bool, ArchError> {
        Ok(self.u32(COUNT)?.is_some_and(|count| count > 0))
    }
}

impl Parts<'_> {
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

/// The name of the bias for the choice.
fn selection_bias(at: usize) -> String {
    in_layer(at, "ffn.selection_bias")
}

impl Experts {
    /// The same with a bias for the choice.
    pub(crate) fn with_selection_bias(mut self, at: usize) -> Experts {
        self.router.bias = Some(NamedVector::new(selection_bias(at), 1, self.count));
        self
    }

    /// The same with biases of the router and of the products of each expert.
    pub(crate) fn with_biases(mut self) -> Experts {
        self.router.linear = self.router.linear.with_bias();
        let count = self.count;
        for linear in [&mut self.gate, &mut self.up, &mut self.down] {
            let module = linear.weight.name.trim_end_matches(".weight");
            let bias = NamedVector::new(format!("{module}.bias"), count, linear.rows);
            linear.bias = Some(bias);
        }
        self
    }

    /// The same with a gate of the expert of all tokens.
    pub(crate) fn with_shared_gate(mut self, at: usize, dim: u32) -> Experts {
        if let Some(shared) = &mut self.shared {
            shared.gate = Some(linear(in_layer(at, "ffn.shared_gate"), 1, dim));
        }
        self
    }
}
