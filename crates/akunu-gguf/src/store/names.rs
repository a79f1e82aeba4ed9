//! One name for each weight, whatever the container calls it.
//!
//! A name is a module and a suffix, `.weight` or `.bias`; the table maps modules, `{}` standing for
//! the number of the layer, or of an expert. Hugging Face names are compared without the prefixes that say in which
//! wrapper the model sits (`model.`, `language_model.`, `bert.`, `mpnet.`).

/// A module of a model under its three names.
struct Module {
    canonical: &'static str,
    gguf: &'static str,
    hugging_face: &'static [HfName],
}

/// A name in a Hugging Face model, and when it holds.
enum HfName {
    /// In every model.
    Always(&'static str),
    /// In models that also normalise the output of attention and of the feed-forward network: Gemma
    /// 2 and 3.
    Sandwich(&'static str),
    /// In all other models.
    NoSandwich(&'static str),
}
use HfName::{Always, NoSandwich, Sandwich};

impl HfName {
    /// The name, if it holds in this model.
    fn holds(&self, sandwich: bool) -> Option<&'static str> {
        match *self {
            Always(name) => Some(name),
            Sandwich(name) => sandwich.then_some(name),
            NoSandwich(name) => (!sandwich).then_some(name),
        }
    }
}

const fn module(
    canonical: &'static str,
    gguf: &'static str,
    hugging_face: &'static [HfName],
) -> Module {
    Module {
        canonical,
        gguf,
        hugging_face,
    }
}

/// Canonical, GGUF and Hugging Face names. Llama, Qwen, Gemma and Mistral share theirs; then come those of BERT, MPNet,
/// nomic-bert and ModernBERT.
const MODULES: &[Module] = &[
    module(
        "token_embedding",
        "token_embd",
        &[
            Always("embed_tokens"),
            Always("word_embeddings"),
            Always("embeddings.word_embeddings"),
            Always("embeddings.tok_embeddings"),
        ],
    ),
    module(
        "token_types",
        "token_types",
        &[Always("embeddings.token_type_embeddings")],
    ),
    module(
        "position_embedding",
        "position_embd",
        &[Always("embeddings.position_embeddings")],
    ),
    module(
        "token_embedding_norm",
        "token_embd_norm",
        &[
            Always("embeddings.LayerNorm"),
            Always("emb_ln"),
            Always("embeddings.norm"),
            Always("embedding_norm"),
        ],
    ),
    module(
        "relative_bias",
        "attn_rel_b",
        &[Always("encoder.relative_attention_bias")],
    ),
    module(
        "pooler",
        "cls",
        &[Always("pooler.dense"), Always("head.dense")],
    ),
    module("pooler_norm", "cls.norm", &[Always("head.norm")]),
    module("classifier", "cls.output", &[Always("classifier")]),
    module(
        "output_norm",
        "output_norm",
        &[Always("norm"), Always("final_norm")],
    ),
    module("output", "output", &[Always("lm_head")]),
    module(
        "layers.{}.attention_norm",
        "blk.{}.attn_norm",
        &[
            Always("layers.{}.input_layernorm"),
            Always("layers.{}.operator_norm"),
            Always("layers.{}.attn_norm"),
        ],
    ),
    module(
        "layers.{}.attention.q",
        "blk.{}.attn_q",
        &[
            Always("layers.{}.self_attn.q_proj"),
            Always("encoder.layer.{}.attention.self.query"),
            Always("encoder.layer.{}.attention.attn.q"),
        ],
    ),
    module(
        "layers.{}.attention.k",
        "blk.{}.attn_k",
        &[
            Always("layers.{}.self_attn.k_proj"),
            Always("encoder.layer.{}.attention.self.key"),
            Always("encoder.layer.{}.attention.attn.k"),
        ],
    ),
    module(
        "layers.{}.attention.v",
        "blk.{}.attn_v",
        &[
            Always("layers.{}.self_attn.v_proj"),
            Always("encoder.layer.{}.attention.self.value"),
            Always("encoder.layer.{}.attention.attn.v"),
        ],
    ),
    module(
        "layers.{}.attention.qkv",
        "blk.{}.attn_qkv",
        &[
            Always("layers.{}.self_attn.qkv_proj"),
            Always("layers.{}.linear_attn.in_proj_qkv"),
            Always("layers.{}.attention.query_key_value"),
            Always("encoder.layers.{}.attn.Wqkv"),
            Always("layers.{}.attn.Wqkv"),
        ],
    ),
    module(
        "layers.{}.attention.output",
        "blk.{}.attn_output",
        &[
            Always("layers.{}.self_attn.o_proj"),
            Always("layers.{}.attention.dense"),
            Always("encoder.layer.{}.attention.output.dense"),
            Always("encoder.layer.{}.attention.attn.o"),
            Always("encoder.layers.{}.attn.out_proj"),
            Always("layers.{}.attn.Wo"),
            Always("layers.{}.self_attn.out_proj"),
        ],
    ),
    module(
        "layers.{}.attention.q_norm",
        "blk.{}.attn_q_norm",
        &[
            Always("layers.{}.self_attn.q_norm"),
            Always("layers.{}.self_attn.q_layernorm"),
            Always("layers.{}.self_attn.query_layernorm"),
            Always("layers.{}.attention.query_layernorm"),
        ],
    ),
    module(
        "layers.{}.attention.k_norm",
        "blk.{}.attn_k_norm",
        &[
            Always("layers.{}.self_attn.k_norm"),
            Always("layers.{}.self_attn.k_layernorm"),
            Always("layers.{}.self_attn.key_layernorm"),
            Always("layers.{}.attention.key_layernorm"),
        ],
    ),
    module(
        "layers.{}.post_attention_norm",
        "blk.{}.post_attention_norm",
        &[Sandwich("layers.{}.post_attention_layernorm")],
    ),
    module(
        "layers.{}.attention_output_norm",
        "blk.{}.attn_output_norm",
        &[
            Always("encoder.layer.{}.attention.output.LayerNorm"),
            Always("encoder.layer.{}.attention.LayerNorm"),
            Always("encoder.layers.{}.norm1"),
        ],
    ),
    module(
        "layers.{}.ffn_norm",
        "blk.{}.ffn_norm",
        &[
            NoSandwich("layers.{}.post_attention_layernorm"),
            Always("layers.{}.pre_feedforward_layernorm"),
            Always("layers.{}.mlp_norm"),
            Always("layers.{}.ffn_norm"),
        ],
    ),
    module(
        "layers.{}.ffn.gate",
        "blk.{}.ffn_gate",
        &[
            Always("layers.{}.mlp.gate_proj"),
            Always("layers.{}.feed_forward.w1"),
            Always("encoder.layers.{}.mlp.fc12"),
        ],
    ),
    module(
        "layers.{}.ffn.up",
        "blk.{}.ffn_up",
        &[
            Always("layers.{}.mlp.up_proj"),
            Always("layers.{}.feed_forward.w3"),
            Always("encoder.layer.{}.intermediate.dense"),
            Always("encoder.layers.{}.mlp.fc11"),
            Always("layers.{}.mlp.Wi"),
        ],
    ),
    module(
        "layers.{}.ffn.down",
        "blk.{}.ffn_down",
        &[
            Always("layers.{}.mlp.down_proj"),
            Always("layers.{}.feed_forward.w2"),
            Always("encoder.layer.{}.output.dense"),
            Always("encoder.layers.{}.mlp.fc2"),
            Always("layers.{}.mlp.Wo"),
        ],
    ),
    module(
        "layers.{}.ffn.router",
        "blk.{}.ffn_gate_inp",
        &[
            Always("layers.{}.mlp.gate"),
            Always("layers.{}.mlp.router"),
            Always("layers.{}.mlp.gate.wg"),
            Always("layers.{}.block_sparse_moe.gate"),
            Always("layers.{}.feed_forward.gate"),
            Always("layers.{}.block_sparse_moe.router.layer"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.gate",
        "blk.{}.ffn_gate_exps",
        &[
            Always("layers.{}.mlp.switch_mlp.gate_proj"),
            Always("layers.{}.mlp.experts.gate_proj"),
            Always("layers.{}.block_sparse_moe.switch_mlp.gate_proj"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.up",
        "blk.{}.ffn_up_exps",
        &[
            Always("layers.{}.mlp.switch_mlp.up_proj"),
            Always("layers.{}.mlp.experts.up_proj"),
            Always("layers.{}.block_sparse_moe.switch_mlp.up_proj"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.down",
        "blk.{}.ffn_down_exps",
        &[
            Always("layers.{}.mlp.switch_mlp.down_proj"),
            Always("layers.{}.mlp.experts.down_proj"),
            Always("layers.{}.block_sparse_moe.switch_mlp.down_proj"),
            Always("layers.{}.block_sparse_moe.output_linear"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.{}.gate",
        "blk.{}.ffn_gate.{}",
        &[
            Always("layers.{}.mlp.experts.{}.gate_proj"),
            Always("layers.{}.block_sparse_moe.experts.{}.w1"),
            Always("layers.{}.feed_forward.experts.{}.w1"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.{}.up",
        "blk.{}.ffn_up.{}",
        &[
            Always("layers.{}.mlp.experts.{}.up_proj"),
            Always("layers.{}.block_sparse_moe.experts.{}.w3"),
            Always("layers.{}.feed_forward.experts.{}.w3"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.{}.down",
        "blk.{}.ffn_down.{}",
        &[
            Always("layers.{}.mlp.experts.{}.down_proj"),
            Always("layers.{}.block_sparse_moe.experts.{}.w2"),
            Always("layers.{}.feed_forward.experts.{}.w2"),
        ],
    ),
    module(
        "layers.{}.ffn.shared.gate",
        "blk.{}.ffn_gate_shexp",
        &[
            Always("layers.{}.mlp.shared_expert.gate_proj"),
            Always("layers.{}.mlp.shared_experts.gate_proj"),
            Always("layers.{}.mlp.shared_mlp.gate_proj"),
        ],
    ),
    module(
        "layers.{}.ffn.shared.up",
        "blk.{}.ffn_up_shexp",
        &[
            Always("layers.{}.mlp.shared_expert.up_proj"),
            Always("layers.{}.mlp.shared_experts.up_proj"),
            Always("layers.{}.mlp.shared_mlp.up_proj"),
        ],
    ),
    module(
        "layers.{}.ffn.shared.down",
        "blk.{}.ffn_down_shexp",
        &[
            Always("layers.{}.mlp.shared_expert.down_proj"),
            Always("layers.{}.mlp.shared_experts.down_proj"),
            Always("layers.{}.mlp.shared_mlp.down_proj"),
            Always("layers.{}.shared_mlp.output_linear"),
        ],
    ),
    module(
        "layers.{}.ffn.shared.gate_up",
        "blk.{}.ffn_gate_up_shexp",
        &[Always("layers.{}.shared_mlp.input_linear")],
    ),
    module(
        "layers.{}.ffn.shared_gate",
        "blk.{}.ffn_gate_inp_shexp",
        &[Always("layers.{}.mlp.shared_expert_gate")],
    ),
    module(
        "layers.{}.post_ffn_norm",
        "blk.{}.post_ffw_norm",
        &[Always("layers.{}.post_feedforward_layernorm")],
    ),
    module(
        "layers.{}.layer_output_norm",
        "blk.{}.layer_output_norm",
        &[
            Always("encoder.layer.{}.output.LayerNorm"),
            Always("encoder.layers.{}.norm2"),
        ],
    ),
    module(
        "layers.{}.attention.gate",
        "blk.{}.attn_gate",
        &[Always("layers.{}.linear_attn.in_proj_z")],
    ),
    module(
        "layers.{}.conv.taps",
        "blk.{}.shortconv.conv",
        &[Always("layers.{}.conv.conv")],
    ),
    module(
        "layers.{}.conv.input",
        "blk.{}.shortconv.in_proj",
        &[Always("layers.{}.conv.in_proj")],
    ),
    module(
        "layers.{}.conv.output",
        "blk.{}.shortconv.out_proj",
        &[Always("layers.{}.conv.out_proj")],
    ),
    module(
        "layers.{}.state.conv",
        "blk.{}.ssm_conv1d",
        &[
            Always("layers.{}.linear_attn.conv1d"),
            Always("layers.{}.mamba.conv1d"),
        ],
    ),
    module(
        "layers.{}.state.beta",
        "blk.{}.ssm_beta",
        &[Always("layers.{}.linear_attn.in_proj_b")],
    ),
    module(
        "layers.{}.state.alpha",
        "blk.{}.ssm_alpha",
        &[Always("layers.{}.linear_attn.in_proj_a")],
    ),
    module(
        "layers.{}.state.norm",
        "blk.{}.ssm_norm",
        &[
            Always("layers.{}.linear_attn.norm"),
            Always("layers.{}.mamba.norm"),
        ],
    ),
    module(
        "layers.{}.state.output",
        "blk.{}.ssm_out",
        &[
            Always("layers.{}.linear_attn.out_proj"),
            Always("layers.{}.mamba.out_proj"),
        ],
    ),
    module(
        "layers.{}.state.input",
        "blk.{}.ssm_in",
        &[
            Always("layers.{}.mamba.in_proj"),
            Always("layers.{}.linear_attn.in_proj_qkvz"),
        ],
    ),
    module(
        "layers.{}.state.beta_alpha",
        "blk.{}.ssm_ba",
        &[Always("layers.{}.linear_attn.in_proj_ba")],
    ),
];

/// Weights whose names in some container have no suffix, or another one: the frequency factors of Llama 3's RoPE scaling, the bias
/// that experts are chosen with, gpt-oss's experts, the sinks of attention, the
/// rates of a state.
const WHOLE_NAMES: &[Module] = &[
    module("rope_freqs", "rope_freqs.weight", &[]),
    module(
        "layers.{}.ffn.selection_bias",
        "blk.{}.exp_probs_b.bias",
        &[
            Always("layers.{}.mlp.gate.e_score_correction_bias"),
            Always("layers.{}.mlp.moe_statics.e_score_correction_bias"),
            Always("layers.{}.mlp.gate.expert_bias"),
            Always("layers.{}.feed_forward.expert_bias"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.gate_up.weight",
        "blk.{}.ffn_gate_up_exps.weight",
        &[
            Always("layers.{}.block_sparse_moe.input_linear.weight"),
            Always("layers.{}.mlp.experts.gate_up_proj"),
        ],
    ),
    module(
        "layers.{}.ffn.experts.gate_up.bias",
        "blk.{}.ffn_gate_up_exps.bias",
        &[Always("layers.{}.mlp.experts.gate_up_proj_bias")],
    ),
    module(
        "layers.{}.ffn.experts.down.weight",
        "blk.{}.ffn_down_exps.weight",
        &[Always("layers.{}.mlp.experts.down_proj")],
    ),
    module(
        "layers.{}.ffn.experts.down.bias",
        "blk.{}.ffn_down_exps.bias",
        &[Always("layers.{}.mlp.experts.down_proj_bias")],
    ),
    module(
        "layers.{}.attention.sinks",
        "blk.{}.attn_sinks.weight",
        &[Always("layers.{}.self_attn.sinks")],
    ),
    module(
        "layers.{}.state.decay",
        "blk.{}.ssm_a",
        &[
            Always("layers.{}.linear_attn.A_log"),
            Always("layers.{}.mamba.A_log"),
        ],
    ),
    module(
        "layers.{}.state.dt_bias",
        "blk.{}.ssm_dt.bias",
        &[
            Always("layers.{}.linear_attn.dt_bias"),
            Always("layers.{}.mamba.dt_bias"),
        ],
    ),
    module(
        "layers.{}.state.d",
        "blk.{}.ssm_d",
        &[Always("layers.{}.mamba.D")],
    ),
];

/// What wrappers put before a Hugging Face name.
const HF_PREFIXES: [&str; 4] = ["model.", "language_model.", "bert.", "mpnet."];

/// The canonical name of a GGUF tensor; `None` when the table does not have it.
pub fn canonical_from_gguf(name: &str) -> Option<String> {
    translate(name, |module, pattern| pattern == module.gguf)
}

/// The canonical name of a Hugging Face tensor; `None` when the table does not have it. `sandwich`:
/// whether the model has a norm before *and* after each block, see [`has_sandwich_norms`].
pub fn canonical_from_hugging_face(name: &str, sandwich: bool) -> Option<String> {
    translate(without_prefixes(name), |module, pattern| {
        let mut names = module.hugging_face.iter();
        names.any(|name| name.holds(sandwich) == Some(pattern))
    })
}

/// The name that a GGUF file has for a canonical name; none when the table does not have it.
pub fn gguf_names(canonical: &str) -> Vec<String> {
    names(canonical, |module| vec![module.gguf])
}

/// The names that Hugging Face models have for a canonical name, without prefixes. `sandwich` as above.
pub fn hugging_face_names(canonical: &str, sandwich: bool) -> Vec<String> {
    names(canonical, |module| {
        let names = module.hugging_face.iter();
        names.filter_map(|name| name.holds(sandwich)).collect()
    })
}

/// Whether this Hugging Face name only occurs in models with sandwich norms. There,
/// `post_attention_layernorm` follows attention; elsewhere it comes before the feed-forward network.
pub fn has_sandwich_norms(name: &str) -> bool {
    name.ends_with(".pre_feedforward_layernorm.weight")
}

fn without_prefixes(mut name: &str) -> &str {
    while let Some(rest) = HF_PREFIXES
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
    {
        name = rest;
    }
    name
}

/// The canonical name of what a container calls so.
fn translate(name: &str, is_named: impl Fn(&Module, &str) -> bool) -> Option<String> {
    let names = in_module(name, is_named, |module| vec![module.canonical]);
    names.into_iter().next()
}

/// What a container calls a canonical name.
fn names(canonical: &str, of: impl Fn(&Module) -> Vec<&'static str>) -> Vec<String> {
    in_module(canonical, |module, name| module.canonical == name, of)
}

/// Takes a name apart, finds its module, and puts other names of the module together.
fn in_module(
    name: &str,
    is_named: impl Fn(&Module, &str) -> bool,
    others: impl Fn(&Module) -> Vec<&'static str>,
) -> Vec<String> {
    let (pattern, numbers) = pattern(name);
    let whole = WHOLE_NAMES.iter().find(|module| is_named(module, &pattern));
    let whole = whole.map_or(Vec::new(), &others).into_iter();
    let mut names: Vec<String> = whole.map(|name| numbered(name, &numbers)).collect();
    let Some((pattern, suffix @ ("weight" | "bias"))) = pattern.rsplit_once('.') else {
        return names;
    };
    if let Some(module) = MODULES.iter().find(|module| is_named(module, pattern)) {
        let with_suffix = |name: &str| numbered(name, &numbers) + "." + suffix;
        names.extend(others(module).into_iter().map(with_suffix));
        names.dedup();
    }
    names
}

/// Replaces the components that are numbers by `{}`: `blk.3.attn_q` gives `blk.{}.attn_q` and 3.
fn pattern(name: &str) -> (String, Vec<&str>) {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (mut parts, mut numbers) = (Vec::new(), Vec::new());
    for part in name.split('.') {
        if is_number(part) {
            numbers.push(part);
        }
        parts.push(if is_number(part) { "{}" } else { part });
    }
    (parts.join("."), numbers)
}

/// The name with numbers in the place of each `{}`.
fn numbered(name: &str, numbers: &[&str]) -> String {
    let fill = |name: String, number: &&str| name.replacen("{}", number, 1);
    numbers.iter().fold(name.to_string(), fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_containers_meet_in_one_name() {
        let name = Some("layers.3.attention.q.weight".to_string());
        assert_eq!(canonical_from_gguf("blk.3.attn_q.weight"), name);
        let hf = "model.layers.3.self_attn.q_proj.weight";
        assert_eq!(canonical_from_hugging_face(hf, false), name);
        let wrapped = "language_model.model.layers.3.self_attn.q_proj.weight";
        assert_eq!(canonical_from_hugging_face(wrapped, false), name);
    }

    #[test]
    fn post_attention_layernorm_means_two_things() {
        let name = "model.layers.0.post_attention_layernorm.weight";
        let llama = canonical_from_hugging_face(name, false);
        let gemma = canonical_from_hugging_face(name, true);
        assert_eq!(llama.as_deref(), Some("layers.0.ffn_norm.weight"));
        assert_eq!(
            gemma.as_deref(),
            Some("layers.0.post_attention_norm.weight")
        );
    }

    /// What an error says of a weight that is missing: all names under which it was looked for.
    #[test]
    fn a_canonical_name_is_found_under_each_of_its_names() {
        let name = "layers.7.ffn_norm.weight";
        assert_eq!(gguf_names(name), ["blk.7.ffn_norm.weight"]);
        for (sandwich, n_names) in [(false, 4), (true, 3)] {
            let names = hugging_face_names(name, sandwich);
            assert_eq!(names.len(), n_names);
            for found in names {
                let canonical = canonical_from_hugging_face(&found, sandwich);
                assert_eq!(canonical.as_deref(), Some(name), "{found}");
            }
        }
        assert_eq!(gguf_names("rope_freqs"), ["rope_freqs.weight"]);
        let expert = "layers.7.ffn.experts.12.up.weight";
        assert_eq!(gguf_names(expert), ["blk.7.ffn_up.12.weight"]);
        let mixtral = "model.layers.7.block_sparse_moe.experts.12.w3.weight";
        let found = canonical_from_hugging_face(mixtral, false);
        assert_eq!(found.as_deref(), Some(expert));
        assert_eq!(gguf_names("unknown.weight"), [""; 0]);
    }

    #[test]
    fn what_is_not_in_the_table_is_not_guessed() {
        assert_eq!(canonical_from_gguf("blk.0.attn_q.scales"), None);
        assert_eq!(canonical_from_gguf("blk.x.attn_q.weight"), None);
        assert_eq!(canonical_from_gguf("v.patch_embd.weight"), None);
        assert_eq!(
            canonical_from_gguf("rope_freqs.weight").as_deref(),
            Some("rope_freqs")
        );
    }

    /// A name that stood in two rows would find only the first.
    #[test]
    fn no_name_stands_twice_in_the_table() {
        let mut names: Vec<&str> = MODULES.iter().map(|module| module.gguf).collect();
        names.extend(MODULES.iter().map(|module| module.canonical));
        let in_total = names.len();
        names.sort_unstable();
        names.dedup();
        // `output`, `output_norm` and `token_types` are called so in GGUF too.
        assert_eq!(names.len(), in_total - 3);
    }
}
