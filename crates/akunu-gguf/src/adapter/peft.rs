//! Adapters in safetensors, as PEFT writes them: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! ```text
//! base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight   (rank, inputs)
//! base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight   (outputs, rank)
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{AdapterError, AdapterFile, AdapterProblem, Half, Pair, checked_alpha};
use crate::mmap::FileBytes;
use crate::safetensors::read_header;
use crate::store::canonical_from_hugging_face;

const CONFIG: &str = "adapter_config.json";
/// The file with the matrices.
pub(super) const WEIGHTS: &str = "adapter_model.safetensors";
/// Real configs have a kilobyte or two.
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// What PEFT puts before the names of the model.
const PREFIX: &str = "base_model.model.";

/// What the config says.
struct Config {
    rank: usize,
    alpha: f64,
    /// Alphas of modules that have their own: the end of a module's name, and alpha.
    alphas: Vec<(String, f64)>,
    has_other_ranks: bool,
    /// Alpha is divided by the root of the rank.
    by_root: bool,
}

pub(super) fn open(folder: &Path, weights: &Path) -> Result<AdapterFile, AdapterError> {
    let config_path = folder.join(CONFIG);
    let config = Config::read(&config_path).map_err(|problem| problem.in_file(&config_path))?;
    let pairs = pairs(weights).map_err(|problem| problem.in_file(weights))?;
    AdapterFile::assemble(weights, None, pairs, |tensor, rank| {
        config.scaling(tensor, rank)
    })
}

fn pairs(path: &Path) -> Result<BTreeMap<String, Pair>, AdapterProblem> {
    let file = Arc::new(FileBytes::map(path)?);
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for tensor in read_header(&file)? {
        let name = tensor.name.clone();
        let (weight, is_a) = named(&name)?;
        let Some(dtype) = tensor.dtype() else {
            let why = format!("its type is {}", tensor.element);
            return Err(AdapterProblem::Numbers { tensor: name, why });
        };
        let pair = pairs.entry(weight).or_default();
        let half = if is_a { &mut pair.a } else { &mut pair.b };
        let found = Half {
            tensor: tensor.name,
            dims: tensor.dims,
            dtype,
            file: Arc::clone(&file),
            range: tensor.range,
        };
        if half.replace(found).is_some() {
            return Err(AdapterProblem::Twice(name));
        }
    }
    Ok(pairs)
}

/// The canonical name of the weight that a tensor is for, and whether it is A.
fn named(tensor: &str) -> Result<(String, bool), AdapterProblem> {
    if tensor.contains(".lora_embedding_") {
        let what = format!("changes the token embedding (`{tensor}`)");
        return Err(AdapterProblem::Unsupported(what));
    }
    if tensor.contains(".lora_magnitude_vector") {
        return Err(AdapterProblem::Unsupported("is a DoRA adapter".into()));
    }
    let found = module(tensor).and_then(|(module, is_a)| {
        // Matrices have one name, whatever norms are around them.
        let weight = canonical_from_hugging_face(&format!("{module}.weight"), false)?;
        Some((weight, is_a))
    });
    found.ok_or_else(|| AdapterProblem::Tensor(tensor.to_string()))
}

/// The module that a tensor is for, as the model calls it, and whether the tensor is A.
fn module(tensor: &str) -> Option<(&str, bool)> {
    let name = tensor.strip_prefix(PREFIX).unwrap_or(tensor);
    let name = name.strip_suffix(".weight")?;
    // Adapters that were saved from memory have a name of their own in between.
    let name = name.strip_suffix(".default").unwrap_or(name);
    let (module, half) = name.rsplit_once('.')?;
    match half {
        "lora_A" => Some((module, true)),
        "lora_B" => Some((module, false)),
        _ => None,
    }
}

impl Config {
    fn read(path: &Path) -> Result<Config, AdapterProblem> {
        if !path.exists() {
            return Err(AdapterProblem::NoConfig);
        }
        let file = FileBytes::map(path)?;
        let field = |fault: String| AdapterProblem::Field {
            field: CONFIG,
            fault,
        };
        if file.len() > MAX_CONFIG_BYTES {
            return Err(field(format!("has {} bytes", file.len())));
        }
        let parsed: Value = serde_json::from_slice(&file)
            .map_err(|error| field(format!("is not valid JSON: {error}")))?;
        match parsed {
            Value::Object(object) => Config::parse(&object),
            _ => Err(field("is no JSON object".into())),
        }
    }

    fn parse(object: &Map<String, Value>) -> Result<Config, AdapterProblem> {
        let kind = object.get("peft_type").and_then(Value::as_str);
        if kind != Some("LORA") {
            let kind = kind.unwrap_or("unknown");
            let what = format!("is an adapter of the type `{kind}`");
            return Err(AdapterProblem::Unsupported(what));
        }
        refuse_unsupported(object)?;
        let Some(rank) = object.get("r").and_then(Value::as_u64) else {
            return Err(AdapterProblem::Field {
                field: "r",
                fault: "is missing, or no whole number: it is the rank".into(),
            });
        };
        if rank == 0 {
            return Err(AdapterProblem::NoRank);
        }
        let alpha = object.get("lora_alpha").and_then(Value::as_f64);
        let alpha = alpha.ok_or(AdapterProblem::NoAlpha("lora_alpha"))?;
        Ok(Config {
            rank: rank as usize,
            alpha: checked_alpha("lora_alpha", alpha)?,
            alphas: alphas(object)?,
            has_other_ranks: !is_empty(object.get("rank_pattern")),
            by_root: is_true(object, "use_rslora"),
        })
    }

    /// The factor of a pair.
    fn scaling(&self, tensor: &str, rank: usize) -> Result<f32, AdapterProblem> {
        if rank != self.rank && !self.has_other_ranks {
            return Err(AdapterProblem::Field {
                field: "r",
                fault: format!("is {}, but `{tensor}` has the rank {rank}", self.rank),
            });
        }
        let name = module(tensor).map_or("", |(module, _)| module);
        let is_its = |(end, _): &&(String, f64)| {
            name == end
                || name
                    .strip_suffix(end.as_str())
                    .is_some_and(|rest| rest.ends_with('.'))
        };
        let alpha = self
            .alphas
            .iter()
            .find(is_its)
            .map_or(self.alpha, |own| own.1);
        let rank = rank as f64;
        let divisor = if self.by_root { rank.sqrt() } else { rank };
        Ok((alpha / divisor) as f32)
    }
}

/// Alphas of modules that have their own. PEFT takes the keys for regular expressions; plain names are what people write.
fn alphas(object: &Map<String, Value>) -> Result<Vec<(String, f64)>, AdapterProblem> {
    let Some(Value::Object(pattern)) = object.get("alpha_pattern") else {
        return Ok(Vec::new());
    };
    let one = |(name, alpha): (&String, &Value)| {
        let is_plain = name
            .chars()
            .all(|c| c.is_alphanumeric() || "_.".contains(c));
        let alpha = alpha.as_f64().filter(|_| is_plain);
        let alpha = alpha.ok_or_else(|| {
            AdapterProblem::Unsupported(format!("has the key `{name}` in `alpha_pattern`"))
        })?;
        Ok((name.clone(), checked_alpha("alpha_pattern", alpha)?))
    };
    pattern.iter().map(one).collect()
}

fn refuse_unsupported(object: &Map<String, Value>) -> Result<(), AdapterProblem> {
    let unsupported = |what: &str| Err(AdapterProblem::Unsupported(what.into()));
    if is_true(object, "use_dora") {
        return unsupported("is a DoRA adapter (`use_dora`)");
    }
    if is_true(object, "fan_in_fan_out") {
        return unsupported("has turned matrices (`fan_in_fan_out`)");
    }
    if !is_empty(object.get("modules_to_save")) {
        return unsupported("replaces whole modules (`modules_to_save`)");
    }
    match object.get("bias").and_then(Value::as_str) {
        None | Some("none") => Ok(()),
        Some(_) => unsupported("changes biases (`bias`)"),
    }
}

fn is_true(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

/// Whether a field is not there, or has nothing in it.
fn is_empty(field: Option<&Value>) -> bool {
    match field {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(object)) => object.is_empty(),
        Some(_) => false,
    }
}
