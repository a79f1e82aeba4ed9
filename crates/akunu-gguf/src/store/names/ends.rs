//! Before the first layer and after the last: embeddings, the last norm, heads.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "token_embedding",
        "token_embd",
        &[
            Always("embed_tokens"),
            Always("wte"),
            Always("embeddings"),
            Always("tok_embeddings"),
            Always("word_embeddings"),
            Always("embeddings.word_embeddings"),
            Always("embeddings.tok_embeddings"),
        ],
    ),
    module(
        "layer_embeddings",
        "per_layer_token_embd",
        &[Always("embed_tokens_per_layer")],
    ),
    module(
        "layer_projection",
        "per_layer_model_proj",
        &[Always("per_layer_model_projection")],
    ),
    module(
        "layer_projection_norm",
        "per_layer_proj_norm",
        &[Always("per_layer_projection_norm")],
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
        &[
            Always("pooler.dense"),
            Always("head.dense"),
            Always("classifier.dense"),
        ],
    ),
    module("pooler_norm", "cls.norm", &[Always("head.norm")]),
    module(
        "classifier",
        "cls.output",
        &[Always("classifier"), Always("classifier.out_proj")],
    ),
    module(
        "output_norm",
        "output_norm",
        &[
            Always("norm"),
            Always("final_norm"),
            Always("norm_f"),
            Always("ln_f"),
            Always("final_layernorm"),
        ],
    ),
    module("output", "output", &[Always("lm_head"), Always("output")]),
];

/// Names whose suffix differs in some container, or is missing there.
pub(super) const WHOLE: &[Module] = &[
    module(
        "layers.{}.scale",
        "blk.{}.layer_output_scale.weight",
        &[Always("layers.{}.layer_scalar")],
    ),
    // Falcon-H1.
    module("layers.{}.ffn_norm_alone", "blk.{}.ffn_norm", &[]),
    module("rope_freqs", "rope_freqs.weight", &[]),
    module("rope_factors_short", "rope_factors_short.weight", &[]),
    module("rope_factors_long", "rope_factors_long.weight", &[]),
];
