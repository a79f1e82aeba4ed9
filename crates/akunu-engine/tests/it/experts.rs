//! Mixtures of experts whose files are old, of another kind, or damaged.

use std::path::Path;

use akunu_engine::{EngineError, GenerateOptions, Model, Progress, Session, SessionOptions};
use akunu_kernels::case::nmse;

use crate::support::exact_cpu::cpu;
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::{Fixture, Weight};

fn open(path: &Path) -> Result<(Model, Session), EngineError> {
    let model = Model::load(path, cpu())?;
    let session = model.session(SessionOptions {
        context: Some(64),
        ..SessionOptions::default()
    })?;
    Ok((model, session))
}

/// The error of the logits after the whole text, as a share of their power.
fn error_of(model: &Fixture, path: &Path) -> f64 {
    let (_model, mut session) = open(path).unwrap_or_else(|error| panic!("{error}"));
    session.feed(&model.tokens).expect("fits");
    let wanted = &model.logits[&model.tokens.len()];
    nmse(&session.logits().expect("there are some"), wanted)
}

/// As in `reference`.
const BOUND: f64 = 5e-7;

/// `blk.0.ffn_up_exps.weight` of expert 3 was `blk.0.ffn_up.3.weight` at first. Fails when the experts get in another order.
#[test]
fn old_files_have_a_tensor_for_each_expert() {
    let mut model = Fixture::read("transformers", "mixtral");
    for weight in &mut model.weights {
        if let Some((_, rest)) = weight.name.split_once(".experts.") {
            let expert = rest.split('.').next().expect("a number");
            let single = format!(".{expert}.weight");
            weight.gguf = weight.gguf.replace("_exps.weight", &single);
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = error_of(&model, &write_gguf(&model, folder.path()));
    assert!(error < BOUND, "NMSE {error:e}");
}

/// MLX's converters put the matrices of all experts into one tensor.
#[test]
fn folders_may_have_a_tensor_of_all_experts() {
    let mut model = Fixture::read("transformers", "granitemoe");
    for weight in &mut model.weights {
        let [theirs, of_mlx] = [".output_linear.", ".switch_mlp.down_proj."]
            .map(|part| format!(".block_sparse_moe{part}"));
        weight.name = weight.name.replace(&theirs, &of_mlx);
    }
    // A weight is computed from its name, so the model is a different one; both containers must still agree.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let gguf = tempfile::tempdir().expect("a temporary folder");
    let logits = [
        write_gguf(&model, gguf.path()),
        write_folder(&model, folder.path()),
    ]
    .map(|path| {
        let (_model, mut session) = open(&path).unwrap_or_else(|error| panic!("{error}"));
        session.feed(&model.tokens).expect("fits");
        session.logits().expect("there are some")
    });
    let error = nmse(&logits[0], &logits[1]);
    assert!(error < BOUND, "NMSE {error:e}");
}

/// The error when a changed model is opened, or reads its first tokens.
fn complaint(change: impl FnOnce(&mut Fixture)) -> String {
    complaint_of("qwen3moe", change)
}

fn complaint_of(name: &str, change: impl FnOnce(&mut Fixture)) -> String {
    let mut model = Fixture::read("transformers", name);
    change(&mut model);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    let said = match open(&path) {
        Err(error) => error.to_string(),
        Ok((_model, mut session)) => match session.feed(&[1, 2, 3]) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("a damaged model runs"),
        },
    };
    let file = path.display().to_string();
    let rest = said.strip_prefix(&file);
    rest.unwrap_or_else(|| panic!("{said} does not begin with {file}"))
        .to_string()
}

fn set(model: &mut Fixture, key: &str, value: u32) {
    model
        .metadata
        .insert(format!("qwen3moe.{key}"), value.into());
}

fn is_router(weight: &Weight) -> bool {
    weight.gguf == "blk.1.ffn_gate_inp.weight"
}

#[test]
fn numbers_that_do_not_fit_are_told() {
    let found = complaint(|model| set(model, "expert_used_count", 9));
    let wanted = ": `qwen3moe.expert_used_count` is 9, and there are 8 experts, which must be at most the number of experts";
    assert_eq!(found, wanted);
    let found = complaint(|model| set(model, "expert_count", 7));
    assert!(
        found.contains(
            "`blk.0.ffn_gate_exps.weight` has the matrices of 8 experts, the config says 7"
        ) || found.contains("`layers.0.ffn.router.weight` is 8 × 64, the config says 7 × 64"),
        "{found}"
    );
    let found = complaint(|model| set(model, "expert_count", 513));
    assert!(found.contains("`qwen3moe.expert_count` is 513"), "{found}");
    let found = complaint(|model| {
        let dropped = "model.layers.1.mlp.experts.7.up_proj.weight";
        model.weights.retain(|weight| weight.name != dropped);
    });
    let wanted =
        ": the tensor `blk.1.ffn_up_exps.weight` has the matrices of 7 experts, the config says 8";
    assert_eq!(found, wanted);
}

/// A head cannot turn more elements than it has, nor half a pair; and not all layers can guess.
#[test]
fn positions_and_layers_that_do_not_fit_are_told() {
    for turned in [0, 33, 66] {
        let found = complaint_of("glm4moe", |model| {
            let key = "glm4moe.rope.dimension_count".to_string();
            model.metadata.insert(key, turned.into());
        });
        let wanted = format!(
            "`elements of a head that turn` is {turned} of 64, which must be an even number, from 2 to those of a head"
        );
        assert!(found.contains(&wanted), "{found}");
    }
    let found = complaint_of("glm4moe", |model| {
        let key = "glm4moe.nextn_predict_layers".to_string();
        model.metadata.insert(key, 3.into());
    });
    assert!(found.contains("`layers` is 0"), "{found}");
    let found = complaint_of("hunyuan-moe", |model| {
        let key = "hunyuan-moe.expert_used_count".to_string();
        model.metadata.insert(key, serde_json::json!([3, 9]));
    });
    assert!(found.contains("is 9, and there are 8 experts"), "{found}");
}

/// The last block guesses further tokens, and is left out with its biases. Breaks when it is run, or misses weights.
#[test]
fn blocks_that_guess_are_left_out() {
    let mut model = Fixture::read("transformers", "glm4moe");
    model
        .metadata
        .insert("glm4moe.block_count".to_string(), 4.into());
    let key = "glm4moe.nextn_predict_layers".to_string();
    model.metadata.insert(key, 1.into());
    let bias = (model.weights.iter()).find(|weight| weight.gguf == "blk.0.attn_q.bias");
    let mut guessing = bias.expect("there is one").clone();
    guessing.gguf = "blk.3.attn_q.bias".to_string();
    model.weights.push(guessing);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = error_of(&model, &write_gguf(&model, folder.path()));
    assert!(error < BOUND, "NMSE {error:e}");
}

#[test]
fn sinks_of_another_length_are_told() {
    let found = complaint_of("gpt-oss", |model| {
        let mut weights = model.weights.iter_mut();
        let sinks = weights.find(|weight| weight.gguf == "blk.2.attn_sinks.weight");
        sinks.expect("there are some").shape = vec![3];
    });
    let wanted = ": the weight `layers.2.attention.sinks` is 1 × 3, the config says 1 × 4";
    assert_eq!(found, wanted);
}

#[test]
fn a_router_without_its_matrix_is_told() {
    let found = complaint(|model| model.weights.retain(|weight| !is_router(weight)));
    assert!(found.contains("`blk.1.ffn_gate_inp.weight`"), "{found}");
}

/// Fails when experts are chosen by chance, and when the last layer is named instead of the first one that is damaged.
#[test]
fn a_router_that_computes_nan_is_named() {
    let found = complaint(|model| {
        let router = model.weights.iter_mut().find(|weight| is_router(weight));
        router.expect("there is one").scale = f32::NAN;
    });
    let wanted = ": the router of layer 1 computes NaN or an infinity, so the model's weights are damaged; fetch the file again";
    assert_eq!(found, wanted);
}

/// Fails when an expert that a token does not use counts, or one of a folder that has a tensor for each does not.
#[test]
fn a_token_reads_the_experts_that_it_uses() {
    let fixture = Fixture::read("transformers", "qwen3moe");
    let is_of_expert = |weight: &&Weight| weight.name.contains(".experts.");
    let numbers = |weight: &Weight| weight.shape.iter().product::<u64>();
    let all: u64 = fixture.weights.iter().map(numbers).sum();
    let of_experts: u64 = (fixture.weights.iter())
        .filter(is_of_expert)
        .map(numbers)
        .sum();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [
        write_gguf(&fixture, folder.path()),
        write_folder(&fixture, folder.path()),
    ];
    for path in paths {
        let store = akunu_gguf::WeightStore::open(path).expect("a model");
        let model = akunu_arch::Model::from_store(&store).expect("a model");
        let active = model.active_weights(&store, |_| true).expect("experts");
        let wanted = all - of_experts / 8 * 5;
        assert_eq!((active.parameters, active.bytes), (wanted, 4 * wanted));
    }
}

/// Breaks when a row of a step is given another row's experts or weights, alone or with the rows of a prompt.
#[test]
fn sequences_that_step_together_get_their_own_experts() {
    for name in ["qwen3moe", "gpt-oss"] {
        let fixture = Fixture::read("transformers", name);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let model = Model::load(write_gguf(&fixture, folder.path()), cpu()).expect("a model");
        let fed = |n: usize| {
            let options = SessionOptions {
                context: Some(64),
                chunk: 5,
                ..SessionOptions::default()
            };
            let mut session = model.session(options).expect("memory");
            session.feed(&fixture.tokens[n..3 * n]).expect("fits");
            session
        };
        let options = GenerateOptions {
            max_tokens: 9,
            ignore_end: true,
            ..Default::default()
        };
        let lengths = [3, 7, 12];
        let mut batch = model.batch(3).expect("memory");
        let ids = lengths.map(|n| batch.join(fed(n), options.clone()).expect("there is room"));
        let mut found = vec![Vec::new(); lengths.len()];
        while batch.is_running() {
            for event in batch.step() {
                let at = ids.iter().position(|id| *id == event.sequence);
                match event.progress {
                    Progress::Token(token) => found[at.expect("one of them")].push(token.id),
                    Progress::Failed(error) => panic!("{error}"),
                    _ => {}
                }
            }
        }
        for (n, found) in lengths.into_iter().zip(found) {
            let mut session = fed(n);
            let generation = session.generate(options.clone()).expect("options are fine");
            let alone: Vec<u32> = generation.map(|token| token.expect("runs").id).collect();
            assert_eq!(found, alone, "{name}, {} tokens", 2 * n);
        }
    }
}
