//! Long-rope from a model's description: two weights in GGUF, two lists in `config.json`.

use akunu_gguf::{Data, quant};
use serde_json::Value;

use super::rope::{ORIGINAL_CONTEXT, rope_section};
use super::{Key, ModelFile, Said, Section, keys};
use crate::error::ArchError;
use crate::long_rope::{LongRope, NAMES, magnitude};
use crate::rope::{Rope, RopeFactors};

/// The weights in GGUF.
const SHORT_WEIGHT: &str = "rope_factors_short";
const LONG_WEIGHT: &str = "rope_factors_long";
const ORIGINAL: &str = "original_max_position_embeddings";
const WANTED: &str = "a positive number for each pair that turns";

impl ModelFile<'_> {
    /// The factors of long-rope, if the model has them, of which heads turn so many elements.
    pub(crate) fn long_rope(&self, turned: u32) -> Result<Option<LongRope>, ArchError> {
        let Said::Config(text) = self.said else {
            return match self.has_long_rope()? {
                true => self.long_rope_of_weights(turned).map(Some),
                false => Ok(None),
            };
        };
        let Some(scaling) = rope_section(&text).filter(is_long_rope) else {
            return Ok(None);
        };
        let list = |key: &str| self.factors_of_list(&scaling, key, turned);
        Ok(Some(LongRope {
            original_context: self.original_context(&scaling)?,
            short: list("short_factor")?,
            long: list("long_factor")?,
        }))
    }

    /// Whether a GGUF file names long-rope, or has its weights.
    pub(super) fn has_long_rope(&self) -> Result<bool, ArchError> {
        let mut names = [SHORT_WEIGHT, LONG_WEIGHT].into_iter();
        let has_weights = names.any(|name| self.store.tensor(name).is_some());
        Ok(has_weights || self.scaling_kind()? == Some("longrope"))
    }

    /// A rope with long-rope's factors, of a GGUF file.
    pub(super) fn long_rope_of_metadata(&self, plain: Rope) -> Result<Rope, ArchError> {
        let said = self.f32(Key::new(&["rope.scaling.attn_factor"], &[]))?;
        self.with_long_factors(plain, said.unwrap_or(1.0))
    }

    /// A rope with long-rope's factors, of a folder.
    pub(super) fn long_rope_of_config(
        &self,
        scaling: &Section,
        plain: Rope,
    ) -> Result<Rope, ArchError> {
        let original = self.original_context(scaling)?;
        let factor = match scaling.f32("factor")? {
            Some(factor) => factor,
            None => self.required(keys::CONTEXT)? as f32 / original as f32,
        };
        let said = scaling.f32("attention_factor")?;
        self.with_long_factors(plain, said.unwrap_or_else(|| magnitude(factor, original)))
    }

    fn with_long_factors(&self, plain: Rope, magnitude: f32) -> Result<Rope, ArchError> {
        self.check_positive("long-rope's attention factor", magnitude)?;
        let factors = RopeFactors::Weight;
        Ok(Rope {
            factors,
            magnitude,
            ..plain
        })
    }

    /// The context that a model was first trained with. Phi's configs have it outside of the scaling.
    fn original_context(&self, scaling: &Section) -> Result<u32, ArchError> {
        let said = match scaling.u32(ORIGINAL)? {
            Some(original) => Some(original),
            None => self.u32(Key::new(&[], &[ORIGINAL]))?,
        };
        let original = said.ok_or_else(|| scaling.missing(ORIGINAL))?;
        self.check_size("long-rope's original context", original, 1 << 30)?;
        Ok(original)
    }

    fn long_rope_of_weights(&self, turned: u32) -> Result<LongRope, ArchError> {
        let original_context = self.required(ORIGINAL_CONTEXT)?;
        self.check_size("long-rope's original context", original_context, 1 << 30)?;
        Ok(LongRope {
            original_context,
            short: self.factors_of_weight(SHORT_WEIGHT, turned)?,
            long: self.factors_of_weight(LONG_WEIGHT, turned)?,
        })
    }

    fn factors_of_weight(&self, name: &str, turned: u32) -> Result<Vec<f32>, ArchError> {
        let n_pairs = turned as usize / 2;
        let Some(weight) = self.store.tensor(name) else {
            return Err(ArchError::MissingWeight {
                path: self.path().to_path_buf(),
                name: name.to_string(),
                rows: 1,
                cols: turned / 2,
                tensors: self.store.tensor_names(name),
            });
        };
        let found = weight.rows().saturating_mul(weight.cols());
        let Data::Plain(span) = &weight.data else {
            return Err(self.unsupported(format!("a quantised `{name}`")));
        };
        if found != n_pairs {
            let found = format!("a list of {found} for {n_pairs} pairs");
            return Err(self.invalid(weight.tensor, found, WANTED));
        }
        let mut factors = vec![0.0; n_pairs];
        quant::dequantise(weight.dtype, span.bytes, &mut factors)
            .map_err(|error| self.invalid(weight.tensor, error.to_string(), WANTED))?;
        self.check_factors(weight.tensor, factors)
    }

    fn factors_of_list(
        &self,
        scaling: &Section,
        key: &str,
        turned: u32,
    ) -> Result<Vec<f32>, ArchError> {
        let n_pairs = turned as usize / 2;
        let list = scaling.get(key).ok_or_else(|| scaling.missing(key))?;
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        if list.len() != n_pairs {
            let found = format!("a list of {} for {n_pairs} pairs", list.len());
            return Err(self.invalid(key, found, WANTED));
        }
        let number = |value: &Value| value.as_f64().map_or(f32::NAN, |number| number as f32);
        self.check_factors(key, list.iter().map(number).collect())
    }

    fn check_factors(&self, key: &str, factors: Vec<f32>) -> Result<Vec<f32>, ArchError> {
        match factors.iter().find(|f| !(f.is_finite() && **f > 0.0)) {
            None => Ok(factors),
            Some(found) => Err(self.invalid(key, format!("a list with {found}"), WANTED)),
        }
    }
}

/// Whether a scaling is long-rope, which the first configs call `su`.
fn is_long_rope(scaling: &Section) -> bool {
    let names = ["rope_type", "type"].map(|key| scaling.get(key).and_then(Value::as_str));
    names
        .into_iter()
        .flatten()
        .any(|name| NAMES.contains(&name))
}
