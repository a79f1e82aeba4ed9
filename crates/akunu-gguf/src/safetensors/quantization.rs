//! The `quantization` section of an MLX model's `config.json`.
//!
//! ```json
//! "quantization": {
//!     "group_size": 64, "bits": 4, "mode": "affine",
//!     "model.embed_tokens": { "group_size": 64, "bits": 8 },
//!     "model.layers.0.mlp.down_proj": false
//! }
//! ```
//!
//! A layer's own entry replaces the default; `false` leaves that layer unquantised.

use super::error::{FolderProblem, QuantizationFault};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Bits and group size of an affine quantisation: `value = scale * q + bias`, one scale and one bias
/// for each group of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Bits of a packed value: 2, 3, 4, 5, 6 or 8.
    pub bits: u32,
    /// Values that share a scale and a bias: 32, 64 or 128.
    pub group_size: u32,
}

/// How the layers of a model are quantised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantization {
    /// What holds for a layer without an entry of its own.
    pub default: Affine,
    /// Layers with an entry of their own; `None` is not quantised.
    pub layers: HashMap<String, Option<Affine>>,
}

/// Both keys are in use; MLX writes the first, and often a copy under the second.
const KEYS: [&str; 2] = ["quantization", "quantization_config"];

impl Quantization {
    /// What `config.json` says; `None` for a model that is not quantised.
    pub(crate) fn from_config(config: &Value) -> Result<Option<Quantization>, FolderProblem> {
        let section = KEYS
            .iter()
            .find_map(|key| Some((*key, config.get(key).filter(|v| !v.is_null())?)));
        let Some((key, section)) = section else {
            return Ok(None);
        };
        let fields = object(key, section)?;
        refuse_other_methods(key, fields)?;
        let default = affine(key, fields, None)?;
        let mut layers = HashMap::new();
        for (layer, value) in fields
            .iter()
            .filter(|(_, v)| v.is_object() || **v == Value::Bool(false))
        {
            let path = format!("{key}.{layer}");
            let own = match value {
                Value::Bool(_) => None,
                _ => Some(affine(&path, object(&path, value)?, Some(default))?),
            };
            layers.insert(layer.clone(), own);
        }
        Ok(Some(Quantization { default, layers }))
    }

    /// How a layer is quantised, if it is. The layer's name is its weight's without `.weight`.
    pub fn of_layer(&self, layer: &str) -> Option<Affine> {
        match self.layers.get(layer) {
            Some(own) => *own,
            None => Some(self.default),
        }
    }
}

fn problem(key: &str, fault: QuantizationFault) -> FolderProblem {
    FolderProblem::Quantization {
        key: key.to_string(),
        fault,
    }
}

fn object<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, FolderProblem> {
    let object = value.as_object();
    object.ok_or_else(|| problem(key, QuantizationFault::NotAnObject))
}

/// GPTQ, AWQ and others name themselves under the same key.
fn refuse_other_methods(key: &str, fields: &Map<String, Value>) -> Result<(), FolderProblem> {
    match fields.get("quant_method") {
        None => Ok(()),
        Some(method) => {
            let found = method.as_str().map_or(method.to_string(), str::to_string);
            Err(problem(key, QuantizationFault::Mode { found }))
        }
    }
}

/// Bits and group size; a layer's own entry may leave either to the default.
fn affine(
    key: &str,
    fields: &Map<String, Value>,
    default: Option<Affine>,
) -> Result<Affine, FolderProblem> {
    match fields.get("mode").map(|mode| mode.as_str()) {
        None | Some(Some("affine")) => {}
        Some(mode) => {
            let found = mode.unwrap_or("?").to_string();
            return Err(problem(key, QuantizationFault::Mode { found }));
        }
    }
    let number = |field: &'static str, fallback: Option<u32>, allowed: &[u32], text| {
        let found = match (fields.get(field), fallback) {
            (None, Some(fallback)) => return Ok(fallback),
            (None, None) => "missing".to_string(),
            (Some(value), _) => match allowed
                .iter()
                .find(|n| value.as_u64() == Some(u64::from(**n)))
            {
                Some(number) => return Ok(*number),
                None => value.to_string(),
            },
        };
        Err(problem(
            key,
            QuantizationFault::Number {
                field,
                found,
                allowed: text,
            },
        ))
    };
    Ok(Affine {
        bits: number(
            "bits",
            default.map(|d| d.bits),
            &[2, 3, 4, 5, 6, 8],
            "2, 3, 4, 5, 6 and 8",
        )?,
        group_size: number(
            "group_size",
            default.map(|d| d.group_size),
            &[32, 64, 128],
            "32, 64 and 128",
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_layer_may_have_its_own_numbers_or_none() {
        let config = json!({ "quantization": {
            "group_size": 64, "bits": 4, "mode": "affine",
            "model.embed_tokens": { "bits": 8 },
            "lm_head": false,
        }});
        let found = Quantization::from_config(&config).unwrap().unwrap();
        let affine = |bits| {
            Some(Affine {
                bits,
                group_size: 64,
            })
        };
        assert_eq!(found.of_layer("model.layers.0.mlp.up_proj"), affine(4));
        assert_eq!(found.of_layer("model.embed_tokens"), affine(8));
        assert_eq!(found.of_layer("lm_head"), None);
    }

    #[test]
    fn a_plain_model_has_none() {
        assert_eq!(Quantization::from_config(&json!({})).unwrap(), None);
        let null = json!({ "quantization_config": null });
        assert_eq!(Quantization::from_config(&null).unwrap(), None);
    }

    /// Each of these would be decoded to noise if it were accepted.
    #[test]
    fn what_is_not_affine_is_refused_by_name() {
        for (config, word) in [
            (
                json!({"quantization_config": {"quant_method": "gptq", "bits": 4}}),
                "gptq",
            ),
            (
                json!({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}),
                "mxfp4",
            ),
            (
                json!({"quantization": {"group_size": 64, "bits": 7}}),
                "bits",
            ),
            (
                json!({"quantization": {"group_size": 48, "bits": 4}}),
                "group_size",
            ),
            (json!({"quantization": {"bits": 4}}), "missing"),
            (json!({"quantization": 4}), "object"),
            (
                json!({"quantization": {"group_size": 64, "bits": 4, "x": {"bits": 9}}}),
                "quantization.x",
            ),
        ] {
            let error = Quantization::from_config(&config).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
