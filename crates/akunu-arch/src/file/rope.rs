//! Rotary positions from a model's description.

use super::{Key, ModelFile, Said, Section, keys};
use crate::error::ArchError;
use crate::layer::Temperature;
use crate::long_rope;
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

/// Elements of a head that turn.
const TURNED: Key = Key::new(&["rope.dimension_count"], &["rotary_dim"]);
const LOCAL_TURNED: Key = Key::new(&["rope.dimension_count_swa"], &[]);
/// The share of a head that turns.
const TURNED_SHARE: &str = "partial_rotary_factor";

/// The scaling of Gemma 4's layers without a window.
const PROPORTIONAL: &str = "proportional";

pub(super) const ORIGINAL_CONTEXT: Key = Key::new(
    &["rope.scaling.original_context_length"],
    &["original_max_position_embeddings"],
);

/// YaRN as a file says it.
struct Yarn {
    factor: f32,
    beta_fast: Option<f32>,
    beta_slow: Option<f32>,
    original_context: u32,
    magnitude: Option<f32>,
    whole_pairs: bool,
}

impl ModelFile<'_> {
    /// A rope with YaRN's factors. Where no magnitude is said, it follows from the factor.
    fn yarn(&self, plain: Rope, yarn: Yarn) -> Result<Rope, ArchError> {
        let factor = yarn.factor;
        self.check_positive("YaRN factor", factor)?;
        self.check_size("YaRN's original context", yarn.original_context, 1 << 30)?;
        let (beta_fast, beta_slow) = (
            yarn.beta_fast.unwrap_or(32.0),
            yarn.beta_slow.unwrap_or(1.0),
        );
        self.check_positive("YaRN beta_fast", beta_fast)?;
        self.check_positive("YaRN beta_slow", beta_slow)?;
        let magnitude = yarn
            .magnitude
            .unwrap_or_else(|| yarn_magnitude(factor, 1.0));
        self.check_positive("YaRN attention factor", magnitude)?;
        Ok(Rope {
            factors: RopeFactors::Yarn {
                factor,
                beta_fast,
                beta_slow,
                original_context: yarn.original_context,
                whole_pairs: yarn.whole_pairs,
            },
            magnitude,
            ..plain
        })
    }

    fn yarn_of_config(&self, scaling: &Section) -> Result<Yarn, ArchError> {
        let context = self.required(keys::CONTEXT)?;
        let original = scaling.u32("original_max_position_embeddings")?;
        let original_context = original.unwrap_or(context);
        let factor = scaling.f32("factor")?;
        let factor = factor.unwrap_or(context as f32 / original_context as f32);
        let scales = [scaling.f32("mscale")?, scaling.f32("mscale_all_dim")?];
        let by_scales = match scales.map(|scale| scale.unwrap_or(0.0)) {
            [0.0, _] | [_, 0.0] => None,
            [one, all] => Some(yarn_magnitude(factor, one) / yarn_magnitude(factor, all)),
        };
        Ok(Yarn {
            factor,
            beta_fast: scaling.f32("beta_fast")?,
            beta_slow: scaling.f32("beta_slow")?,
            original_context,
            magnitude: scaling.f32("attention_factor")?.or(by_scales),
            whole_pairs: scaling.bool("truncate")?.unwrap_or(true),
        })
    }

    /// The magnitude of YaRN in a GGUF file: said, or by the factor.
    fn yarn_magnitude_of_metadata(&self, factor: f32) -> Result<f32, ArchError> {
        let key = |name: &'static [&'static str; 1]| self.f32(Key::new(name, &[]));
        let all = key(&["rope.scaling.yarn_log_multiplier"])?.filter(|&all| all != 0.0);
        let divisor = all.map_or(1.0, |all| yarn_magnitude(factor, all));
        let by_factor = yarn_magnitude(factor, 1.0) / divisor;
        let magnitude = key(&["rope.scaling.yarn_attn_factor"])?.unwrap_or(by_factor);
        let times = key(&["rope.scaling.attn_factor"])?.unwrap_or(1.0);
        Ok(magnitude * times)
    }

    /// The temperature of attention, which grows with each original context that a position has passed.
    pub(crate) fn temperature(&self) -> Result<Option<Temperature>, ArchError> {
        let (scale, period) = match self.said {
            Said::Metadata(_) => (
                self.f32(Key::new(&["attention.temperature_scale"], &[]))?,
                self.u32(ORIGINAL_CONTEXT)?,
            ),
            Said::Config(text) => match rope_section(&text) {
                Some(scaling) => (
                    scaling.f32("llama_4_scaling_beta")?,
                    scaling.u32("original_max_position_embeddings")?,
                ),
                None => (None, None),
            },
        };
        let Some(scale) = scale.filter(|&scale| scale != 0.0) else {
            return Ok(None);
        };
        let period = period.ok_or_else(|| self.missing(ORIGINAL_CONTEXT))?;
        Ok(Some(Temperature { scale, period }))
    }

    /// The rotary positions of layers without a window, for heads of this length.
    pub fn rope(&self, head_dim: u32) -> Result<Rope, ArchError> {
        let plain = Rope {
            // Safetensors hold the weights as they were trained: split halves.
            pairing: match self.said {
                Said::Metadata(_) => self.pairing,
                Said::Config(_) => Pairing::SplitHalves,
            },
            turned_dim: self.turned_dim(head_dim)?,
            theta: DEFAULT_THETA,
            freq_scale: 1.0,
            factors: RopeFactors::None,
            magnitude: 1.0,
        };
        match self.said {
            Said::Metadata(_) => self.rope_of_metadata(plain),
            Said::Config(section) => self.rope_of_config(&section, head_dim, plain),
        }
    }

    /// The rotary positions of layers with a window, where `base` is that of the architecture, if it has one for them.
    pub fn local_rope(&self, head_dim: u32, base: Option<f32>) -> Result<Rope, ArchError> {
        let mut rope = self.rope(head_dim)?;
        rope.turned_dim = self.u32(LOCAL_TURNED)?.or(rope.turned_dim);
        let (theta, factors) = match self.said {
            Said::Metadata(_) => (self.f32(LOCAL_THETA)?.or(base), rope.factors),
            Said::Config(section) => {
                let all = section.section("rope_parameters");
                match all.and_then(|all| all.section("sliding_attention")) {
                    Some(local) => (local.f32("rope_theta")?.or(base), RopeFactors::None),
                    None if base.is_none() => (None, rope.factors),
                    None => (self.f32(LOCAL_THETA)?.or(base), RopeFactors::None),
                }
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

    /// How many elements of a head turn: a number in metadata, a share of the head in `config.json`.
    fn turned_dim(&self, head_dim: u32) -> Result<Option<u32>, ArchError> {
        let Said::Config(text) = self.said else {
            return self.u32(TURNED);
        };
        let share = match rope_parameters(&text) {
            // Its share is that of pairs of a head that turns as a whole.
            Some(parameters) if parameters.string("rope_type")? == Some(PROPORTIONAL) => {
                return Ok(None);
            }
            Some(parameters) => parameters.f32(TURNED_SHARE)?,
            None => None,
        };
        let share = share.map_or_else(|| text.f32(TURNED_SHARE), |share| Ok(Some(share)))?;
        match share {
            Some(share) => Ok(Some((head_dim as f32 * share) as u32)),
            None => self.u32(TURNED),
        }
    }

    /// The kind of scaling that a GGUF file names.
    pub(super) fn scaling_kind(&self) -> Result<Option<&str>, ArchError> {
        match self.said {
            Said::Metadata(file) => Ok(file.metadata().string(&self.name("rope.scaling.type"))?),
            Said::Config(_) => Ok(None),
        }
    }

    fn rope_of_metadata(&self, plain: Rope) -> Result<Rope, ArchError> {
        let kind = self.scaling_kind()?;
        let factor = self.f32(Key::new(&["rope.scaling.factor", "rope.scale_linear"], &[]))?;
        if kind == Some("yarn") {
            let yarn = Yarn {
                factor: factor.unwrap_or(1.0),
                beta_fast: self.f32(Key::new(&["rope.scaling.yarn_beta_fast"], &[]))?,
                beta_slow: self.f32(Key::new(&["rope.scaling.yarn_beta_slow"], &[]))?,
                original_context: self.required(ORIGINAL_CONTEXT)?,
                magnitude: Some(self.yarn_magnitude_of_metadata(factor.unwrap_or(1.0))?),
                whole_pairs: true,
            };
            let theta = self.f32(THETA)?.unwrap_or(DEFAULT_THETA);
            return self.yarn(Rope { theta, ..plain }, yarn);
        }
        if self.has_long_rope()? {
            let theta = self.f32(THETA)?.unwrap_or(DEFAULT_THETA);
            return self.long_rope_of_metadata(Rope { theta, ..plain });
        }
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
    fn rope_of_config(
        &self,
        text: &Section,
        head_dim: u32,
        plain: Rope,
    ) -> Result<Rope, ArchError> {
        let parameters = rope_parameters(text);
        let theta = match parameters {
            Some(parameters) => parameters.f32("rope_theta")?,
            None => self.f32(THETA)?,
        };
        let mut rope = Rope {
            theta: theta.unwrap_or(DEFAULT_THETA),
            ..plain
        };
        let Some(scaling) = rope_section(text) else {
            return Ok(rope);
        };
        let number = |key: &str| scaling.f32(key)?.ok_or_else(|| scaling.missing(key));
        match scaling.string("rope_type")?.or(scaling.string("type")?) {
            // Older files of Qwen2-VL name its axes here.
            None | Some("default" | "mrope") => {}
            Some("linear") => rope.freq_scale = 1.0 / number("factor")?,
            Some("yarn") => {
                let yarn = self.yarn_of_config(&scaling)?;
                return self.yarn(rope, yarn);
            }
            Some("llama3") => {
                rope.factors = RopeFactors::Llama3 {
                    factor: number("factor")?,
                    low_freq_factor: number("low_freq_factor")?,
                    high_freq_factor: number("high_freq_factor")?,
                    original_context: scaling.required_u32("original_max_position_embeddings")?,
                }
            }
            Some(PROPORTIONAL) => {
                let share = scaling.f32(TURNED_SHARE)?.unwrap_or(1.0);
                rope.factors = RopeFactors::FirstPairs((share * head_dim as f32 / 2.0) as u32);
                rope.freq_scale = 1.0 / scaling.f32("factor")?.unwrap_or(1.0);
            }
            Some(kind) if long_rope::NAMES.contains(&kind) => {
                return self.long_rope_of_config(&scaling, rope);
            }
            // A base that is larger once and for all, or beyond the model's own context.
            Some("dynamic") => {
                let turned = rope.turned_dim.unwrap_or(head_dim) as f32;
                let alpha = scaling.f32("alpha")?.unwrap_or(1.0);
                rope.theta *= alpha.powf(turned / (turned - 2.0));
            }
            Some(other) => return Err(self.unsupported(format!("the RoPE scaling `{other}`"))),
        }
        Ok(rope)
    }
}

/// YaRN's factor of turned queries and keys.
fn yarn_magnitude(factor: f32, scale: f32) -> f32 {
    match factor > 1.0 {
        true => 0.1 * scale * factor.ln() + 1.0,
        false => 1.0,
    }
}

/// The rope of layers without a window, in newer configs.
fn rope_parameters<'a>(text: &Section<'a>) -> Option<Section<'a>> {
    let all = text.section("rope_parameters")?;
    Some(all.section("full_attention").unwrap_or(all))
}

/// The same, or the scaling in older ones.
pub(super) fn rope_section<'a>(text: &Section<'a>) -> Option<Section<'a>> {
    rope_parameters(text).or_else(|| text.section("rope_scaling"))
}
