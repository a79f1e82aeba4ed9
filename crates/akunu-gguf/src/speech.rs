//! The weights of a speech model (Whisper) under one set of names, from either kind of folder.
//!
//! The names are those of Hugging Face without `model.`: `encoder.layers.0.self_attn.q_proj.weight`. CTranslate2 has
//! other names and keeps q, k and v of self-attention in one matrix, k and v of cross-attention in another; parts of
//! these are runs of rows, which are found where they lie ([`names`]).

mod error;
mod names;

pub use error::SpeechError;

use error::SpeechProblem;

use crate::ctranslate2::Ct2File;
use crate::safetensors::ModelFolder;
use akunu_types::DType;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file of weights in a CTranslate2 folder.
const CT2_FILE: &str = "model.bin";
/// What CTranslate2 calls Whisper.
const CT2_SPEC: &str = "WhisperSpec";
/// Real configs have a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// An open folder with the weights of a speech model.
#[derive(Debug)]
pub struct SpeechFolder {
    path: PathBuf,
    config: Value,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Ct2(Ct2File),
    HuggingFace(Box<ModelFolder>),
}

/// A weight and its bytes, which may lie at any address.
#[derive(Clone, Debug)]
pub struct SpeechTensor<'a> {
    /// Its dimensions, the slowest first.
    pub dims: Vec<usize>,
    /// The type of its elements: f32, f16 or bf16.
    pub dtype: DType,
    /// The elements.
    pub bytes: &'a [u8],
}

impl SpeechFolder {
    /// Whether a speech model lies at a path: a folder with CTranslate2's file, which can be nothing else, or one of
    /// Hugging Face whose config says so.
    pub fn is_at(path: &Path) -> bool {
        let is_whisper = || {
            json(&path.join("config.json"))
                .ok()?
                .map(|it| it["model_type"] == "whisper")
        };
        is_ctranslate2(path) || is_whisper() == Some(true)
    }

    /// Opens a folder of CTranslate2 (`model.bin`) or of Hugging Face (`config.json` and safetensors).
    pub fn open(path: impl AsRef<Path>) -> Result<SpeechFolder, SpeechError> {
        let path = path.as_ref();
        if !is_ctranslate2(path) {
            let folder = ModelFolder::open(path)?;
            return Ok(SpeechFolder {
                path: path.to_path_buf(),
                config: folder.config().clone(),
                source: Source::HuggingFace(Box::new(folder)),
            });
        }
        let file = path.join(CT2_FILE);
        let open =
            Ct2File::open(&file).map_err(|fault| SpeechProblem::Ct2(fault).in_file(&file))?;
        if open.spec() != CT2_SPEC {
            let spec = open.spec().to_string();
            return Err(SpeechProblem::Spec(spec).in_file(&file));
        }
        Ok(SpeechFolder {
            path: path.to_path_buf(),
            config: json(&path.join("config.json"))?.unwrap_or(Value::Null),
            source: Source::Ct2(open),
        })
    }

    /// The folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The container, in a word that people know.
    pub fn container(&self) -> &'static str {
        match &self.source {
            Source::Ct2(_) => "CTranslate2",
            Source::HuggingFace(_) => "safetensors",
        }
    }

    /// `config.json`; null in a CTranslate2 folder that has none.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// `generation_config.json` where there is one, otherwise the config: tokens that are never said, and the heads
    /// that tell when a word is spoken.
    pub fn generation_config(&self) -> Result<Value, SpeechError> {
        let found = json(&self.path.join("generation_config.json"))?;
        Ok(found.unwrap_or_else(|| self.config.clone()))
    }

    /// Heads of attention, where the container itself says so.
    pub fn n_heads(&self) -> Option<u32> {
        let Source::Ct2(file) = &self.source else {
            return self.config["encoder_attention_heads"]
                .as_u64()
                .and_then(|n| u32::try_from(n).ok());
        };
        let bytes = file.bytes(file.tensor("encoder/num_heads")?);
        match *bytes {
            [low, high] => Some(u16::from_le_bytes([low, high]).into()),
            [one] => Some(one.into()),
            _ => None,
        }
    }

    /// The weight of this name.
    pub fn tensor(&self, name: &str) -> Result<SpeechTensor<'_>, SpeechError> {
        let found = match &self.source {
            Source::Ct2(file) => in_ct2(file, name)?,
            Source::HuggingFace(folder) => in_folder(folder, name),
        };
        let missing = || SpeechProblem::Missing(name.to_string());
        let tensor = found.ok_or_else(|| missing().in_file(&self.path))?;
        if !matches!(tensor.dtype, DType::F32 | DType::F16 | DType::BF16) {
            let problem = SpeechProblem::Type {
                name: name.to_string(),
                dtype: tensor.dtype,
            };
            return Err(problem.in_file(&self.path));
        }
        Ok(tensor)
    }
}

fn is_ctranslate2(path: &Path) -> bool {
    path.join(CT2_FILE).is_file()
}

fn in_ct2<'a>(file: &'a Ct2File, name: &str) -> Result<Option<SpeechTensor<'a>>, SpeechError> {
    let Some(place) = names::in_ct2(name) else {
        return Ok(None);
    };
    let Some(tensor) = file.tensor(&place.tensor) else {
        return Ok(None);
    };
    let mut dims: Vec<usize> = tensor.dims.iter().map(|&dim| dim as usize).collect();
    let mut bytes = file.bytes(tensor);
    if place.of > 1 {
        let rows = dims.first_mut();
        let Some(rows) = rows.filter(|rows| rows.is_multiple_of(place.of)) else {
            return Err(SpeechProblem::Fused(place.tensor).in_file(Path::new(CT2_FILE)));
        };
        *rows /= place.of;
        let size = bytes.len() / place.of;
        bytes = &bytes[place.part * size..][..size];
    }
    Ok(Some(SpeechTensor {
        dims,
        dtype: tensor.dtype,
        bytes,
    }))
}

fn in_folder<'a>(folder: &'a ModelFolder, name: &str) -> Option<SpeechTensor<'a>> {
    let prefixed = format!("model.{name}");
    let found = folder.tensor(&prefixed).or_else(|| folder.tensor(name));
    let (info, span) = found?;
    Some(SpeechTensor {
        dims: info.dims.as_slice().iter().rev().copied().collect(),
        dtype: info.dtype()?,
        bytes: span.bytes,
    })
}

/// A JSON file; `None` when there is no such file.
fn json(path: &Path) -> Result<Option<Value>, SpeechError> {
    let read = || {
        let about = match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        if about.len() > MAX_CONFIG_BYTES {
            return Err(SpeechProblem::JsonSize(about.len()));
        }
        let text = std::fs::read(path)?;
        Ok(Some(serde_json::from_slice(&text)?))
    };
    read().map_err(|problem| problem.in_file(path))
}
