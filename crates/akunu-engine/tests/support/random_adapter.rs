//! Adapters with random numbers for the small model, written both ways, and the model that they are merged into.

use std::path::{Path, PathBuf};

use akunu_gguf::{GgufFile, GgufHeader, quant};
use akunu_kernels::case::Rng;
use akunu_types::DType;
use serde_json::{Value, json};

/// An adapter of the small model.
pub struct RandomAdapter {
    pub arch: &'static str,
    pub rank: usize,
    pub alpha: f32,
    /// Elements of a head: rows of queries and keys come in another order outside of GGUF.
    pub head_dim: usize,
    parts: Vec<Part>,
}

struct Part {
    /// GGUF's name of the weight.
    weight: String,
    rows: usize,
    cols: usize,
    /// (rank, cols).
    a: Vec<f32>,
    /// (rows, rank).
    b: Vec<f32>,
}

/// The modules that are adapted, by GGUF's name and by Hugging Face's.
const MODULES: [(&str, &str); 7] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

impl RandomAdapter {
    /// One for every matrix of the model in this file but the embedding, with numbers that change the logits well.
    pub fn for_model(model: &Path, head_dim: usize, rank: usize, seed: u64) -> RandomAdapter {
        let file = GgufFile::open(model).expect("a model");
        let arch = file.metadata().string("general.architecture");
        let arch = arch.expect("a string").expect("there");
        let mut rng = Rng::new(seed);
        let is_adapted = |name: &str| {
            MODULES
                .iter()
                .any(|(gguf, _)| name.contains(&format!(".{gguf}.weight")))
        };
        let tensors = file.tensors().iter();
        let parts = tensors
            .filter(|tensor| is_adapted(&tensor.name))
            .map(|tensor| {
                let (rows, cols) = (tensor.dims.rows(), tensor.dims.cols());
                Part {
                    weight: tensor.name.clone(),
                    rows,
                    cols,
                    a: rng.floats(rank * cols, 1.0 / (cols as f32).sqrt()),
                    b: rng.floats(rows * rank, 0.5 / (rank as f32).sqrt()),
                }
            })
            .collect();
        RandomAdapter {
            arch: ["llama", "qwen2", "qwen3", "qwen3moe", "gemma3"]
                .into_iter()
                .find(|name| *name == arch)
                .expect("one of the small models"),
            rank,
            alpha: 2.0 * rank as f32,
            head_dim,
            parts,
        }
    }

    /// Leaves some weights as they are.
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> RandomAdapter {
        self.parts.retain(|part| keep(&part.weight));
        self
    }

    /// As a GGUF file in `folder`.
    pub fn write_gguf(&self, folder: &Path) -> PathBuf {
        self.write_gguf_with(folder, |_| {})
    }

    /// The same, with something changed in the header.
    pub fn write_gguf_with(&self, folder: &Path, change: impl FnOnce(&mut GgufHeader)) -> PathBuf {
        let path = folder.join(format!("adapter-{}.gguf", self.rank));
        let mut header = GgufHeader::new();
        header.set("general.type", "adapter");
        header.set("adapter.type", "lora");
        header.set("general.architecture", self.arch);
        header.set("adapter.lora.alpha", &self.alpha);
        change(&mut header);
        let rank = self.rank as u64;
        for part in &self.parts {
            let (rows, cols) = (part.rows as u64, part.cols as u64);
            header.tensor(
                &format!("{}.lora_a", part.weight),
                &[cols, rank],
                DType::F32,
            );
            header.tensor(
                &format!("{}.lora_b", part.weight),
                &[rank, rows],
                DType::F32,
            );
        }
        let mut writer = header.create(&path).expect("a header");
        for part in &self.parts {
            for (half, values) in [("lora_a", &part.a), ("lora_b", &part.b)] {
                let name = format!("{}.{half}", part.weight);
                let bytes = bytemuck::cast_slice(values);
                writer.write(&name, bytes).expect("written");
            }
        }
        writer.finish().expect("written");
        path
    }

    /// As a folder that PEFT could have written, with rows in the order in which models are trained.
    pub fn write_peft(&self, folder: &Path) -> PathBuf {
        self.write_peft_with(folder, |_| {})
    }

    /// The same, with something changed in the config.
    pub fn write_peft_with(&self, folder: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
        let mut config = json!({
            "peft_type": "LORA", "r": self.rank, "lora_alpha": self.alpha, "bias": "none",
            "use_dora": false, "modules_to_save": null, "alpha_pattern": {}, "rank_pattern": {},
        });
        change(&mut config);
        std::fs::write(folder.join("adapter_config.json"), config.to_string()).expect("written");
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for part in &self.parts {
            let b = self.trained_order(part);
            let name = peft_name(&part.weight);
            let halves = [
                ("lora_A", [self.rank, part.cols], &part.a),
                ("lora_B", [part.rows, self.rank], &b),
            ];
            for (half, shape, values) in halves {
                let begin = data.len();
                data.extend_from_slice(bytemuck::cast_slice(values));
                let entry =
                    json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
                header.insert(format!("base_model.model.{name}.{half}.weight"), entry);
            }
        }
        let header = Value::Object(header).to_string();
        let len = (header.len() as u64).to_le_bytes();
        let bytes = [&len, header.as_bytes(), &data].concat();
        std::fs::write(folder.join("adapter_model.safetensors"), bytes).expect("written");
        folder.to_path_buf()
    }

    /// B with the rows of queries and keys as they are trained: where GGUF has neighbours, the halves of a head.
    fn trained_order(&self, part: &Part) -> Vec<f32> {
        let is_turned = part.weight.contains("attn_q.") || part.weight.contains("attn_k.");
        if self.arch != "llama" || !is_turned {
            return part.b.clone();
        }
        let half = self.head_dim / 2;
        let mut b = vec![0.0; part.b.len()];
        for (row, values) in part.b.chunks_exact(self.rank).enumerate() {
            let (head, element) = (row / self.head_dim, row % self.head_dim);
            let trained = head * self.head_dim + element % 2 * half + element / 2;
            b[trained * self.rank..][..self.rank].copy_from_slice(values);
        }
        b
    }

    /// The model of a file with `W + scale * alpha / rank * B A` for each weight, all in f32.
    pub fn merge(&self, model: &Path, scale: f32, to: &Path) {
        let file = GgufFile::open(model).expect("a model");
        let mut header = GgufHeader::new();
        header.copy_metadata(file.metadata());
        for tensor in file.tensors() {
            let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
            header.tensor(&tensor.name, &dims, DType::F32);
        }
        let mut writer = header.create(to).expect("a header");
        for tensor in file.tensors() {
            let view = file.view(tensor).expect("there");
            let mut values = vec![0f32; tensor.dims.n_elements()];
            quant::dequantise(tensor.dtype, view.bytes, &mut values).expect("numbers");
            if let Some(part) = self.parts.iter().find(|part| part.weight == tensor.name) {
                part.add_to(
                    &mut values,
                    scale * self.alpha / self.rank as f32,
                    self.rank,
                );
            }
            let bytes = bytemuck::cast_slice(&values);
            writer.write(&tensor.name, bytes).expect("written");
        }
        writer.finish().expect("written");
    }
}

impl Part {
    /// Adds `factor * B A`, summed in f64.
    fn add_to(&self, weight: &mut [f32], factor: f32, rank: usize) {
        for (row, b) in self.b.chunks_exact(rank).enumerate() {
            for col in 0..self.cols {
                let terms = b.iter().enumerate();
                let sum: f64 = terms
                    .map(|(r, b)| f64::from(*b) * f64::from(self.a[r * self.cols + col]))
                    .sum();
                weight[row * self.cols + col] += (f64::from(factor) * sum) as f32;
            }
        }
    }
}

/// `blk.0.attn_q.weight` as PEFT calls its module.
fn peft_name(weight: &str) -> String {
    let parts: Vec<&str> = weight.split('.').collect();
    let module = MODULES.iter().find(|(gguf, _)| *gguf == parts[2]);
    let (_, module) = module.expect("one of the modules");
    format!("model.layers.{}.{module}", parts[1])
}
