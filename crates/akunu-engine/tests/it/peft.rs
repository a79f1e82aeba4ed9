//! LoRA adapters against `peft`, which computed the logits of `fixtures/adapters` with adapters that it saved itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use akunu_engine::{Adapters, Model, SessionOptions};
use akunu_gguf::GgufHeader;
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_types::DType;
use serde::Deserialize;
use serde_json::Value;

use crate::support::exact_cpu::cpu;
use crate::support::files::{safetensors, write_folder, write_gguf};
use crate::support::fixture::{Fixture, uniform};

/// What `fixtures/make_adapter_fixtures.py` recorded of an adapter.
#[derive(Deserialize)]
struct Recorded {
    /// The model in `fixtures/transformers`.
    model: String,
    /// `adapter_config.json`, as `peft` saved it.
    adapter_config: Value,
    /// Shapes by name, as `peft` saved them.
    tensors: BTreeMap<String, Vec<u64>>,
    /// What llama.cpp's converter made of it; nothing where it cannot say the same.
    gguf_tensors: Vec<Converted>,
    /// The logits after so many tokens.
    logits: BTreeMap<usize, Vec<f32>>,
}

#[derive(Deserialize)]
struct Converted {
    name: String,
    /// From the innermost dimension.
    shape: Vec<u64>,
    /// The sum of all words, each times its number from 1.
    checksum: u32,
}

impl Recorded {
    fn read(name: &str) -> Recorded {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/adapters");
        let text = std::fs::read_to_string(format!("{fixtures}/{name}.json")).expect("a fixture");
        serde_json::from_str(&text).expect("a whole fixture")
    }

    /// The numbers of a tensor of the adapter.
    fn values(&self, name: &str) -> Vec<f32> {
        let n: u64 = self.tensors[name].iter().product();
        (1..=n).map(|i| 0.25 * uniform(name, i)).collect()
    }

    /// The folder that `peft` saved.
    fn write_peft(&self, folder: &Path) -> PathBuf {
        let path = folder.join("adapter");
        std::fs::create_dir(&path).expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(path.join(name), bytes).expect("written");
        };
        let config = self.adapter_config.to_string();
        write("adapter_config.json", config.as_bytes());
        let tensors = self.tensors.iter();
        let tensors = tensors.map(|(name, shape)| (&name[..], &shape[..], self.values(name)));
        write("adapter_model.safetensors", &safetensors(tensors));
        path
    }

    /// The numbers of a tensor as the converter has written them, which the checksum proves.
    fn converted(&self, model: &Fixture, tensor: &Converted) -> Vec<f32> {
        let (weight, half) = tensor.name.rsplit_once(".lora_").expect("a half");
        let weight = model.weights.iter().find(|of| of.gguf == weight);
        let weight = weight.expect("a weight of the model");
        let module = weight.name.trim_end_matches(".weight");
        let half = half.to_uppercase();
        let values = self.values(&format!("base_model.model.{module}.lora_{half}.weight"));
        let values = match &half[..] {
            "B" => weight.gguf_rows(values, tensor.shape[0] as usize),
            _ => values,
        };
        let words = values.iter().map(|value| value.to_bits());
        let terms = words.zip(1u32..).map(|(word, i)| word.wrapping_mul(i));
        let checksum = terms.fold(0, u32::wrapping_add);
        assert_eq!(checksum, tensor.checksum, "{}", tensor.name);
        values
    }

    /// The file that the converter wrote.
    fn write_gguf(&self, model: &Fixture, folder: &Path) -> PathBuf {
        let alpha = self.adapter_config["lora_alpha"]
            .as_f64()
            .expect("a number");
        let mut header = GgufHeader::new();
        header.set("general.type", "adapter");
        header.set("adapter.type", "lora");
        header.set("general.architecture", model.arch.as_str());
        header.set("adapter.lora.alpha", &(alpha as f32));
        for tensor in &self.gguf_tensors {
            header.tensor(&tensor.name, &tensor.shape, DType::F32);
        }
        let path = folder.join("adapter.gguf");
        let mut writer = header.create(&path).expect("a header");
        for tensor in &self.gguf_tensors {
            let values = self.converted(model, tensor);
            let bytes = bytemuck::cast_slice(&values);
            writer.write(&tensor.name, bytes).expect("written");
        }
        writer.finish().expect("written");
        path
    }

    /// The largest error after any of the recorded beginnings, as a share of the logits' power.
    fn worst_error(&self, model: &Model, tokens: &[u32], adapters: &Adapters) -> f64 {
        let options = SessionOptions {
            context: Some(64),
            chunk: 7,
            ..SessionOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        session.set_adapters(adapters).expect("of this model");
        let mut worst: f64 = 0.0;
        for (&n, wanted) in &self.logits {
            session.feed(&tokens[..n]).expect("fits");
            let found = session.logits().expect("there are some");
            worst = worst.max(nmse(&found, wanted));
        }
        worst
    }
}

/// As for models without adapters: both round keys and values to halves, and sums in another order may put a few on the
/// other side.
const BOUND: f64 = 5e-7;

fn devices() -> [Box<dyn Device>; 2] {
    [Box::new(TwinDevice::new()), cpu()]
}

fn agrees(name: &str) {
    let recorded = Recorded::read(name);
    let model = Fixture::read("transformers", &recorded.model);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut adapters = vec![recorded.write_peft(folder.path())];
    if !recorded.gguf_tensors.is_empty() {
        adapters.push(recorded.write_gguf(&model, folder.path()));
    }
    let models = [
        write_gguf(&model, folder.path()),
        write_folder(&model, folder.path()),
    ];
    for path in &models {
        for device in devices() {
            let what = format!("{name}, {}, {}", path.display(), device.name());
            let loaded = Model::load(path, device).expect("a whole model");
            for adapter in &adapters {
                let of = loaded.load_adapter(adapter).expect("an adapter");
                let with = Adapters::none().with(&of, 1.0);
                let error = recorded.worst_error(&loaded, &model.tokens, &with);
                assert!(
                    error < BOUND,
                    "{what}, {}: NMSE {error:e}",
                    adapter.display()
                );
            }
            let without = recorded.worst_error(&loaded, &model.tokens, &Adapters::none());
            assert!(without > 0.1, "{what}: the adapter changes {without:e}");
        }
    }
}

/// All matrices of a Llama-like model, from `peft`'s folder and from llama.cpp's conversion. Fails when a product has not its
/// adapter, when rows of queries and keys come in the wrong order, or when the factor is not `alpha / rank`.
#[test]
fn an_adapter_of_all_matrices_agrees_with_peft() {
    agrees("mistral");
}

/// Fails when ranks and alphas of single modules, or the factor `alpha / sqrt(rank)`, are not `peft`'s.
#[test]
fn an_adapter_with_ranks_and_alphas_of_its_own_agrees_with_peft() {
    agrees("gemma");
}
