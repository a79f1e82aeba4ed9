//! Vision towers and their projectors: a file of llama.cpp with `general.architecture = clip`, or a part of a folder.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "vision.patches",
        "v.patch_embd",
        &[
            Always("vision_model.embeddings.patch_embedding"),
            Always("visual.patch_embed.proj"),
        ],
    ),
    module(
        "vision.positions",
        "v.position_embd",
        &[
            Always("vision_model.embeddings.position_embedding"),
            Always("visual.pos_embed"),
        ],
    ),
    module(
        "vision.layers.{}.attention.q",
        "v.blk.{}.attn_q",
        &[Always("vision_model.encoder.layers.{}.self_attn.q_proj")],
    ),
    module(
        "vision.layers.{}.attention.k",
        "v.blk.{}.attn_k",
        &[Always("vision_model.encoder.layers.{}.self_attn.k_proj")],
    ),
    module(
        "vision.layers.{}.attention.v",
        "v.blk.{}.attn_v",
        &[Always("vision_model.encoder.layers.{}.self_attn.v_proj")],
    ),
    module(
        "vision.layers.{}.attention.qkv",
        "v.blk.{}.attn_qkv",
        &[Always("visual.blocks.{}.attn.qkv")],
    ),
    module(
        "vision.layers.{}.attention.output",
        "v.blk.{}.attn_out",
        &[
            Always("vision_model.encoder.layers.{}.self_attn.out_proj"),
            Always("visual.blocks.{}.attn.proj"),
        ],
    ),
    module(
        "vision.layers.{}.attention_norm",
        "v.blk.{}.ln1",
        &[
            Always("vision_model.encoder.layers.{}.layer_norm1"),
            Always("visual.blocks.{}.norm1"),
        ],
    ),
    module(
        "vision.layers.{}.ffn_norm",
        "v.blk.{}.ln2",
        &[
            Always("vision_model.encoder.layers.{}.layer_norm2"),
            Always("visual.blocks.{}.norm2"),
        ],
    ),
    module(
        "vision.layers.{}.ffn.up",
        "v.blk.{}.ffn_up",
        &[
            Always("vision_model.encoder.layers.{}.mlp.fc1"),
            Always("visual.blocks.{}.mlp.linear_fc1"),
        ],
    ),
    module(
        "vision.layers.{}.ffn.down",
        "v.blk.{}.ffn_down",
        &[
            Always("vision_model.encoder.layers.{}.mlp.fc2"),
            Always("visual.blocks.{}.mlp.linear_fc2"),
        ],
    ),
    module(
        "vision.norm",
        "v.post_ln",
        &[
            Always("vision_model.post_layernorm"),
            Always("visual.merger.norm"),
        ],
    ),
    module(
        "vision.projector.fc",
        "mm.model.fc",
        &[Always("connector.modality_projection.proj")],
    ),
    module(
        "vision.merger.fc1",
        "mm.merger.fc1",
        &[Always("visual.merger.linear_fc1")],
    ),
    module(
        "vision.merger.fc2",
        "mm.merger.fc2",
        &[Always("visual.merger.linear_fc2")],
    ),
    module("vision.projector.{}", "mm.{}", &[]),
    module(
        "vision.projector.linear_1",
        "mm.linear_1",
        &[Always("multi_modal_projector.linear_1")],
    ),
    module(
        "vision.projector.linear_2",
        "mm.linear_2",
        &[Always("multi_modal_projector.linear_2")],
    ),
    module(
        "vision.projector.input_norm",
        "mm.input_norm",
        &[Always("multi_modal_projector.layer_norm")],
    ),
    module(
        "vision.deep.{}.norm",
        "v.deepstack.{}.norm",
        &[Always("visual.deepstack_merger_list.{}.norm")],
    ),
    module(
        "vision.deep.{}.fc1",
        "v.deepstack.{}.fc1",
        &[Always("visual.deepstack_merger_list.{}.linear_fc1")],
    ),
    module(
        "vision.deep.{}.fc2",
        "v.deepstack.{}.fc2",
        &[Always("visual.deepstack_merger_list.{}.linear_fc2")],
    ),
    module(
        "vision.projector.norm",
        "mm.soft_emb_norm",
        &[Always("multi_modal_projector.mm_soft_emb_norm")],
    ),
];

/// Names whose suffix differs in some container, or is missing there.
pub(super) const WHOLE: &[Module] = &[
    // The kernel of the second frame, in models that read films.
    module("vision.patches.weight.{}", "v.patch_embd.weight.{}", &[]),
    module(
        "vision.projector.input.weight",
        "mm.input_projection.weight",
        &[Always("multi_modal_projector.mm_input_projection_weight")],
    ),
];

/// Names of a tower as the tables have them: some folders have a wrapper more around the tower, or one less.
pub(super) fn without_wrapper(name: &str) -> Option<String> {
    let inside = name.strip_prefix("vision_tower.")?;
    let inside = inside.strip_prefix("vision_model.").unwrap_or(inside);
    Some(format!("vision_model.{inside}"))
}
