//! A small random model that reads images: a language model, and its vision tower in a second file.

use std::path::{Path, PathBuf};

use akunu_gguf::GgufHeader;
use akunu_types::DType;

/// Width of the language model.
const DIM: u64 = 40;
/// Width of the tower.
const TOWER_DIM: u64 = 48;
/// Pixels of a side of a tile, and of a patch.
const SIDE: u64 = 42;
const PATCH: u64 = 7;

/// A template that takes parts, as those of SmolVLM do.
pub const TEMPLATE: &str = "{% for message in messages %}{{ message.role }}:{% for part in message.content %}\
     {% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}</s>{% endfor %}assistant:";

/// Both files, in a folder that lives as long as this.
pub struct Pair {
    pub folder: tempfile::TempDir,
    pub model: PathBuf,
    pub tower: PathBuf,
}

/// A model with this template, and a tower whose rows have `out_dim` elements.
pub fn pair(template: &str, out_dim: u64) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny-vl.gguf");
    let tower = folder.path().join("mmproj-tiny-vl-f16.gguf");
    write_model(&model, template);
    write_tower(&tower, out_dim);
    Pair {
        folder,
        model,
        tower,
    }
}

/// A model and the tower for it.
pub fn fitting() -> Pair {
    pair(TEMPLATE, DIM)
}

/// Tensors of one file.
#[derive(Default)]
struct Weights {
    list: Vec<(String, Vec<u64>, Vec<f32>)>,
    state: u32,
}

impl Weights {
    /// Uniform numbers from -`scale` to `scale`, around `offset`; dimensions in ggml's order.
    fn add(&mut self, name: &str, dims: &[u64], scale: f32, offset: f32) {
        let n: u64 = dims.iter().product();
        let mut number = |_| {
            self.state = self
                .state
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            (f64::from(self.state) / 2f64.powi(31) - 1.0) as f32 * scale + offset
        };
        let values = (0..n).map(&mut number).collect();
        self.list.push((name.to_string(), dims.to_vec(), values));
    }

    fn matrix(&mut self, name: &str, n_in: u64, n_out: u64) {
        self.add(&format!("{name}.weight"), &[n_in, n_out], 0.25, 0.0);
    }

    fn linear(&mut self, name: &str, n_in: u64, n_out: u64) {
        self.matrix(name, n_in, n_out);
        self.add(&format!("{name}.bias"), &[n_out], 0.25, 0.0);
    }

    fn norm(&mut self, name: &str, n: u64) {
        self.add(&format!("{name}.weight"), &[n], 0.25, 1.0);
    }

    fn write(&self, mut header: GgufHeader, path: &Path) {
        for (name, dims, _) in &self.list {
            header.tensor(name, dims, DType::F32);
        }
        let mut writer = header.create(path).unwrap();
        for (name, _, values) in &self.list {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            writer.write(name, &bytes).unwrap();
        }
        writer.finish().unwrap();
    }
}

fn write_model(path: &Path, template: &str) {
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    for (key, number) in [
        ("context_length", 2048),
        ("embedding_length", DIM as u32),
        ("block_count", 1),
        ("feed_forward_length", 64),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 4),
        ("attention.key_length", 16),
        ("attention.value_length", 16),
        ("rope.dimension_count", 16),
    ] {
        header.set(&format!("llama.{key}"), &number);
    }
    header.set("llama.attention.layer_norm_rms_epsilon", &1e-6f32);
    let n_tokens = set_vocabulary(&mut header);
    header.set("tokenizer.chat_template", template);
    let mut weights = Weights::default();
    weights.add("token_embd.weight", &[DIM, n_tokens], 1.0, 0.0);
    weights.norm("blk.0.attn_norm", DIM);
    for name in ["attn_q", "attn_k", "attn_v"] {
        weights.matrix(&format!("blk.0.{name}"), DIM, 64);
    }
    weights.matrix("blk.0.attn_output", 64, DIM);
    weights.norm("blk.0.ffn_norm", DIM);
    weights.matrix("blk.0.ffn_gate", DIM, 64);
    weights.matrix("blk.0.ffn_up", DIM, 64);
    weights.matrix("blk.0.ffn_down", 64, DIM);
    weights.norm("output_norm", DIM);
    weights.matrix("output", DIM, n_tokens);
    weights.write(header, path);
}

/// Bytes, and the control tokens of Idefics 3. Returns the number of tokens.
fn set_vocabulary(header: &mut GgufHeader) -> u64 {
    let controls = ["<unk>", "<s>", "</s>"].map(String::from);
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let images = ["<image>", "<fake_token_around_image>", "<global-img>"].map(String::from);
    let places =
        (1..=4).flat_map(|row| (1..=4).map(move |column| format!("<row_{row}_col_{column}>")));
    let tokens: Vec<String> = (controls.into_iter().chain(bytes))
        .chain(images)
        .chain(places)
        .collect();
    let kind = |token: &String| if token.starts_with("<0x") { 6u32 } else { 3 };
    let kinds: Vec<u32> = tokens.iter().map(kind).collect();
    let names: Vec<&str> = tokens.iter().map(String::as_str).collect();
    header.set("tokenizer.ggml.model", "llama");
    header.set("tokenizer.ggml.tokens", &names[..]);
    header.set("tokenizer.ggml.token_type", &kinds[..]);
    header.set("tokenizer.ggml.scores", &vec![0f32; tokens.len()][..]);
    header.set("tokenizer.ggml.bos_token_id", &1u32);
    header.set("tokenizer.ggml.eos_token_id", &2u32);
    header.set("tokenizer.ggml.add_space_prefix", &false);
    tokens.len() as u64
}

fn write_tower(path: &Path, out_dim: u64) {
    let mut header = GgufHeader::new();
    header.set("general.architecture", "clip");
    header.set("clip.projector_type", "idefics3");
    header.set("clip.has_vision_encoder", &true);
    header.set("clip.use_gelu", &true);
    for (key, number) in [
        ("image_size", SIDE as u32),
        ("patch_size", PATCH as u32),
        ("embedding_length", TOWER_DIM as u32),
        ("feed_forward_length", 80),
        ("block_count", 1),
        ("attention.head_count", 4),
        ("projection_dim", out_dim as u32),
        ("projector.scale_factor", 2),
    ] {
        header.set(&format!("clip.vision.{key}"), &number);
    }
    header.set("clip.vision.attention.layer_norm_epsilon", &1e-6f32);
    header.set("clip.vision.image_mean", &[0.5f32; 3][..]);
    header.set("clip.vision.image_std", &[0.5f32; 3][..]);
    let mut weights = Weights::default();
    let kernel = [PATCH, PATCH, 3, TOWER_DIM];
    weights.add("v.patch_embd.weight", &kernel, 0.125, 0.0);
    weights.add("v.patch_embd.bias", &[TOWER_DIM], 0.25, 0.0);
    let n_patches = (SIDE / PATCH).pow(2);
    weights.add("v.position_embd.weight", &[TOWER_DIM, n_patches], 0.25, 0.0);
    for name in ["blk.0.ln1", "blk.0.ln2", "post_ln"] {
        weights.norm(&format!("v.{name}"), TOWER_DIM);
        weights.add(&format!("v.{name}.bias"), &[TOWER_DIM], 0.25, 0.0);
    }
    for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
        weights.linear(&format!("v.blk.0.{name}"), TOWER_DIM, TOWER_DIM);
    }
    weights.linear("v.blk.0.ffn_up", TOWER_DIM, 80);
    weights.linear("v.blk.0.ffn_down", 80, TOWER_DIM);
    weights.matrix("mm.model.fc", 4 * TOWER_DIM, out_dim);
    weights.write(header, path);
}
