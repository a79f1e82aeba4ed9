//! The `quantization` section of an MLX model's `config.json`, or that of `transformers`.
//!
//! ```json
//! "quantization": {
//!     "group_size": 64, "bits": 4, "mode": "affine",
//!     "model.embed_tokens": { "group_size": 64, "bits": 8 },
//!     "model.layers.0.mlp.down_proj": false
//! }
//! ```
//!
//! A layer's own entry replaces the default, and is affine where it names no mode; `false` leaves that layer unquantised.
//! `transformers` names a method: `"quant_method": "mxfp4"`, or one of [those](super::method) that are converted.

use super::error::{FolderProblem, QuantizationFault};
use super::float::FloatFormat;
use super::method::{self, Methods};
use super::mlx::Affine;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// How the values of a layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As integers.
    Affine(Affine),
    /// As 4-bit floats.
    Float(FloatFormat),
}

/// How the layers of a model are quantised.
#[derive(Clone, Debug)]
pub struct Quantization {
    /// The name that `transformers` has for it; none where MLX describes it.
    pub method: Option<String>,
    /// Applies to layers that have no entry in `layers`; `None` where the tensors say how they are quantised.
    pub default: Option<Packing>,
    /// Layers with an entry of their own; `None` is not quantised.
    pub layers: HashMap<String, Option<Packing>>,
    /// How tensors are read that are converted.
    pub(super) methods: Methods,
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
        let mut layers = HashMap::new();
        if let Some(method) = fields.get("quant_method") {
            return method_of_transformers(key, method, fields).map(Some);
        }
        let default = packing(key, fields, None)?;
        for (layer, value) in fields
            .iter()
            .filter(|(_, v)| v.is_object() || **v == Value::Bool(false))
        {
            let path = format!("{key}.{layer}");
            let own = match value {
                Value::Bool(_) => None,
                _ => Some(packing(&path, object(&path, value)?, Some(default))?),
            };
            layers.insert(layer.clone(), own);
        }
        Ok(Some(Quantization {
            method: None,
            default: Some(default),
            layers,
            methods: Vec::new(),
        }))
    }

    /// The name of the method, or of the format of 4-bit floats.
    pub fn name(&self) -> &str {
        match (&self.method, self.default) {
            (Some(method), _) => method,
            (None, Some(Packing::Float(format))) => format.name(),
            (None, _) => "mlx",
        }
    }

    /// How a layer is quantised, if it is. The layer's name is its weight's without `.weight`.
    pub fn of_layer(&self, layer: &str) -> Option<Packing> {
        match self.layers.get(layer) {
            Some(own) => *own,
            None => self.default,
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

/// What `transformers` names under the same key.
fn method_of_transformers(
    key: &str,
    method: &Value,
    fields: &Map<String, Value>,
) -> Result<Quantization, FolderProblem> {
    let name = method.as_str().unwrap_or_default();
    let (default, methods) = match method::find(name, key, fields) {
        Some(methods) => (None, methods?),
        None if name == FloatFormat::Mxfp4.name() => {
            (Some(Packing::Float(FloatFormat::Mxfp4)), Vec::new())
        }
        None => return Err(unsupported(key, method)),
    };
    Ok(Quantization {
        method: Some(name.to_string()),
        default,
        layers: HashMap::new(),
        methods,
    })
}

fn unsupported(key: &str, mode: &Value) -> FolderProblem {
    let found = mode.as_str().map_or(mode.to_string(), str::to_string);
    let floats = FloatFormat::ALL.into_iter().map(FloatFormat::name);
    let known = ["affine"].into_iter().chain(floats).chain(method::names());
    let known = known.map(|name| format!("`{name}`")).collect::<Vec<_>>();
    problem(
        key,
        QuantizationFault::Mode {
            found,
            known: known.join(", "),
        },
    )
}

/// How values are stored, by the mode; without one they are affine.
fn packing(
    key: &str,
    fields: &Map<String, Value>,
    default: Option<Packing>,
) -> Result<Packing, FolderProblem> {
    let Some(mode) = fields.get("mode").filter(|mode| *mode != "affine") else {
        let default = default.and_then(|packing| match packing {
            Packing::Affine(affine) => Some(affine),
            Packing::Float(_) => None,
        });
        return affine(key, fields, default).map(Packing::Affine);
    };
    let mut formats = FloatFormat::ALL.into_iter();
    let format = formats.find(|format| *mode == format.name());
    let format = format.ok_or_else(|| unsupported(key, mode))?;
    for (field, only) in [("bits", 4), ("group_size", format.group_size())] {
        if let Some(found) = fields.get(field).filter(|found| **found != only) {
            return Err(problem(
                key,
                QuantizationFault::Number {
                    field,
                    found: found.to_string(),
                    allowed: if only == 4 {
                        "4"
                    } else if only == 16 {
                        "16"
                    } else {
                        "32"
                    },
                },
            ));
        }
    }
    Ok(Packing::Float(format))
}

/// Bits and group size; a layer's own entry may leave either to the default.
fn affine(
    key: &str,
    fields: &Map<String, Value>,
    default: Option<Affine>,
) -> Result<Affine, FolderProblem> {
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
            Some(Packing::Affine(Affine {
                bits,
                group_size: 64,
            }))
        };
        assert_eq!(found.of_layer("model.layers.0.mlp.up_proj"), affine(4));
        assert_eq!(found.of_layer("model.embed_tokens"), affine(8));
        assert_eq!(found.of_layer("lm_head"), None);
    }

    #[test]
    fn a_plain_model_has_none() {
        let null = json!({ "quantization_config": null });
        for config in [json!({}), null] {
            assert!(Quantization::from_config(&config).unwrap().is_none());
        }
    }

    #[test]
    fn floats_are_named_by_the_mode_and_a_layer_without_one_is_affine() {
        let config = json!({ "quantization": {
            "group_size": 32, "bits": 4, "mode": "mxfp4",
            "a": { "group_size": 64, "bits": 8 },
            "b": { "mode": "nvfp4" },
        }});
        let found = Quantization::from_config(&config).unwrap().unwrap();
        let eight = Affine {
            bits: 8,
            group_size: 64,
        };
        assert_eq!(found.of_layer("a"), Some(Packing::Affine(eight)));
        assert_eq!(
            found.of_layer("b"),
            Some(Packing::Float(FloatFormat::Nvfp4))
        );
        assert_eq!(
            found.of_layer("c"),
            Some(Packing::Float(FloatFormat::Mxfp4))
        );
    }

    /// Each of these would be decoded to noise if it were accepted.
    #[test]
    fn other_formats_are_refused_by_name() {
        for (config, word) in [
            (
                json!({"quantization_config": {"quant_method": "hqq", "bits": 4}}),
                "`hqq` quantisation is not supported: `affine`, `mxfp4`, `nvfp4`, `awq`",
            ),
            (
                json!({"quantization_config": {"quant_method": "gptq", "bits": 5}}),
                "`bits` is 5",
            ),
            (
                json!({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": -2}}),
                "`group_size` is -2",
            ),
            (
                json!({"quantization_config": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}}),
                "marlin",
            ),
            (
                json!({"quantization_config": {"quant_method": "awq", "bits": 4, "version": "gemv"}}),
                "gemv",
            ),
            (
                json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}),
                "weight_block_size",
            ),
            (
                json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 128]}}),
                "weight_block_size",
            ),
            (
                json!({"quantization_config": {"quant_method": "compressed-tensors", "format": "marlin-24"}}),
                "marlin-24",
            ),
            (
                json!({"quantization_config": {"quant_method": 4}}),
                "`4` quantisation",
            ),
            (
                json!({"quantization": {"group_size": 32, "bits": 8, "mode": "mxfp8"}}),
                "mxfp8",
            ),
            (
                json!({"quantization": {"group_size": 32, "bits": 4, "mode": "nvfp4"}}),
                "`group_size` is 32: 16",
            ),
            (
                json!({"quantization": {"bits": 4, "mode": "mxfp4", "x": {"bits": 8}}}),
                "quantization.x",
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
