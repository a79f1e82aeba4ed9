//! DeepSeek V2 and V3: latent attention, and experts after some layers without.

use super::prelude::*;
use crate::parts::LatentSizes;

/// DeepSeek V2, V3 and Coder V2, GLM-4.7-Flash, GigaChat 3, the text of Kimi-VL.
pub const ARCH: Architecture = Architecture {
    name: "deepseek2",
    model_types: &["deepseek_v2", "deepseek_v3", "glm4_moe_lite", "kimi_vl"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// What a GGUF file has instead of `mscale_all_dim`: a tenth of it.
const LOG_MULTIPLIER: Key = Key::new(&["rope.scaling.yarn_log_multiplier"], &[]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    file.never(&["attention_bias"])?;
    file.only("hidden_act", "silu")?;
    if let Some(config) = file.config() {
        if config.bool("rope_interleave")? == Some(false) {
            return Err(file.unsupported("`rope_interleave` = false".to_string()));
        }
        let is_grouped = config.u32("n_group")?.is_some_and(|groups| groups > 1);
        if is_grouped && config.string("topk_method")? == Some("group_limited_greedy") {
            let what = "`topk_method` = `group_limited_greedy`".to_string();
            return Err(file.unsupported(what));
        }
    }
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let sizes = LatentSizes::read(file)?;
    let positions = positions(file, &sizes)?;
    let experts = match file.has_experts()? {
        true => Some(ExpertParts::read(&parts, routing(file)?)?),
        false => None,
    };
    Ok(parts.decoder(|at| {
        let attention = parts.latent_attention(at, &sizes, positions);
        let ffn = match &experts {
            Some(experts) => experts.ffn_with_bias_found(at),
            None => Ffn::Gated(parts.gated(at, Activation::Silu)),
        };
        Layer::new(attention, ffn, parts.input_norms(at))
    }))
}

/// How routers choose where the file does not say: V3 and GLM by sigmoids, V2 by a softmax.
fn routing(file: &ModelFile) -> Result<Routing, ArchError> {
    let model_type = match file.config() {
        Some(config) => config.string("model_type")?,
        None => None,
    };
    let is_sigmoid = matches!(model_type, Some("deepseek_v3" | "glm4_moe_lite"));
    Ok(Routing {
        gating: match is_sigmoid {
            true => Gating::Sigmoid,
            false => Gating::Softmax,
        },
        normalise: is_sigmoid,
    })
}

/// Rotary positions and the factor of the scores: with YaRN, scores are multiplied by the square of a factor that grows with the
/// scaling; turned heads are not.
fn positions(file: &ModelFile, sizes: &LatentSizes) -> Result<(Rope, f32), ArchError> {
    let rope = sizes.rope(file)?;
    let plain = 1.0 / (sizes.query_dim() as f32).sqrt();
    let RopeFactors::Yarn { factor, .. } = rope.factors else {
        return Ok((rope, plain));
    };
    let all = match file.config() {
        Some(config) => {
            let scaling = config.section("rope_parameters");
            let scaling = scaling.or_else(|| config.section("rope_scaling"));
            let all = scaling.map(|scaling| scaling.f32("mscale_all_dim"));
            all.transpose()?.flatten().map(|all| 0.1 * all)
        }
        None => file.f32(LOG_MULTIPLIER)?,
    };
    let Some(all) = all.filter(|&all| all != 0.0) else {
        return Ok((rope, plain));
    };
    let of_scores = 1.0 + all * factor.max(1.0).ln();
    let magnitude = match file.config() {
        Some(_) => rope.magnitude,
        None => 1.0,
    };
    let scale = plain * of_scores * of_scores;
    Ok((Rope { magnitude, ..rope }, scale))
}
