//! What works for dense models works for mixtures of experts.

use std::path::Path;

use akunu_engine::{
    Adapters, DraftModel, GenerateOptions, Grammar, Lookup, Model, Progress, Sampling, Session,
    SessionOptions, Speculation,
};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;

use crate::support::TinyModel;
use crate::support::drafts::without_layers;
use crate::support::exact_cpu::cpu;
use crate::support::files::gguf_of;
use crate::support::fixture::Fixture;
use crate::support::random_adapter::RandomAdapter;

const HEAD_DIM: usize = 64;

/// Three layers of eight experts, of which a token uses three.
fn mixture() -> TinyModel {
    gguf_of("qwen3moe")
}

fn load(path: &Path) -> Model {
    Model::load(path, Box::new(TwinDevice::new())).expect("a whole model")
}

fn fed(model: &Model, n: u32) -> Session {
    let options = SessionOptions {
        context: Some(100),
        chunk: 8,
        ..SessionOptions::default()
    };
    let mut session = model.session(options).expect("memory");
    let prompt: Vec<u32> = (0..n).map(|i| (i * 29 + n * 7) % 11).collect();
    session.feed(&prompt).expect("fits");
    session
}

fn drawn(seed: u64, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        sampling: Sampling {
            temperature: 0.9,
            seed,
            ..Sampling::greedy()
        },
        speculation: Speculation::off(),
        ignore_end: true,
        ..Default::default()
    }
}

fn alone(mut session: Session, options: GenerateOptions) -> Vec<u32> {
    let generation = session.generate(options).expect("options are fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// Breaks when a row gets the experts of another one.
#[test]
fn sequences_of_a_batch_give_the_tokens_that_they_give_alone() {
    let file = mixture();
    let model = load(&file.path);
    let prompts = [9, 21, 2, 30, 1];
    let mut batch = model.batch(prompts.len() as u32).expect("memory");
    let ids = prompts.map(|n| {
        let joined = batch.join(fed(&model, n), drawn(n.into(), 8));
        joined.expect("there is room")
    });
    let mut said = Vec::new();
    while batch.is_running() {
        for event in batch.step() {
            match event.progress {
                Progress::Token(token) => said.push((event.sequence, token.id)),
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    for (id, n) in ids.into_iter().zip(prompts) {
        let own = said.iter().filter(|(of, _)| *of == id);
        let own: Vec<u32> = own.map(|(_, token)| *token).collect();
        assert_eq!(
            own,
            alone(fed(&model, n), drawn(n.into(), 8)),
            "prompt of {n}"
        );
    }
}

/// Guesses of a text that repeats itself, and of a model without a layer.
#[test]
fn guesses_change_nothing() {
    let file = mixture();
    let model = load(&file.path);
    let draft = without_layers(&file.path, &[1]);
    let draft = DraftModel::new(&model, &load(&draft.path)).expect("the same vocabulary");
    let lookup = |lookup, draft| Speculation {
        lookup,
        draft,
        draft_tokens: Some(4),
        ..Speculation::default()
    };
    for (what, speculation) in [
        ("lookup", lookup(Lookup::On, None)),
        ("draft", lookup(Lookup::Off, Some(draft))),
    ] {
        let plain = GenerateOptions {
            sampling: Sampling::greedy(),
            ..drawn(0, 40)
        };
        let wanted = alone(fed(&model, 40), plain.clone());
        let mut session = fed(&model, 40);
        let options = GenerateOptions {
            speculation,
            ..plain
        };
        let mut generation = session.generate(options).expect("options are fine");
        let found: Vec<u32> = generation
            .by_ref()
            .map(|token| token.expect("runs").id)
            .collect();
        assert_eq!(found, wanted, "{what}");
        assert!(generation.speculated().n_drafted() > 0, "{what}");
    }
}

#[test]
fn answers_follow_a_grammar() {
    let file = mixture();
    let model = load(&file.path);
    let grammar = Grammar::json_schema(&model, r#"{"enum": ["yes", "no"]}"#).expect("a schema");
    for seed in 0..4 {
        let options = GenerateOptions {
            grammar: Some(grammar.clone()),
            ignore_end: false,
            ..drawn(seed, 20)
        };
        let mut session = fed(&model, 12);
        let generation = session.generate(options).expect("options are fine");
        let text: String = generation.map(|token| token.expect("runs").text).collect();
        assert!([r#""yes""#, r#""no""#].contains(&text.trim()), "{text}");
    }
}

#[test]
fn saved_and_restored_is_the_same_as_never_stopped() {
    let file = mixture();
    let model = load(&file.path);
    let path = file.path.with_extension("session");
    let mut session = fed(&model, 21);
    session.save(&path).expect("disk");
    let mut other = fed(&model, 3);
    other.restore(&path).expect("the same model");
    assert_eq!(other.tokens(), session.tokens());
    let [wanted, found] = [session, other].map(|session| alone(session, drawn(5, 9)));
    assert_eq!(found, wanted);
}

/// An adapter of attention gives what the merged weights give.
#[test]
fn attention_takes_adapters() {
    let file = mixture();
    let folder = tempfile::tempdir().expect("a folder");
    let adapter = RandomAdapter::for_model(&file.path, HEAD_DIM, 5, 7);
    let merged = folder.path().join("merged.gguf");
    adapter.merge(&file.path, 0.75, &merged);
    let paths = [
        adapter.write_gguf(folder.path()),
        adapter.write_peft(folder.path()),
    ];
    let logits = |mut session: Session| {
        session.feed(&[3, 1, 4, 1, 5, 9]).expect("fits");
        session.logits().expect("some")
    };
    let open = |path: &Path| Model::load(path, cpu()).expect("a whole model");
    let session = |model: &Model| model.session(SessionOptions::default()).expect("memory");
    let wanted = logits(session(&open(&merged)));
    let model = open(&file.path);
    let plain = logits(session(&model));
    assert!(
        nmse(&plain, &wanted) > 1e-3,
        "the adapter changes too little"
    );
    for path in paths {
        let adapter = model.load_adapter(&path).expect("an adapter");
        let mut session = session(&model);
        let adapters = Adapters::none().with(&adapter, 0.75);
        session.set_adapters(&adapters).expect("of this model");
        let error = nmse(&logits(session), &wanted);
        assert!(error < 1e-6, "{}: {error:e}", path.display());
    }
}

/// Gate and up see what the router sees, once for each chosen expert, and the last products as many rows as there are chosen
/// experts. The chosen ones are those with the largest logits.
#[test]
fn inputs_of_experts_are_seen_with_the_experts() {
    let file = mixture();
    let model = load(&file.path);
    let fixture = Fixture::read("transformers", "qwen3moe");
    let weight = |name: &str| {
        let found = fixture.weights.iter().find(|weight| weight.name == name);
        found.expect("a weight").values()
    };
    let routers: Vec<Vec<f32>> = (0..3)
        .map(|layer| weight(&format!("model.layers.{layer}.mlp.gate.weight")))
        .collect();
    let mut session = model.session(SessionOptions::default()).expect("memory");
    let (mut routed, mut seen) = (Vec::new(), Vec::new());
    let tokens: Vec<u32> = (0..6).map(|i| i * 41 % 256).collect();
    let mut see = |found: akunu_engine::Observed| {
        let Some(chosen) = found.experts else {
            if found.weight.ends_with("ffn.router.weight") {
                routed = found.rows.to_vec();
            }
            return;
        };
        seen.push(found.weight.to_string());
        assert_eq!((chosen.count, chosen.ids.len()), (8, 6 * 3));
        if found.weight.contains(".down.") {
            assert_eq!(found.rows.len(), 6 * 3 * found.cols);
            return;
        }
        assert_eq!(found.rows, routed);
        let layer: usize = found.weight["layers.".len()..][..1]
            .parse()
            .expect("a layer");
        for (row, ids) in routed.chunks(found.cols).zip(chosen.ids.chunks(3)) {
            let products = routers[layer].chunks(found.cols).map(|expert| {
                let products = expert.iter().zip(row).map(|(w, x)| w * x);
                products.sum::<f32>()
            });
            let mut order: Vec<(f32, u32)> = products.zip(0..).collect();
            order.sort_by(|a, b| b.0.total_cmp(&a.0));
            let best: Vec<u32> = order[..3].iter().map(|(_, expert)| *expert).collect();
            assert_eq!(ids, best);
        }
    };
    session.observe(&tokens, &mut see).expect("runs");
    let of_layer = |layer| {
        ["gate", "up", "down"].map(|part| format!("layers.{layer}.ffn.experts.{part}.weight"))
    };
    assert_eq!(seen, (0..3).flat_map(of_layer).collect::<Vec<_>>());
}
