//! Where CTranslate2 keeps a weight of Whisper.

/// A tensor of `model.bin`, or one of the equal parts of its rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub tensor: String,
    /// Which part.
    pub part: usize,
    /// Of how many.
    pub of: usize,
}

/// Modules of a layer: Hugging Face's name, CTranslate2's, and the part of the rows.
const LAYER: &[(&str, &str, usize, usize)] = &[
    ("self_attn_layer_norm", "self_attention/layer_norm", 0, 1),
    ("self_attn.q_proj", "self_attention/linear_0", 0, 3),
    ("self_attn.k_proj", "self_attention/linear_0", 1, 3),
    ("self_attn.v_proj", "self_attention/linear_0", 2, 3),
    ("self_attn.out_proj", "self_attention/linear_1", 0, 1),
    ("encoder_attn_layer_norm", "attention/layer_norm", 0, 1),
    ("encoder_attn.q_proj", "attention/linear_0", 0, 1),
    ("encoder_attn.k_proj", "attention/linear_1", 0, 2),
    ("encoder_attn.v_proj", "attention/linear_1", 1, 2),
    ("encoder_attn.out_proj", "attention/linear_2", 0, 1),
    ("final_layer_norm", "ffn/layer_norm", 0, 1),
    ("fc1", "ffn/linear_0", 0, 1),
    ("fc2", "ffn/linear_1", 0, 1),
];

/// Where a weight of this Hugging Face name lies; `None` for a name that Whisper does not have.
pub(super) fn in_ct2(name: &str) -> Option<Place> {
    let whole = |tensor: String| {
        Some(Place {
            tensor,
            part: 0,
            of: 1,
        })
    };
    let (stack, rest) = name.split_once('.')?;
    let (module, suffix) = rest.rsplit_once('.')?;
    match module {
        "embed_tokens" => return whole(format!("{stack}/embeddings/weight")),
        "embed_positions" => return whole(format!("{stack}/position_encodings/encodings")),
        "conv1" | "conv2" => return whole(format!("{stack}/{module}/{suffix}")),
        "layer_norm" => return whole(format!("{stack}/layer_norm/{}", norm_part(suffix)?)),
        _ => {}
    }
    let (layer, part) = module.strip_prefix("layers.")?.split_once('.')?;
    let layer: u32 = layer.parse().ok()?;
    let &(_, module, part, of) = LAYER.iter().find(|row| row.0 == part)?;
    let suffix = if module.ends_with("layer_norm") {
        norm_part(suffix)?
    } else {
        suffix
    };
    Some(Place {
        tensor: format!("{stack}/layer_{layer}/{module}/{suffix}"),
        part,
        of,
    })
}

fn norm_part(suffix: &str) -> Option<&'static str> {
    match suffix {
        "weight" => Some("gamma"),
        "bias" => Some("beta"),
        _ => None,
    }
}
