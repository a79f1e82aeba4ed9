//! Small encoders of each architecture against `transformers`, from both containers, on two devices.

use std::path::{Path, PathBuf};

use crate::support::exact_cpu::{cpu, exact_cpu};
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;
use akunu_cpu::Isa;
use akunu_engine::{Encoder, EncoderText, EngineError, Model, Pooling, is_encoder};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;

/// The devices, and how far their vectors may be from the wanted ones.
fn devices() -> Vec<(Box<dyn Device>, f64)> {
    let mut devices: Vec<(Box<dyn Device>, f64)> =
        vec![(Box::new(TwinDevice::new()), BOUND), (exact_cpu(), BOUND)];
    if Isa::Amx.is_available() {
        devices.push((cpu(), TILE_BOUND));
    }
    devices
}

fn texts(model: &Fixture) -> Vec<EncoderText> {
    let text = |text: &crate::support::fixture::Text| EncoderText {
        tokens: text.tokens.clone(),
        n_first: text.n_first,
    };
    model.texts.iter().map(text).collect()
}

/// How far vectors are from the wanted ones, as a share of their length.
fn error(found: &[f32], wanted: &[f32]) -> f64 {
    nmse(found, wanted).sqrt()
}

/// Both sides compute in f32: two layers of sums in another order are some 1e-7. The fixtures have eight digits.
const BOUND: f64 = 1e-6;

/// Tiles have 16 bits of each factor: 4e-6 to 1e-5 was seen.
const TILE_BOUND: f64 = 3e-5;

/// A fixture as a GGUF file and as a folder.
fn both(model: &Fixture, folder: &Path) -> [PathBuf; 2] {
    [write_gguf(model, folder), write_folder(model, folder)]
}

/// From both containers.
fn agrees(name: &str) {
    let model = Fixture::read("encoders", name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in both(&model, folder.path()) {
        agrees_from(name, &model, &path);
    }
}

fn agrees_from(name: &str, model: &Fixture, path: &Path) {
    for (device, bound) in devices() {
        let what = format!("{name}, {}, {}", path.display(), device.name());
        let encoder = Encoder::load(path, device).unwrap_or_else(|error| panic!("{error}"));
        if encoder.config().n_labels() > 0 {
            // A score may be near zero, so all of them are compared together.
            let wanted: Vec<f32> = model.texts.iter().flat_map(|t| t.scores.clone()).collect();
            let found = encoder.score(&texts(model)).expect("runs").concat();
            let error = error(&found, &wanted);
            assert!(error < bound, "{what}: {error:e}");
            continue;
        }
        let found = encoder.encode(&texts(model)).expect("runs");
        for (found, text) in found.iter().zip(&model.texts) {
            let error = error(found, &text.mean);
            let n_tokens = text.tokens.len();
            assert!(error < bound, "{what}, {n_tokens} tokens: {error:e}");
        }
    }
}

/// Learned positions, token types, biases everywhere, GELU without a gate.
#[test]
fn bert_agrees_with_transformers() {
    agrees("bert");
}

/// Rotary positions, a gate, q, k and v in one matrix, no biases.
#[test]
fn nomic_bert_agrees_with_transformers() {
    agrees("nomic-bert");
}

/// Positions from the third entry on, a bias by distance, up to 200 tokens: the last bucket begins at 91. There is no GGUF
/// of it.
#[test]
fn mpnet_agrees_with_transformers() {
    let model = Fixture::read("encoders", "mpnet");
    let folder = tempfile::tempdir().expect("a temporary folder");
    agrees_from("mpnet", &model, &write_folder(&model, folder.path()));
}

/// Positions from the third entry on, which GGUF files leave out, and one kind of tokens.
#[test]
fn xlm_roberta_agrees_with_transformers() {
    agrees("xlm-roberta");
}

/// A classifier under different names, which reads the first token.
#[test]
fn a_reranker_of_xlm_roberta_agrees_with_transformers() {
    agrees("xlm-reranker");
}

/// Norms without a bias before each block, windows of 24 tokens in three of five layers and rotary positions of their own
/// there, a gate with the exact GELU whose two matrices are one.
#[test]
fn modern_bert_agrees_with_transformers() {
    agrees("modern-bert");
}

/// A folder of a fixture whose config is changed and from which a weight is left out, or one of its rows.
fn refusal(name: &str, change: impl FnOnce(&mut Fixture)) -> String {
    let mut model = Fixture::read("encoders", name);
    change(&mut model);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_folder(&model, folder.path());
    match Encoder::load(&path, Box::new(TwinDevice::new())) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

/// What another program would compute otherwise, or what is not there, is refused by name.
#[test]
fn relative_positions_that_are_not_as_trained_are_refused() {
    const BIAS: &str = "encoder.relative_attention_bias.weight";
    let missing = refusal("mpnet", |model| model.weights.retain(|w| w.name != BIAS));
    assert!(
        missing.contains("`relative_bias.weight` is missing"),
        "{missing}"
    );
    let narrow = refusal("mpnet", |model| {
        let mut weights = model.weights.iter_mut();
        let bias = weights.find(|w| w.name == BIAS).expect("it is there");
        bias.shape[0] = 16;
    });
    assert!(
        narrow.contains("is 16 × 3, the config says 32 × 3"),
        "{narrow}"
    );
    let buckets = refusal("mpnet", |model| {
        model.config["relative_attention_num_buckets"] = 64.into();
    });
    assert!(
        buckets.contains("`relative_attention_num_buckets` = 64"),
        "{buckets}"
    );
    let kind = refusal("mpnet", |model| {
        model.config["position_embedding_type"] = "relative_key".into();
    });
    assert!(kind.contains("`relative_key`"), "{kind}");
    // Positions begin at the third entry, so that a table of 202 is for 200 tokens.
    let long = refusal("mpnet", |model| {
        model.config["max_position_embeddings"] = 204.into();
    });
    assert!(
        long.contains("202, and there are 200 learned positions"),
        "{long}"
    );
}

#[test]
fn windows_and_gates_that_are_not_as_trained_are_refused() {
    let change = |key: &'static str, value: serde_json::Value| {
        refusal("modern-bert", move |model| model.config[key] = value)
    };
    let activation = change("hidden_activation", "silu".into());
    assert!(
        activation.contains("`hidden_activation` = `silu`"),
        "{activation}"
    );
    for key in ["norm_bias", "attention_bias", "mlp_bias"] {
        let error = change(key, true.into());
        assert!(error.contains(key), "{error}");
    }
    let none = change("local_attention", serde_json::Value::Null);
    assert!(none.contains("`local_attention` is missing"), "{none}");
    let narrow = change("local_attention", 1.into());
    assert!(narrow.contains("at least 2"), "{narrow}");
    let halved = refusal("modern-bert", |model| {
        let mut weights = model.weights.iter_mut();
        let wi = weights.find(|w| w.name == "layers.1.mlp.Wi.weight");
        wi.expect("it is there").shape[0] /= 2;
    });
    assert!(
        halved.contains("`layers.1.ffn.up.weight` is 80 × 48"),
        "{halved}"
    );
}

/// The older form of a config says the same: a period and two bases.
#[test]
fn an_older_config_of_windows_means_the_same() {
    let mut model = Fixture::read("encoders", "modern-bert");
    let config = model.config.as_object_mut().expect("an object");
    config.remove("layer_types");
    config.remove("rope_parameters");
    config.insert("global_attn_every_n_layers".into(), 3.into());
    config.insert("global_rope_theta".into(), 160_000.0.into());
    config.insert("local_rope_theta".into(), 10_000.0.into());
    let folder = tempfile::tempdir().expect("a temporary folder");
    agrees_from("older config", &model, &write_folder(&model, folder.path()));
}

/// A score of the first token, through a dense layer and tanh; the texts of a pair are told apart.
#[test]
fn a_reranker_agrees_with_transformers() {
    agrees("reranker");
}

/// A file without the dense layer: the classifier reads the first token. A folder has it, or is not whole.
#[test]
fn a_reranker_without_a_pooler_agrees_with_transformers() {
    let name = "reranker-without-pooler";
    let model = Fixture::read("encoders", name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, whole] = both(&model, folder.path());
    agrees_from(name, &model, &file);
    let Err(error) = Encoder::load(&whole, Box::new(TwinDevice::new())) else {
        panic!("weights are missing");
    };
    assert!(error.to_string().contains("pooler"), "{error}");
}

/// A head of a product, GELU and a norm, of the mean of all tokens.
#[test]
fn a_modern_reranker_agrees_with_transformers() {
    agrees("modern-reranker");
}

/// The same of the first token, with a bias in the head. A GGUF file that does not say so means all of them.
#[test]
fn a_modern_reranker_of_the_first_token_agrees_with_transformers() {
    let name = "modern-reranker-first";
    agrees(name);
    let key = "modern-bert.classifier.pooling_type";
    let mut model = Fixture::read("encoders", name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = |model: &Fixture| {
        let file = write_gguf(model, folder.path());
        Encoder::load(&file, Box::new(TwinDevice::new()))
    };
    model.metadata.insert(key.into(), 3.into());
    let error = load(&model).err().expect("there is no such pooling");
    assert!(
        error.to_string().contains(&format!("`{key}` = 3")),
        "{error}"
    );
    model.metadata.remove(key);
    let encoder = load(&model).expect("a whole model");
    let classifier = encoder.config().classifier();
    assert_eq!(classifier.map(|c| c.pooling), Some(Pooling::Mean));
}

/// A head that another program would compute otherwise, or that is not whole, is refused by name.
#[test]
fn heads_that_are_not_as_trained_are_refused() {
    let name = "modern-reranker-first";
    for (key, value) in [
        ("classifier_activation", "silu"),
        ("classifier_pooling", "max"),
    ] {
        let error = refusal(name, |model| model.config[key] = value.into());
        assert!(error.contains(&format!("`{key}` = `{value}`")), "{error}");
    }
    for (part, looked_for) in [
        (
            "head.dense.weight",
            "`pooler.dense.weight` or `head.dense.weight`",
        ),
        (
            "head.dense.bias",
            "`pooler.dense.bias` or `head.dense.bias`",
        ),
        ("head.norm.weight", "`head.norm.weight`"),
        ("classifier.bias", "`classifier.bias`"),
    ] {
        let error = refusal(name, |model| model.weights.retain(|w| w.name != part));
        let wanted = format!("is missing: there is no tensor {looked_for}");
        assert!(error.contains(&wanted), "{error}");
    }
}

/// The model's own files decide which token stands for a text.
#[test]
fn the_first_and_the_last_token_stand_for_a_text_where_the_files_say_so() {
    let model = Fixture::read("encoders", "bert");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_folder(&model, folder.path());
    let modules = r#"[{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]"#;
    std::fs::write(path.join("modules.json"), modules).expect("written");
    std::fs::create_dir(path.join("1_Pooling")).expect("made");
    for (mode, pooling) in [("cls", Pooling::First), ("lasttoken", Pooling::Last)] {
        let config = format!(r#"{{"pooling_mode": "{mode}"}}"#);
        std::fs::write(path.join("1_Pooling/config.json"), config).expect("written");
        let encoder = Encoder::load(&path, Box::new(TwinDevice::new())).expect("a whole model");
        assert_eq!(encoder.pooling(), pooling);
        let found = encoder.encode(&texts(&model)).expect("runs");
        for (found, text) in found.iter().zip(&model.texts) {
            let wanted = if mode == "cls" {
                &text.first
            } else {
                &text.last
            };
            assert!(error(found, wanted) < BOUND, "{mode}");
        }
    }
}

/// What a text gives does not depend on its company: fails if a row sees the rows of its neighbours, or if a step
/// mixes texts up. 40 texts of up to 64 tokens are several steps.
#[test]
fn a_text_gives_the_same_vector_alone_and_in_a_batch() {
    let model = Fixture::read("encoders", "bert");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    let cpu = exact_cpu();
    let encoder = Encoder::load(&path, cpu).expect("a whole model");
    let text = |n: usize| EncoderText {
        tokens: (0..1 + n * 13 % 64)
            .map(|i| (i * 29 + n) as u32 % 256)
            .collect(),
        n_first: 64,
    };
    let texts: Vec<EncoderText> = (0..40).map(text).collect();
    let together = encoder.encode(&texts).expect("runs");
    for (text, found) in texts.iter().zip(&together) {
        let alone = encoder.encode(std::slice::from_ref(text)).expect("runs");
        // Products of few rows are summed in another order than those of many.
        let error = error(found, &alone[0]);
        assert!(error < BOUND, "{} tokens: {error:e}", text.tokens.len());
    }
}

/// What is wrong is named, before anything runs.
#[test]
fn what_an_encoder_cannot_do_is_said() {
    let model = Fixture::read("encoders", "bert");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    assert!(is_encoder(&path).expect("a whole model"));
    let twin = || Box::new(TwinDevice::new());
    let encoder = Encoder::load(&path, twin()).expect("a whole model");
    let with = |tokens: Vec<u32>| {
        let n_first = tokens.len();
        encoder.encode(&[EncoderText { tokens, n_first }])
    };
    assert!(matches!(with(vec![]), Err(EngineError::EmptyText)));
    let long = with(vec![1; 65]);
    assert!(matches!(
        long,
        Err(EngineError::TextTooLong { found: 65, max: 64 })
    ));
    assert!(matches!(
        with(vec![256]),
        Err(EngineError::UnknownToken { id: 256, .. })
    ));
    assert!(matches!(
        encoder.score(&texts(&model)),
        Err(EngineError::NoClassifier { .. })
    ));
    assert!(matches!(encoder.text(""), Err(EngineError::EmptyText)));
    let cut = encoder.text(&"x".repeat(100)).expect("it is cut");
    assert_eq!((cut.text.tokens.len(), cut.n_cut), (64, 36));
    let pair = encoder
        .pair(&"x".repeat(10), &"y".repeat(100))
        .expect("it is cut");
    assert_eq!(
        (pair.text.tokens.len(), pair.text.n_first, pair.n_cut),
        (64, 10, 46)
    );
    let Err(error) = Model::load(&path, twin()) else {
        panic!("an encoder generates nothing");
    };
    assert!(matches!(error, EngineError::NotADecoder { .. }), "{error}");
}
