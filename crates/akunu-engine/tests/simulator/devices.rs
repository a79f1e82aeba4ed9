//! The same plans on every device: the specification, the fast one, and the real Metal kernels.

use std::path::Path;

use crate::support::drafts::without_layers;
use crate::support::exact_cpu::cpu;
use crate::support::tiny_llama;
use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_engine::{
    DraftModel, GenerateOptions, Lookup, Model, Progress, Sampling, SequenceId, SessionOptions,
    Speculation,
};
use akunu_kernels::ChipConfig;
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
use akunu_tokenizer::EncodeOptions;
use akunu_types::DType;

pub fn twin() -> Box<dyn Device> {
    Box::new(TwinDevice::new())
}

pub fn simulator(schedule: Schedule) -> Box<dyn Device> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there: `apt-get install clang-19`");
    Box::new(SimDevice::over(
        SimBackend::new(simulator, schedule),
        ChipConfig::m1(),
    ))
}

/// Prompt, then five tokens in chains of two: the ids and the logits after them.
fn run(device: Box<dyn Device>, dtype: DType, sampling: Sampling) -> (Vec<u32>, Vec<f32>) {
    let file = tiny_llama(dtype);
    let model = Model::load(&file.path, device).expect("a whole model");
    let options = SessionOptions {
        context: Some(64),
        chunk: 40,
        ..SessionOptions::default()
    };
    let mut session = model.session(options).expect("memory");
    let prompt: Vec<u32> = (0..35).map(|i| i * 7 % 256).collect();
    session.feed(&prompt).expect("fits");
    let generate = GenerateOptions {
        max_tokens: 5,
        max_chain: 2,
        sampling,
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(generate).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    (ids, session.logits().expect("there are some"))
}

/// Prefill, chain decode, greedy choice and draw, each kernel against its twin inside a whole plan.
#[test]
fn a_small_model_gives_the_same_tokens_on_every_device() {
    let drawn = Sampling {
        temperature: 0.8,
        top_k: 20,
        top_p: 0.9,
        seed: 3,
        ..Sampling::greedy()
    };
    for sampling in [Sampling::greedy(), drawn] {
        for dtype in [DType::F16, DType::Q4_0] {
            let (wanted, wanted_logits) = run(twin(), dtype, sampling);
            for device in [cpu(), simulator(Schedule::Random(9))] {
                let name = device.name();
                let (found, logits) = run(device, dtype, sampling);
                assert_eq!(found, wanted, "{name}, {dtype}, {sampling:?}");
                // Sums in another order; the simulator's prefill products have tiles of halves, and
                // the CPU rounds what it multiplies with quantised weights to 8 bits.
                let bound = if dtype == DType::F16 { 1e-5 } else { 1e-3 };
                let error = nmse(&logits, &wanted_logits);
                assert!(error < bound, "{name}, {dtype}: NMSE {error}");
            }
        }
    }
}

/// Guesses of two branches in one step, of which the second is right, give the tokens that are chosen without guesses.
/// Fails where a device lets a row see another branch, or does not move what the branch has stored.
#[test]
fn a_tree_of_guesses_gives_the_same_tokens_on_every_device() {
    let file = tiny_llama(DType::F16);
    let prompt: Vec<u32> = (0..35).map(|i| i * 7 % 256).collect();
    for device in [twin(), cpu(), simulator(Schedule::Random(5))] {
        let name = device.name();
        let model = Model::load(&file.path, device).expect("a whole model");
        let say = |prompt: &[u32], lookup: Lookup, max_tokens: usize| {
            let mut session = model.session(SessionOptions::default()).expect("memory");
            session.feed(prompt).expect("fits");
            let options = GenerateOptions {
                max_tokens,
                sampling: Sampling::greedy(),
                ignore_end: true,
                speculation: Speculation {
                    lookup,
                    ..Speculation::default()
                },
                ..Default::default()
            };
            let mut generation = session.generate(options).expect("options are fine");
            let tokens = generation.by_ref().map(|token| token.expect("runs").id);
            let tokens: Vec<u32> = tokens.collect();
            (tokens, generation.speculated())
        };
        let (plain, _) = say(&prompt, Lookup::Off, 10);
        // What is said first is remembered; so is a text that went on otherwise, and which is guessed first.
        say(&prompt, Lookup::On, 10);
        let others = plain[3..6].iter().map(|id| (id + 1) % 256);
        let others: Vec<u32> = others.collect();
        let text = [&[200, 201, 202], &prompt[..], &plain[..3], &others].concat();
        say(&text, Lookup::On, 1);
        let (tokens, speculated) = say(&prompt, Lookup::On, 10);
        assert_eq!(tokens, plain, "{name}");
        assert!(speculated.branches_accepted > 0, "{name}: {speculated:?}");
    }
}

/// Eight answers together with guesses of a draft model, which has only the first of two layers and is wrong at times,
/// give the tokens that the twins give for each alone without guesses. Fails where a device lets guesses of one sequence
/// change another one.
#[test]
fn a_draft_guesses_for_eight_sequences_on_every_device() {
    let file = tiny_llama(DType::F16);
    let load = |device| Model::load(&file.path, device).expect("a whole model");
    let prompt = |n: u32| -> Vec<u32> { (0..3 + n).map(|i| (i * 7 + n) % 256).collect() };
    let options = |n: u32, speculation: &Speculation| GenerateOptions {
        max_tokens: 3 + n as usize % 4,
        sampling: Sampling {
            temperature: 0.3,
            seed: u64::from(n),
            ..Sampling::greedy()
        },
        ignore_end: true,
        speculation: speculation.clone(),
        ..Default::default()
    };
    let model = load(twin());
    let wanted = (0..8).map(|n| -> Vec<u32> {
        let mut session = model.session(SessionOptions::default()).expect("memory");
        session.feed(&prompt(n)).expect("fits");
        let generation = session.generate(options(n, &Speculation::off()));
        let tokens = generation.expect("options are fine");
        tokens.map(|token| token.expect("runs").id).collect()
    });
    let wanted: Vec<Vec<u32>> = wanted.collect();
    let draft = without_layers(&file.path, &[1]);
    let draft = Model::load(&draft.path, twin()).expect("a whole model");
    for device in [twin(), cpu(), simulator(Schedule::Random(6))] {
        let name = device.name();
        let model = load(device);
        let drafting = Speculation {
            draft: Some(DraftModel::new(&model, &draft).expect("the same vocabulary")),
            draft_tokens: Some(3),
            ..Speculation::off()
        };
        let mut batch = model.batch(8).expect("memory");
        let join = |n: u32| {
            let session = model.session(SessionOptions::default()).expect("memory");
            let joined = batch.join_prompt(session, prompt(n), options(n, &drafting));
            joined.expect("there is room")
        };
        let ids: Vec<SequenceId> = (0..8).map(join).collect();
        let mut found = vec![Vec::new(); 8];
        while batch.is_running() {
            for event in batch.step() {
                let at = ids.iter().position(|id| *id == event.sequence);
                match event.progress {
                    Progress::Token(token) => found[at.expect("one of ours")].push(token.id),
                    Progress::Failed(error) => panic!("{name}: {error}"),
                    _ => {}
                }
            }
        }
        assert_eq!(found, wanted, "{name}");
        let counted = ids.iter().filter_map(|id| batch.speculated(*id));
        let (drafted, accepted) = counted.fold((0, 0), |(drafted, accepted), of| {
            (drafted + of.n_drafted(), accepted + of.n_accepted())
        });
        assert!(
            accepted > 0 && drafted > accepted,
            "{name}: {accepted} of {drafted}"
        );
    }
}

/// Sequences of different lengths and samplings stepped together, on a device; and on the twins each
/// sequence alone. One ends early.
#[test]
fn sequences_step_together_on_every_device() {
    let drawn = Sampling {
        temperature: 0.9,
        top_k: 30,
        seed: 5,
        repetition_penalty: 1.1,
        ..Sampling::greedy()
    };
    let settings = [
        (11, 4, Sampling::greedy()),
        (3, 2, drawn),
        (17, 5, Sampling::greedy()),
    ];
    for dtype in [DType::F16, DType::Q4_0] {
        let wanted = settings.map(|setting| together(twin(), dtype, &[setting]).remove(0));
        for device in [twin(), cpu(), simulator(Schedule::Random(4))] {
            let name = device.name();
            let found = together(device, dtype, &settings);
            assert_eq!(found, wanted, "{name}, {dtype}");
        }
    }
}

/// The tokens of sequences, each with a prompt of a length, a number of tokens and a sampling.
fn together(
    device: Box<dyn Device>,
    dtype: DType,
    settings: &[(u32, usize, Sampling)],
) -> Vec<Vec<u32>> {
    let file = tiny_llama(dtype);
    let model = Model::load(&file.path, device).expect("a whole model");
    let mut batch = model.batch(settings.len() as u32).expect("memory");
    let mut joined = Vec::new();
    for &(length, max_tokens, sampling) in settings {
        let options = SessionOptions {
            context: Some(32),
            chunk: 8,
            ..SessionOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        let prompt: Vec<u32> = (0..length).map(|i| i * 7 % 256).collect();
        session.feed(&prompt).expect("fits");
        let options = GenerateOptions {
            max_tokens,
            sampling,
            ignore_end: true,
            ..Default::default()
        };
        joined.push((prompt.len(), batch.join(session, options).expect("room")));
    }
    while batch.is_running() {
        batch.step();
    }
    let tokens = joined.into_iter().map(|(from, id)| {
        let session = batch.leave(id).expect("it is there");
        session.tokens()[from..].to_vec()
    });
    tokens.collect()
}

/// Rows that go through the products together get the very logits that each gets alone, at every level
/// of instructions but one: tiles, which nine rows and more go through, leave out 2^-16 of floats, and with quantised
/// weights they multiply bf16 where a few rows have 16 bits.
#[test]
fn the_cpu_computes_rows_together_as_it_computes_each() {
    for (dtype, tile_bound) in [(DType::F16, 1e-7), (DType::Q4_0, 1e-3)] {
        let file = tiny_llama(dtype);
        for isa in Isa::available() {
            let options = CpuOptions {
                isa: Some(isa),
                ..Default::default()
            };
            let device = CpuDevice::new(options).expect("it is available");
            let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
            for n_sequences in [2, 4, 8, 16] {
                let bound = match isa {
                    Isa::Amx if n_sequences > 8 => tile_bound,
                    _ => 0.0,
                };
                let error = error_together(&model, n_sequences);
                assert!(
                    error <= bound,
                    "{isa}, {dtype}, {n_sequences}: NMSE {error}"
                );
            }
        }
    }
}

/// The largest error of a sequence's logits after a step together, against those it has alone.
fn error_together(model: &Model, n_sequences: u32) -> f64 {
    let session = |length: u32| {
        let options = SessionOptions {
            context: Some(32),
            chunk: 8,
            ..SessionOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        let prompt: Vec<u32> = (0..length).map(|i| (i * 7 + length) % 256).collect();
        session.feed(&prompt).expect("fits");
        session
    };
    let options = |max_tokens| GenerateOptions {
        max_tokens,
        ..Default::default()
    };
    let mut batch = model.batch(n_sequences).expect("memory");
    let ids: Vec<_> = (1..=n_sequences)
        .map(|length| batch.join(session(length), options(9)).expect("room"))
        .collect();
    batch.step();
    batch.step();
    // Read before anybody else steps.
    let logits: Vec<_> = ids.into_iter().map(|id| batch.logits(id)).collect();
    let errors = (1..).zip(logits).map(|(length, together)| {
        let together = together.expect("reads").expect("it took part");
        let mut alone = session(length);
        if length < n_sequences {
            // As in the batch, others were fed since: the last token of the prompt is read again, by itself.
            drop(session(1));
        }
        alone.generate(options(1)).expect("greedy").for_each(drop);
        nmse(&together, &alone.logits().expect("some"))
    });
    errors.fold(0.0, f64::max)
}

/// Three people ask a real model, in one batch: each gets the answer that it would get alone.
#[test]
fn smollm2_answers_three_at_once_as_it_answers_each() {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let model = Model::load(&path, cpu()).expect("a whole model");
    let prompts = [
        "The capital of France is",
        "Once upon a time there was a small dragon who",
        "def add(a, b):",
    ];
    let session = |prompt: &str| {
        let options = SessionOptions {
            context: Some(64),
            chunk: 32,
            ..SessionOptions::default()
        };
        let encode = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        let ids = model.tokenizer().encode(prompt, encode);
        session.feed(&ids).expect("fits");
        session
    };
    let options = || GenerateOptions {
        max_tokens: 24,
        ..Default::default()
    };
    let mut batch = model.batch(3).expect("memory");
    let ids = prompts.map(|prompt| batch.join(session(prompt), options()).expect("room"));
    let mut texts = [const { String::new() }; 3];
    while batch.is_running() {
        for event in batch.step() {
            let at = ids.iter().position(|id| *id == event.sequence);
            let text = match &event.progress {
                Progress::Token(token) => &token.text,
                Progress::Ended { tail, .. } => tail,
                Progress::Failed(error) => panic!("{error}"),
                _ => "",
            };
            texts[at.expect("one of the three")].push_str(text);
        }
    }
    for (prompt, text) in prompts.iter().zip(texts) {
        let mut alone = session(prompt);
        let mut generation = alone.generate(options()).expect("greedy");
        let mut wanted: String = generation.by_ref().map(|t| t.expect("runs").text).collect();
        wanted.push_str(&generation.tail());
        assert_eq!(text, wanted, "{prompt}");
    }
}

/// The whole of a real model through the Metal kernels.
#[test]
fn smollm2_gives_the_same_tokens_through_the_metal_kernels() {
    let complete = |device: Box<dyn Device>| {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        let model = Model::load(&path, device).expect("a whole model");
        let options = SessionOptions {
            context: Some(32),
            chunk: 8,
            ..SessionOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        let encode = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        let ids = model.tokenizer().encode("The capital of France is", encode);
        session.feed(&ids).expect("fits");
        let options = GenerateOptions {
            max_tokens: 3,
            ..Default::default()
        };
        let generation = session.generate(options).expect("greedy");
        let tokens: Vec<String> = generation.map(|token| token.expect("runs").text).collect();
        tokens
    };
    let wanted = complete(cpu());
    assert_eq!(wanted[..2], [" Paris", "."]);
    assert_eq!(complete(simulator(Schedule::Ascending)), wanted);
}
