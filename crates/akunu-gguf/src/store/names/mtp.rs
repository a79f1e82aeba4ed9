//! The block for multi-token prediction. It stands behind the last layer, and its layer has the names of a layer there. Folders
//! of Qwen have it apart, as `mtp.`: [`in_layers`] gives those tensors the names that others have.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "layers.{}.mtp.join",
        "blk.{}.nextn.eh_proj",
        &[Always("layers.{}.eh_proj")],
    ),
    module(
        "layers.{}.mtp.embedding_norm",
        "blk.{}.nextn.enorm",
        &[Always("layers.{}.enorm")],
    ),
    module(
        "layers.{}.mtp.hidden_norm",
        "blk.{}.nextn.hnorm",
        &[Always("layers.{}.hnorm")],
    ),
    module(
        "layers.{}.mtp.embedding",
        "blk.{}.nextn.embed_tokens",
        &[Always("layers.{}.embed_tokens")],
    ),
    module(
        "layers.{}.mtp.output",
        "blk.{}.nextn.shared_head_head",
        &[Always("layers.{}.shared_head.head")],
    ),
    module(
        "layers.{}.mtp.norm",
        "blk.{}.nextn.shared_head_norm",
        &[Always("layers.{}.shared_head.norm")],
    ),
];

/// What Qwen calls parts of the block, and what others do.
const PARTS: [(&str, &str); 4] = [
    ("fc", "eh_proj"),
    ("pre_fc_norm_embedding", "enorm"),
    ("pre_fc_norm_hidden", "hnorm"),
    ("norm", "shared_head.norm"),
];

/// The name of one of Qwen's tensors `mtp.` as one behind `n_layers` layers; `None` for all others, and for further blocks.
pub fn in_layers(name: &str, n_layers: usize) -> Option<String> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    let part = name.strip_prefix("mtp.")?;
    if let Some(part) = part.strip_prefix("layers.0.") {
        return Some(format!("model.layers.{n_layers}.{part}"));
    }
    let (module, suffix) = part.rsplit_once('.')?;
    let (_, other) = PARTS.iter().find(|(qwen, _)| *qwen == module)?;
    Some(format!("model.layers.{n_layers}.{other}.{suffix}"))
}

/// What Qwen calls a tensor that others have behind `n_layers` layers.
pub fn apart(name: &str, n_layers: usize) -> Option<String> {
    let part = name.strip_prefix(&format!("layers.{n_layers}."))?;
    let (module, suffix) = part.rsplit_once('.')?;
    let own = PARTS.iter().find(|(_, other)| *other == module);
    Some(match own {
        Some((qwen, _)) => format!("mtp.{qwen}.{suffix}"),
        None => format!("mtp.layers.0.{part}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::canonical_from_hugging_face;
    use super::{apart, in_layers};

    /// Fails when a tensor of the block is not found, or when one of a further block is taken for one of the first.
    #[test]
    fn tensors_of_qwen_stand_behind_the_last_layer() {
        let canonical = |name: &str| {
            let name = in_layers(name, 24)?;
            canonical_from_hugging_face(&name, false)
        };
        for (name, wanted) in [
            ("mtp.fc.weight", "layers.24.mtp.join.weight"),
            ("mtp.norm.weight", "layers.24.mtp.norm.weight"),
            (
                "model.mtp.pre_fc_norm_hidden.weight",
                "layers.24.mtp.hidden_norm.weight",
            ),
            (
                "mtp.layers.0.self_attn.q_proj.weight",
                "layers.24.attention.q.weight",
            ),
        ] {
            assert_eq!(canonical(name).as_deref(), Some(wanted), "{name}");
        }
        assert_eq!(in_layers("mtp.layers.1.self_attn.q_proj.weight", 24), None);
        assert_eq!(in_layers("model.norm.weight", 24), None);
        let norm = apart("layers.24.shared_head.norm.weight", 24);
        assert_eq!(norm.as_deref(), Some("mtp.norm.weight"));
        assert_eq!(apart("layers.23.mlp.up_proj.weight", 24), None);
    }
}
