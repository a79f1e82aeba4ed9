//! Adapters: what they change, for whom, and what they may not touch.

use std::path::Path;

use crate::support::exact_cpu::cpu;
use crate::support::random_adapter::RandomAdapter;
use crate::support::{DIM, TINY, TinyLlama, TinyModel};
use akunu_engine::{
    Adapter, Adapters, EngineError, GenerateOptions, Model, Progress, Sampling, SavedSessionError,
    Session, SessionOptions,
};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_types::DType;

/// The small model in f32, so that nothing but the order of sums is rounded.
const PLAIN: TinyLlama = TinyLlama {
    dtype: DType::F32,
    ..TINY
};
const HEAD_DIM: usize = DIM as usize / TINY.n_heads as usize;

fn twin() -> Box<dyn Device> {
    Box::new(TwinDevice::new())
}

fn load(path: &Path, device: Box<dyn Device>) -> Model {
    Model::load(path, device).expect("a whole model")
}

fn adapter_of(file: &TinyModel, rank: usize, seed: u64) -> RandomAdapter {
    RandomAdapter::for_model(&file.path, HEAD_DIM, rank, seed)
}

fn session(model: &Model, adapters: &Adapters) -> Session {
    let options = SessionOptions {
        context: Some(250),
        chunk: 64,
        ..SessionOptions::default()
    };
    let mut session = model.session(options).expect("memory");
    session.set_adapters(adapters).expect("of this model");
    session
}

fn prompt(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 29 + salt * 53) % 256).collect()
}

/// The logits after a prompt, and after six further tokens that went through one by one.
fn logits(model: &Model, adapters: &Adapters) -> Vec<f32> {
    let mut session = session(model, adapters);
    let tokens = prompt(26, 1);
    session.feed(&tokens[..20]).expect("fits");
    let mut all = session.logits().expect("some");
    for n in 21..=26 {
        session.feed(&tokens[..n]).expect("fits");
        all.extend(session.logits().expect("some"));
    }
    all
}

fn with(adapter: &Adapter, scale: f32) -> Adapters {
    Adapters::none().with(adapter, scale)
}

fn greedy(session: &mut Session, n: usize) -> Vec<u32> {
    let options = GenerateOptions {
        max_tokens: n,
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// `W x + scale B (A x)` is `(W + scale B A) x`. Breaks when a product has not its adapter, when rows of queries and
/// keys come in the wrong order, and when the activation that `down` reads is not there for its adapter.
#[test]
fn an_adapter_gives_what_the_merged_weights_give() {
    for arch in ["llama", "qwen2", "gemma3"] {
        let file = TinyLlama { arch, ..PLAIN }.write();
        let folder = tempfile::tempdir().expect("a folder");
        let adapter = adapter_of(&file, 5, 7);
        let merged = folder.path().join("merged.gguf");
        adapter.merge(&file.path, 0.75, &merged);
        let gguf = adapter.write_gguf(folder.path());
        let peft = adapter.write_peft(folder.path());
        for device in [twin as fn() -> Box<dyn Device>, cpu] {
            let wanted = logits(&load(&merged, device()), &Adapters::none());
            let model = load(&file.path, device());
            for path in [&gguf, &peft, &peft.join("adapter_model.safetensors")] {
                let loaded = model.load_adapter(path).expect("an adapter");
                let found = logits(&model, &with(&loaded, 0.75));
                let error = nmse(&found, &wanted);
                // Sums of f32 in another order; keys and values are rounded to f16 in both.
                assert!(error < 1e-6, "{arch}, {}: {error:e}", path.display());
            }
            let plain = logits(&model, &Adapters::none());
            let changed = nmse(&plain, &wanted);
            assert!(
                changed > 1e-3,
                "the adapter changes too little: {changed:e}"
            );
        }
    }
}

/// Adapters of other weights and ranks together are the sum of both.
#[test]
fn two_adapters_of_one_sequence_add_up() {
    let file = PLAIN.write();
    let folder = tempfile::tempdir().expect("a folder");
    let (q, ffn) = (
        adapter_of(&file, 3, 1).only(|name| name.contains("attn")),
        adapter_of(&file, 8, 2).only(|name| name.contains("ffn") || name.contains("blk.1.attn_v")),
    );
    let (first, both) = (folder.path().join("1.gguf"), folder.path().join("2.gguf"));
    q.merge(&file.path, 1.0, &first);
    ffn.merge(&first, -0.5, &both);
    let wanted = logits(&load(&both, twin()), &Adapters::none());
    let model = load(&file.path, twin());
    let [q, ffn] = [q, ffn].map(|adapter| {
        let path = adapter.write_gguf(folder.path());
        model.load_adapter(path).expect("an adapter")
    });
    let found = logits(&model, &with(&ffn, -0.5).with(&q, 1.0));
    assert!(nmse(&found, &wanted) < 1e-6);
}

/// Sequences with no adapter, with one and the other, and with both, in one batch. Breaks when the factor of one
/// sequence is used for another, also for the prompts that are read beside them.
#[test]
fn sequences_with_different_adapters_step_together() {
    let file = PLAIN.write();
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [(4, 11), (6, 12)]
        .map(|(rank, seed)| adapter_of(&file, rank, seed).write_gguf(folder.path()));
    for device in [twin(), cpu()] {
        let model = load(&file.path, device);
        let [a, b] = paths
            .each_ref()
            .map(|path| model.load_adapter(path).expect("fits"));
        let settings = [
            Adapters::none(),
            with(&a, 1.0),
            with(&b, 0.5),
            with(&a, 0.25).with(&b, 1.0),
        ];
        let prompts: Vec<Vec<u32>> = (0..4).map(|at| prompt(9 + 13 * at, at)).collect();
        let alone: Vec<Vec<u32>> = settings
            .iter()
            .zip(&prompts)
            .map(|(adapters, prompt)| {
                let mut session = session(&model, adapters);
                session.feed(prompt).expect("fits");
                greedy(&mut session, 12)
            })
            .collect();
        let mut batch = model.batch(4).expect("room");
        let mut found = Vec::new();
        for (adapters, prompt) in settings.iter().zip(&prompts) {
            let options = GenerateOptions {
                max_tokens: 12,
                ignore_end: true,
                ..Default::default()
            };
            let joined = batch.join_prompt(session(&model, adapters), prompt, options);
            found.push((joined.expect("room"), Vec::new()));
        }
        while batch.is_running() {
            for event in batch.step() {
                if let Progress::Token(token) = event.progress {
                    let of = found.iter_mut().find(|(id, _)| *id == event.sequence);
                    of.expect("one of ours").1.push(token.id);
                }
            }
        }
        let found: Vec<Vec<u32>> = found.into_iter().map(|(_, tokens)| tokens).collect();
        assert_eq!(found, alone);
        assert_ne!(alone[0], alone[1]);
    }
}

/// A model beside which adapters are loaded is, for a sequence without them, the very same bits.
#[test]
fn without_its_adapter_a_model_is_as_it_was() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let path = adapter_of(&file, 4, 3).write_gguf(folder.path());
    let plain = logits(&load(&file.path, cpu()), &Adapters::none());
    let model = load(&file.path, cpu());
    let adapter = model.load_adapter(&path).expect("an adapter");
    let adapted = logits(&model, &with(&adapter, 1.0));
    assert_ne!(adapted, plain);
    assert_eq!(logits(&model, &Adapters::none()), plain);
    assert_eq!(logits(&model, &with(&adapter, 0.0)), plain);
    assert!(with(&adapter, 0.5).with(&adapter, -0.5).is_empty());
}

/// Pages are shared by sequences with the same adapters and scales, and by no others.
#[test]
fn pages_are_never_shared_by_sequences_with_different_adapters() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [(4, 3), (5, 4)]
        .map(|(rank, seed)| adapter_of(&file, rank, seed).write_gguf(folder.path()));
    let model = load(&file.path, cpu());
    let [a, b] = paths
        .each_ref()
        .map(|path| model.load_adapter(path).expect("fits"));
    let again = model.load_adapter(&paths[0]).expect("fits");
    let mut sessions = Vec::new();
    let mut reused = |adapters: &Adapters| {
        let mut session = session(&model, adapters);
        let fed = session.feed(&prompt(150, 5)).expect("fits");
        // Pages that nobody has give way to others.
        sessions.push(session);
        fed.reused
    };
    let different = [
        Adapters::none(),
        with(&a, 1.0),
        with(&a, 0.5),
        with(&b, 1.0),
        with(&a, 1.0).with(&b, 1.0),
    ];
    for adapters in &different {
        assert_eq!(reused(adapters), 0, "{adapters:?}");
    }
    for adapters in &different {
        assert_eq!(reused(adapters), 128, "{adapters:?}");
    }
    assert_eq!(reused(&with(&again, 1.0)), 128, "the same numbers");
}

/// Other adapters make a session forget; a fork has those of its origin.
#[test]
fn a_session_keeps_its_adapters_until_they_change() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let path = adapter_of(&file, 4, 3).write_gguf(folder.path());
    let model = load(&file.path, cpu());
    let adapters = with(&model.load_adapter(&path).expect("fits"), 1.0);
    let mut first = session(&model, &adapters);
    first.feed(&prompt(40, 1)).expect("fits");
    first.set_adapters(&adapters).expect("the same");
    assert_eq!(first.tokens().len(), 40);
    let mut fork = first.fork();
    assert_eq!(fork.adapters(), &adapters);
    assert_eq!(greedy(&mut fork, 8), greedy(&mut first, 8));
    fork.set_adapters(&Adapters::none()).expect("none");
    assert_eq!(fork.tokens(), [0; 0]);
    let other = load(&file.path, twin());
    let refused = session(&other, &Adapters::none()).set_adapters(&adapters);
    assert!(
        matches!(refused, Err(EngineError::AdapterModel { .. })),
        "{refused:?}"
    );
    let nan = with(&model.load_adapter(&path).expect("fits"), f32::NAN);
    let refused = first.set_adapters(&nan);
    assert!(
        matches!(refused, Err(EngineError::AdapterScale { .. })),
        "{refused:?}"
    );
}

/// A saved session is of use only with the adapters that it was computed with.
#[test]
fn a_saved_session_belongs_to_its_adapters() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let path = adapter_of(&file, 4, 3).write_gguf(folder.path());
    let saved = folder.path().join("saved");
    let wanted = {
        let model = load(&file.path, cpu());
        let adapters = with(&model.load_adapter(&path).expect("fits"), 0.5);
        let mut session = session(&model, &adapters);
        session.feed(&prompt(70, 1)).expect("fits");
        session.save(&saved).expect("written");
        greedy(&mut session, 10)
    };
    let model = load(&file.path, cpu());
    let adapter = model.load_adapter(&path).expect("fits");
    for adapters in [Adapters::none(), with(&adapter, 1.0)] {
        let refused = session(&model, &adapters).restore(&saved);
        let is_refused = matches!(
            refused,
            Err(EngineError::SavedSession {
                error: SavedSessionError::OtherAdapters,
                ..
            })
        );
        assert!(is_refused, "{refused:?}");
    }
    let mut restored = session(&model, &with(&adapter, 0.5));
    restored.restore(&saved).expect("the same");
    assert_eq!(greedy(&mut restored, 10), wanted);
}

/// The places of adapters that nobody has any more are used again, and guesses and chains go on with adapters.
#[test]
fn adapters_come_and_go() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let path = adapter_of(&file, 4, 3).write_gguf(folder.path());
    let model = load(&file.path, cpu());
    let kept = model.load_adapter(&path).expect("fits");
    let wanted = logits(&model, &with(&kept, 1.0));
    for _ in 0..70 {
        let passing = model.load_adapter(&path).expect("there is a place");
        drop(session(&model, &with(&passing, 1.0)));
    }
    assert_eq!(logits(&model, &with(&kept, 1.0)), wanted);
    let many: Vec<_> = (0..63)
        .map(|_| model.load_adapter(&path).expect("a place"))
        .collect();
    let refused = model.load_adapter(&path);
    assert!(matches!(
        refused,
        Err(EngineError::TooManyAdapters { max: 64 })
    ));
    drop(many);
    // More seats and rows than before: the scratch memory of adapters grows with them.
    let sessions: Vec<Session> = (0..20)
        .map(|_| session(&model, &with(&kept, 1.0)))
        .collect();
    let mut batch = model.batch(20).expect("room");
    let options = GenerateOptions {
        max_tokens: 3,
        ignore_end: true,
        sampling: Sampling::greedy(),
        ..Default::default()
    };
    for session in sessions {
        batch
            .join_prompt(session, prompt(5, 1), options.clone())
            .expect("room");
    }
    let mut n_tokens = 0;
    while batch.is_running() {
        let events = batch.step();
        let is_token =
            |event: &&akunu_engine::BatchEvent| matches!(event.progress, Progress::Token(_));
        n_tokens += events.iter().filter(is_token).count();
    }
    assert_eq!(n_tokens, 60);
    assert_eq!(logits(&model, &with(&kept, 1.0)), wanted);
}

/// What is wrong with an adapter is said in one sentence that names the file.
#[test]
fn an_adapter_that_cannot_be_used_is_refused_with_its_reason() {
    let file = TINY.write();
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let model = load(&file.path, cpu());
    let adapter = adapter_of(&file, 4, 3);
    let told = |path: &Path| model.load_adapter(path).expect_err("refused").to_string();
    let with_alpha = |alpha: f32| {
        adapter.write_gguf_with(place, |header| {
            header.set("adapter.lora.alpha", &alpha);
        })
    };
    let wide = TinyLlama { n_heads: 6, ..TINY }.write();
    let cases = [
        (told(&file.path), "is a model, not an adapter"),
        (told(&with_alpha(0.0)), "alpha is 0"),
        (told(&with_alpha(f32::NAN)), "alpha is NaN"),
        (
            told(
                &adapter
                    .write_gguf_with(place, |header| header.set("general.architecture", "qwen2")),
            ),
            "the adapter is for `qwen2` models, and this is a `llama` model",
        ),
        (
            told(&adapter.write_gguf_with(place, |header| header.set("adapter.type", "ia3"))),
            "is an adapter of the type `ia3`, which is not supported",
        ),
        (
            told(&RandomAdapter::for_model(&wide.path, 32, 4, 1).write_gguf(place)),
            "is for a model of another shape: its `layers.0.attention.k.weight` is 32 × 192, this model's is 64 × 192",
        ),
        (told(&place.join("nothing.gguf")), "cannot be opened"),
        (
            told(&peft(&adapter, place, "r", 0.into())),
            "has the rank 0",
        ),
        (told(&peft(&adapter, place, "r", 8.into())), "`r` is 8, but"),
        (
            told(&peft(&adapter, place, "lora_alpha", ().into())),
            "does not say its alpha",
        ),
        (
            told(&peft(&adapter, place, "lora_alpha", 1e40.into())),
            "says in `lora_alpha` that alpha is 1e40",
        ),
        (
            told(&peft(&adapter, place, "use_dora", true.into())),
            "is a DoRA adapter",
        ),
        (
            told(&peft(&adapter, place, "peft_type", "IA3".into())),
            "of the type `IA3`",
        ),
        (
            told(&peft(
                &adapter,
                place,
                "modules_to_save",
                vec!["lm_head"].into(),
            )),
            "replaces whole modules",
        ),
    ];
    for (told, wanted) in cases {
        assert!(told.contains(wanted), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

/// A PEFT folder with one field of its config changed.
fn peft(
    adapter: &RandomAdapter,
    folder: &Path,
    key: &str,
    value: serde_json::Value,
) -> std::path::PathBuf {
    adapter.write_peft_with(folder, |config| config[key] = value)
}
