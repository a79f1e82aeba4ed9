//! Rotary positions from a model's description.

use super::{Key, ModelFile, Said, Section, keys};
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

/// Elements of a head that turn.
const TURNED: Key = Key::new(&["rope.dimension_count"], &["rotary_dim"]);
const LOCAL_TURNED: Key = Key::new(&["rope.dimension_count_swa"], &[]);
/// The share of a head that turns.
const TURNED_SHARE: &str = "partial_rotary_factor";

const ORIGINAL_CONTEXT: Key = Key::new(&["rope.scaling.original_context_length"], &[]);

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
        let by_factor = || match factor > 1.0 {
            true => 0.1 * factor.ln() + 1.0,
            false => 1.0,
        };
        let magnitude = yarn.magnitude.unwrap_or_else(by_factor);
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
        let parameters = text.section("rope_parameters");
        let parameters = parameters.map(|all| all.section("full_attention").unwrap_or(all));
        let share = match parameters {
            Some(parameters) => parameters.f32(TURNED_SHARE)?,
            None => None,
        };
        let share = share.map_or_else(|| text.f32(TURNED_SHARE), |share| Ok(Some(share)))?;
        match share {
            Some(share) => Ok(Some((head_dim as f32 * share) as u32)),
            None => self.u32(TURNED),
        }
    }

    fn rope_of_metadata(&self, plain: Rope) -> Result<Rope, ArchError> {
        let Said::Metadata(file) = self.said else {
            return Ok(plain);
        };
        let kind = file.metadata().string(&self.name("rope.scaling.type"))?;
        let factor = self.f32(Key::new(&["rope.scaling.factor", "rope.scale_linear"], &[]))?;
        if kind == Some("yarn") {
            let yarn = Yarn {
                factor: factor.unwrap_or(1.0),
                beta_fast: self.f32(Key::new(&["rope.scaling.yarn_beta_fast"], &[]))?,
                beta_slow: self.f32(Key::new(&["rope.scaling.yarn_beta_slow"], &[]))?,
                original_context: self.required(ORIGINAL_CONTEXT)?,
                magnitude: self.f32(Key::new(&["rope.scaling.attn_factor"], &[]))?,
                whole_pairs: true,
            };
            let theta = self.f32(THETA)?.unwrap_or(DEFAULT_THETA);
            return self.yarn(Rope { theta, ..plain }, yarn);
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
            Some("yarn") => {
                if ["mscale", "mscale_all_dim"]
                    .iter()
                    .any(|key| scaling.get(key).is_some())
                {
                    return Err(self.unsupported("YaRN with `mscale`".to_string()));
                }
                let yarn = Yarn {
                    factor: number("factor")?,
                    beta_fast: scaling.f32("beta_fast")?,
                    beta_slow: scaling.f32("beta_slow")?,
                    original_context: match scaling.u32("original_max_position_embeddings")? {
                        Some(context) => context,
                        None => self.required(keys::CONTEXT)?,
                    },
                    magnitude: scaling.f32("attention_factor")?,
                    whole_pairs: scaling.bool("truncate")?.unwrap_or(true),
                };
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
            // A base that is larger once and for all.
            Some("dynamic") if scaling.get("alpha").is_some() => {
                let turned = rope.turned_dim.unwrap_or(head_dim) as f32;
                rope.theta *= number("alpha")?.powf(turned / (turned - 2.0));
            }
            Some(other) => return Err(self.unsupported(format!("the RoPE scaling `{other}`"))),
        }
        Ok(rope)
    }
}
