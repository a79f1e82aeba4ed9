//! Rotary positions from a model's description.

use super::{Key, ModelFile, Said, Section};
use crate::error::ArchError;
use crate::rope::{Pairing, Rope, RopeFactors};

const DEFAULT_THETA: f32 = 10_000.0;
const THETA: Key = Key::new(
    &["rope.freq_base"],
    &["rope_theta", "rotary_emb_base", "global_rope_theta"],
);
const LOCAL_THETA: Key = Key::new(
    &["rope.freq_base_swa"],
    &["rope_local_base_freq", "local_rope_theta"],
);

impl ModelFile<'_> {
    /// The rotary positions of layers without a window.
    pub fn rope(&self) -> Result<Rope, ArchError> {
        let plain = Rope {
            // Safetensors hold the weights as they were trained: split halves.
            pairing: match self.said {
                Said::Metadata(_) => self.pairing,
                Said::Config(_) => Pairing::SplitHalves,
            },
            theta: DEFAULT_THETA,
            freq_scale: 1.0,
            factors: RopeFactors::None,
        };
        match self.said {
            Said::Metadata(_) => self.rope_of_metadata(plain),
            Said::Config(section) => self.rope_of_config(&section, plain),
        }
    }

    /// The rotary positions of layers with a window, where `base` is that of the architecture, if it has one for them.
    pub fn local_rope(&self, base: Option<f32>) -> Result<Rope, ArchError> {
        let rope = self.rope()?;
        let (theta, factors) = match self.said {
            Said::Metadata(_) => (self.f32(LOCAL_THETA)?.or(base), rope.factors),
            Said::Config(_) if base.is_none() => (None, rope.factors),
            Said::Config(section) => {
                let all = section.section("rope_parameters");
                let theta = match all.and_then(|all| all.section("sliding_attention")) {
                    Some(local) => local.f32("rope_theta")?,
                    None => self.f32(LOCAL_THETA)?,
                };
                (theta.or(base), RopeFactors::None)
            }
        };
        Ok(match theta {
            None => rope,
            Some(theta) => Rope {
                theta,
                freq_scale: 1.0,
                factors,
                ..rope
            },
        })
    }

    fn rope_of_metadata(&self, plain: Rope) -> Result<Rope, ArchError> {
        let Said::Metadata(file) = self.said else {
            return Ok(plain);
        };
        let kind = file.metadata().string(&self.name("rope.scaling.type"))?;
        let factor = self.f32(Key::new(&["rope.scaling.factor", "rope.scale_linear"], &[]))?;
        let freq_scale = match kind {
            None | Some("none" | "linear") => factor.map_or(1.0, |factor| 1.0 / factor),
            Some(other) => return Err(self.unsupported(format!("the RoPE scaling `{other}`"))),
        };
        Ok(Rope {
            theta: self.f32(THETA)?.unwrap_or(DEFAULT_THETA),
            freq_scale,
            factors: match self.store.tensor("rope_freqs") {
                Some(_) => RopeFactors::Weight,
                None => RopeFactors::None,
            },
            ..plain
        })
    }

    /// Older configs have `rope_theta` and `rope_scaling`; newer ones have `rope_parameters`, for all layers or for each kind
    /// of layer.
    fn rope_of_config(&self, text: &Section, plain: Rope) -> Result<Rope, ArchError> {
        let parameters = text.section("rope_parameters");
        let parameters = parameters.map(|all| all.section("full_attention").unwrap_or(all));
        let theta = match parameters {
            Some(parameters) => parameters.f32("rope_theta")?,
            None => self.f32(THETA)?,
        };
        let mut rope = Rope {
            theta: theta.unwrap_or(DEFAULT_THETA),
            ..plain
        };
        let Some(scaling) = parameters.or_else(|| text.section("rope_scaling")) else {
            return Ok(rope);
        };
        let number = |key: &str| scaling.f32(key)?.ok_or_else(|| scaling.missing(key));
        match scaling.string("rope_type")?.or(scaling.string("type")?) {
            None | Some("default") => {}
            Some("linear") => rope.freq_scale = 1.0 / number("factor")?,
            Some("llama3") => {
                rope.factors = RopeFactors::Llama3 {
                    factor: number("factor")?,
                    low_freq_factor: number("low_freq_factor")?,
                    high_freq_factor: number("high_freq_factor")?,
                    original_context: scaling.required_u32("original_max_position_embeddings")?,
                }
            }
            Some(other) => return Err(self.unsupported(format!("the RoPE scaling `{other}`"))),
        }
        Ok(rope)
    }
}
