//! gpt-oss: experts with biases everywhere and a clamped gate, attention with sinks, a window in every other layer.

use akunu_gguf::Data;

use super::prelude::*;

/// gpt-oss-20b and 120b.
pub const ARCH: Architecture = Architecture {
    name: "gpt-oss",
    model_types: &["gpt_oss"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const ROUTING: Routing = Routing {
    gating: Gating::SoftmaxOfChosen,
    normalise: false,
};

/// The limit of the gate, which the kernels know.
const LIMIT: f32 = 7.0;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let limit = file.f32(Key::new(&[], &["swiglu_limit"]))?;
    if let Some(limit) = limit.filter(|&limit| limit != LIMIT) {
        return Err(file.unsupported(format!("`swiglu_limit` = {limit}")));
    }
    let parts = Parts::read(file, WindowPattern::AllButEvery { period: 2 }, None)?;
    let experts = ExpertParts::read(&parts, ROUTING)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at).with_qkv_bias();
        let attention = Attention {
            output: plain.output.with_bias(),
            rope: plain.rope.map(with_broken_pairs),
            sinks: Some(parts.sinks(at)),
            ..plain
        };
        let ffn = experts.ffn(at, |experts| Experts {
            activation: Activation::SwigluOai,
            ..as_stored(experts, file).with_biases()
        });
        Layer::new(attention, ffn, parts.input_norms_after_attention(at))
    }))
}

/// Its experts as the file has them. Folders that `transformers` saved have one tensor for gate and up.
fn as_stored(experts: Experts, file: &ModelFile) -> Experts {
    let both = file.store.tensor(&experts.gate.weight.name);
    match (file.config(), both) {
        (Some(_), Some(both)) if both.name.contains(".gate_up.") => {
            experts.with_rows_in_turn(matches!(both.data, Data::Plain(_)))
        }
        _ => experts,
    }
}

/// The passage of its YaRN begins and ends between pairs; GGUF files do not say it.
fn with_broken_pairs(rope: Rope) -> Rope {
    match rope.factors {
        RopeFactors::Yarn {
            factor,
            beta_fast,
            beta_slow,
            original_context,
            ..
        } => Rope {
            factors: RopeFactors::Yarn {
                factor,
                beta_fast,
                beta_slow,
                original_context,
                whole_pairs: false,
            },
            ..rope
        },
        _ => rope,
    }
}
