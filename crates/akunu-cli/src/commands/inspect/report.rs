//! Everything that `inspect` says, as data: `--json` prints it as it is.

use super::attention::Attention;
use super::tower::Tower;
use super::{folder, gguf};
use crate::failure::Failure;
use crate::floor;
use akunu::SessionOptions;
use akunu_arch::{EncoderUse, Layer, Model};
use akunu_gguf::{Container, WeightStore};
use akunu_kernels::ChipConfig;
use akunu_types::{DType, KvFormat};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a model is and what it needs.
#[derive(Serialize)]
pub struct Report {
    pub path: String,
    pub format: String,
    pub file_bytes: u64,
    pub files: usize,
    pub description: Description,
    pub parameters: u64,
    pub tied_embeddings: bool,
    /// What an encoder gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder: Option<Encoder>,
    /// A vision tower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<Tower>,
    /// Why a vision tower that is alone in its file cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The layers that are alike, in the order of the first of each; empty for a model that cannot be run.
    pub layer_kinds: Vec<LayerKind>,
    pub weights: Weights,
    /// Absent for a model that keeps no keys and values, and for one that cannot be run.
    pub kv_cache: Option<KvCache>,
    /// Bytes of the state of a sequence of any length; absent for a model whose layers have no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_bytes: Option<u64>,
    /// How fast a chip could decode at best, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensors: Option<Vec<Tensor>>,
}

/// What the container says about the model. What it does not say is absent.
#[derive(Default, Serialize)]
pub struct Description {
    pub architecture: Option<String>,
    pub name: Option<String>,
    pub context_length: Option<u64>,
    pub layers: Option<u64>,
    pub embedding_length: Option<u64>,
    pub feed_forward_length: Option<u64>,
    pub attention: Option<Attention>,
    pub tokenizer: Option<Tokenizer>,
}

/// The vocabulary and what comes with it.
#[derive(Serialize)]
pub struct Tokenizer {
    pub model: Option<String>,
    pub pre: Option<String>,
    pub vocab_size: Option<u64>,
    pub chat_template: bool,
}

/// Layers that are alike.
#[derive(Serialize)]
pub struct LayerKind {
    /// How many.
    pub layers: usize,
    /// What one of them does.
    pub layer: String,
}

impl LayerKind {
    fn all(layers: &[Layer], mtp: Option<&Layer>) -> Vec<LayerKind> {
        let mut kinds: Vec<LayerKind> = Vec::new();
        for layer in layers.iter().map(ToString::to_string) {
            match kinds.iter_mut().find(|kind| kind.layer == layer) {
                Some(kind) => kind.layers += 1,
                None => kinds.push(LayerKind { layers: 1, layer }),
            }
        }
        if let Some(mtp) = mtp {
            let layer = format!("a block that guesses tokens (MTP): {mtp}");
            kinds.push(LayerKind { layers: 1, layer });
        }
        kinds
    }
}

/// The weights by type, most bytes first.
#[derive(Serialize)]
pub struct Weights {
    pub bytes: u64,
    /// Those that a token reads, where they are fewer because the model has experts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    pub types: Vec<TypeShare>,
}

/// The weights that a token reads.
#[derive(Serialize)]
pub struct Active {
    pub bytes: u64,
    pub parameters: u64,
}

/// How much of the model has one type.
#[derive(Serialize)]
pub struct TypeShare {
    #[serde(rename = "type")]
    pub dtype: &'static str,
    pub tensors: usize,
    pub parameters: u64,
    pub bytes: u64,
    /// Whether our kernels can multiply by it. Whole numbers are no weights, but positions and the like, and need not be.
    pub usable: bool,
}

/// Memory for keys and values, as a session allocates it.
#[derive(Serialize)]
pub struct KvCache {
    pub context: u32,
    /// The name of each format that the heads fit, and the bytes that it takes.
    pub bytes: BTreeMap<&'static str, u64>,
}

/// The floor of decoding: each weight is read once a token, so no chip is faster than its memory.
#[derive(Serialize)]
pub struct Floor {
    pub chip: String,
    pub bytes_per_token: u64,
    pub tokens_per_second: f64,
}

impl Floor {
    /// The floor with an empty cache.
    pub fn of(store: &WeightStore, chip: &ChipConfig) -> Floor {
        let bytes_per_token = floor::weight_bytes(store);
        Floor {
            chip: chip.name.clone(),
            bytes_per_token,
            tokens_per_second: 1.0 / chip.seconds_for(bytes_per_token),
        }
    }
}

/// One tensor.
#[derive(Serialize)]
pub struct Tensor {
    /// The name in the file.
    pub name: String,
    /// The canonical name; the same where there is none.
    pub weight: String,
    #[serde(rename = "type")]
    pub dtype: &'static str,
    /// Dimensions in ggml's order, the length of a row first.
    pub dims: Vec<usize>,
    pub bytes: u64,
}

/// What an encoder gives, where we can run it.
#[derive(Serialize)]
pub struct Encoder {
    /// How the vectors of a text's tokens become one.
    pub pooling: &'static str,
    /// Tokens of a text that it looks at.
    pub max_tokens: usize,
    /// Scores for a pair of texts; 0 for none.
    pub scores: u32,
}

impl Encoder {
    fn of(store: &WeightStore, config: &Model) -> Option<Encoder> {
        let usage = EncoderUse::of(store, config).ok().flatten()?;
        Some(Encoder {
            pooling: usage.pooling.name(),
            max_tokens: usage.max_tokens,
            scores: usage.n_labels,
        })
    }
}

impl Report {
    /// Reads the descriptions and adds up the tensors; touches no weight.
    pub fn new(store: &WeightStore, context: Option<u32>) -> Result<Report, Failure> {
        let (path, format, mut description) = match store.container() {
            Container::Gguf(file) => {
                let format = format!("GGUF v{}", file.version());
                (file.path(), format, gguf::describe(file.metadata())?)
            }
            Container::Folder(folder) => {
                let format = match folder.quantization() {
                    None => "safetensors".to_string(),
                    Some(quantization) => match &quantization.method {
                        None => "MLX safetensors".to_string(),
                        Some(method) => format!("safetensors ({method})"),
                    },
                };
                (folder.path(), format, folder::describe(folder))
            }
        };
        // What cannot be run can still be looked at.
        let config = Model::from_store(store).ok();
        if let (Some(attention), Some(config)) = (&mut description.attention, &config) {
            let windows = || config.windows().flatten();
            attention.window = attention.window.or(windows().min().map(u64::from));
            attention.windowed_layers = attention.window.map(|_| windows().count());
            let distances = config.embedding.distances.as_ref();
            attention.bias_distance = distances.map(|distances| distances.buckets.max_distance);
        }
        let config = config.as_ref();
        let (tower, unsupported) = match Tower::of(store) {
            None => (None, None),
            Some(Ok(tower)) => (Some(tower), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let layers = match (config, &tower) {
            (Some(config), _) => &config.layers[..],
            (None, Some((_, vision))) => &vision.layers[..],
            (None, None) => &[],
        };
        let mtp = config.and_then(|config| config.mtp.as_ref());
        Ok(Report {
            path: path.display().to_string(),
            format,
            file_bytes: store.parts().iter().map(|part| part.len() as u64).sum(),
            files: store.parts().len(),
            parameters: store.iter().map(|w| w.dims.n_elements() as u64).sum(),
            tied_embeddings: store.has_tied_embeddings(),
            layer_kinds: LayerKind::all(layers, mtp.map(|mtp| &mtp.layer)),
            vision: tower.map(|(tower, _)| tower),
            unsupported,
            weights: Weights::of(store, config),
            kv_cache: config.and_then(|config| KvCache::of(config, context)),
            state_bytes: config.map(Model::state_bytes).filter(|&bytes| bytes > 0),
            encoder: config.and_then(|config| Encoder::of(store, config)),
            description,
            floor: None,
            tensors: None,
        })
    }

    /// Whether the file is a vision tower and nothing else.
    pub fn is_tower(&self) -> bool {
        self.description.architecture.as_deref() == Some(gguf::TOWER)
    }

    /// Adds the list of tensors.
    pub fn list_tensors(&mut self, store: &WeightStore) {
        let tensors = store.iter().map(|weight| Tensor {
            name: weight.tensor.to_string(),
            weight: weight.name.to_string(),
            dtype: weight.dtype.name(),
            dims: weight.dims.as_slice().to_vec(),
            bytes: weight.size() as u64,
        });
        self.tensors = Some(tensors.collect());
    }
}

impl Weights {
    fn of(store: &WeightStore, config: Option<&Model>) -> Weights {
        let mut shares: BTreeMap<DType, TypeShare> = BTreeMap::new();
        for weight in store.iter() {
            let share = shares.entry(weight.dtype).or_insert(TypeShare {
                dtype: weight.dtype.name(),
                tensors: 0,
                parameters: 0,
                bytes: 0,
                usable: weight.dtype.is_usable() || is_whole(weight.dtype),
            });
            share.tensors += 1;
            share.parameters += weight.dims.n_elements() as u64;
            share.bytes += weight.size() as u64;
        }
        let mut types: Vec<TypeShare> = shares.into_values().collect();
        types.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        Weights {
            bytes: types.iter().map(|share| share.bytes).sum(),
            active: config
                .and_then(|config| config.active_weights(store, |_| true))
                .map(|active| Active {
                    bytes: active.bytes,
                    parameters: active.parameters,
                }),
            types,
        }
    }
}

fn is_whole(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

impl KvCache {
    /// What a session of this context needs, or one of the whole context that the model was trained for.
    fn of(config: &Model, context: Option<u32>) -> Option<KvCache> {
        if config.is_encoder() {
            return None;
        }
        let context = context.unwrap_or(config.context_length);
        let session = SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        };
        let mut bytes = BTreeMap::new();
        for format in KvFormat::ALL {
            if let Some(n) = session.kv_bytes(config, format) {
                bytes.insert(format.name(), n);
            }
        }
        (!bytes.is_empty()).then_some(KvCache { context, bytes })
    }
}
