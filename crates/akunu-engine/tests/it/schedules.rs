//! Whatever the schedule, a sequence gives the tokens that it gives alone: random joins, leaves, cancels, forks, prompts
//! in pieces, and a pool that is too small for all.

use std::collections::HashMap;

use crate::support::exact_cpu::{exact_cpu, exact_cpu_of_two_threads};
use crate::support::fixture::Fixture;
use crate::support::watched::{Ahead, Watched};
use crate::support::{TINY, TinyLlama, TinyModel};
use akunu_engine::{
    Batch, GenerateOptions, Model, Overflow, Progress, Sampling, SequenceId, Session,
    SessionOptions, StopReason,
};
use akunu_kernels::case::Rng;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;

const CONTEXT: u32 = 200;

fn load(file: &TinyModel, device: Box<dyn Device>) -> Model {
    Model::load(&file.path, device).expect("a whole model")
}

fn session(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(CONTEXT),
        chunk: 32,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

/// What one sequence is asked for.
#[derive(Clone)]
struct Wish {
    prompt: Vec<u32>,
    max_tokens: usize,
    sampling: Sampling,
    overflow: Overflow,
}

impl Wish {
    fn options(&self) -> GenerateOptions {
        GenerateOptions {
            max_tokens: self.max_tokens,
            sampling: self.sampling,
            overflow: self.overflow,
            ignore_end: true,
            ..Default::default()
        }
    }

    /// The tokens that it gives alone.
    fn alone(&self, model: &Model) -> Vec<u32> {
        let mut session = session(model);
        session.feed(&self.prompt).expect("fits");
        let generation = session.generate(self.options()).expect("fine");
        generation.map(|token| token.expect("runs").id).collect()
    }
}

/// Random numbers below a bound.
struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        let value = self.0.floats(1, 1.0)[0];
        ((value.abs() * n as f32) as usize).min(n - 1)
    }
}

/// A wish: prompts begin alike half of the time, so that pages are shared; some run over the context.
fn wish(dice: &mut Dice, seed: u64) -> Wish {
    let shared = dice.below(2) == 0;
    let len = 1 + dice.below(150);
    let salt = if shared { 0 } else { 1 + dice.below(50) as u32 };
    let mut prompt: Vec<u32> = (0..len as u32)
        .map(|i| (i * 29 + salt * 17) % 256)
        .collect();
    if shared {
        // The last token tells them apart.
        prompt.push(dice.below(256) as u32);
    }
    let drawn = Sampling {
        temperature: 1.0,
        top_k: 20,
        seed,
        repetition_penalty: 1.2,
        ..Sampling::greedy()
    };
    Wish {
        prompt,
        max_tokens: 1 + dice.below(30),
        sampling: match dice.below(4) {
            0 | 1 => Sampling::greedy(),
            2 => drawn,
            _ => Sampling {
                top_k: 0,
                top_n_sigma: 3.0,
                typical_p: 0.95,
                xtc_probability: 0.5,
                xtc_threshold: 0.05,
                dynamic_range: 0.5,
                frequency_penalty: 0.2,
                dry_multiplier: 0.8,
                ..drawn
            },
        },
        overflow: if dice.below(3) == 0 {
            Overflow::Shift { keep: 3 }
        } else {
            Overflow::Stop
        },
    }
}

/// One sequence as the test knows it.
struct Expected {
    wish: Wish,
    wanted: Vec<u32>,
    /// How many of the wanted tokens came before it joined.
    skip: usize,
    got: Vec<u32>,
    ended: Option<StopReason>,
    cancel: akunu_engine::CancelFlag,
}

/// Steps a batch at random; every sequence must give a beginning of what it gives alone, and all of it if it ended by
/// itself.
fn run_schedule(file: &TinyModel, device: fn() -> Box<dyn Device>, seed: u64, pool: u32) {
    let reference = load(file, device());
    let model = load(file, device());
    model.limit_pool(pool);
    let mut dice = Dice(Rng::new(seed));
    let mut batch = model
        .batch(6)
        .expect("memory")
        .with_queue(3)
        .with_budget(24)
        .expect("memory");
    let mut all: HashMap<SequenceId, Expected> = HashMap::new();
    let mut n_joined = 0;
    for round in 0.. {
        assert!(round < 5000, "seed {seed}: it does not end");
        if n_joined < 14 && dice.below(3) == 0 {
            n_joined += 1;
            join(
                &model,
                &reference,
                &mut batch,
                &mut dice,
                &mut all,
                seed + round,
            );
        }
        let ids: Vec<SequenceId> = all.keys().copied().collect();
        match (dice.below(20), ids.get(dice.below(ids.len().max(1)))) {
            (0, Some(id)) => all[id].cancel.cancel(),
            (1, Some(id)) => drop(batch.leave(*id)),
            (2, Some(id)) => fork(&mut batch, *id, &mut all),
            _ => {}
        }
        for event in batch.step() {
            let Some(expected) = all.get_mut(&event.sequence) else {
                panic!("an event of a sequence that never joined");
            };
            match event.progress {
                Progress::Token(token) => expected.got.push(token.id),
                Progress::Ended { reason, .. } => {
                    expected.ended = Some(reason);
                    // Whoever stays keeps its pages.
                    if let Some(session) = batch.leave(event.sequence) {
                        assert!(session.tokens().len() <= CONTEXT as usize + 1);
                    }
                }
                Progress::Failed(error) => panic!("seed {seed}: {error}"),
                _ => {}
            }
        }
        if n_joined >= 14 && !batch.is_running() {
            break;
        }
    }
    for (id, expected) in &all {
        let rest = &expected.wanted[expected.skip..];
        let got = &expected.got;
        let label = format!(
            "seed {seed}, {id:?}, prompt of {}",
            expected.wish.prompt.len()
        );
        assert_eq!(got[..], rest[..got.len()], "{label}");
        if matches!(
            expected.ended,
            Some(StopReason::MaxTokens | StopReason::ContextFull)
        ) {
            assert_eq!(got.len(), rest.len(), "{label}");
        }
    }
    drop(batch);
    assert_eq!(model.pages_in_use(), 0, "seed {seed}: pages are left");
}

fn join(
    model: &Model,
    reference: &Model,
    batch: &mut Batch,
    dice: &mut Dice,
    all: &mut HashMap<SequenceId, Expected>,
    seed: u64,
) {
    let wish = wish(dice, seed);
    let wanted = wish.alone(reference);
    let options = wish.options();
    let cancel = options.cancel.clone();
    let joined = batch.join_prompt(session(model), &wish.prompt, options);
    // A full queue hands the session back.
    if let Ok(id) = joined {
        let expected = Expected {
            wish,
            wanted,
            skip: 0,
            got: Vec::new(),
            ended: None,
            cancel,
        };
        all.insert(id, expected);
    }
}

/// A fork of a sequence that has tokens goes on as the sequence itself does.
fn fork(batch: &mut Batch, id: SequenceId, all: &mut HashMap<SequenceId, Expected>) {
    let original = &all[&id];
    let skip = original.skip + original.got.len();
    if original.ended.is_some() || original.got.is_empty() || skip >= original.wanted.len() {
        return;
    }
    let mut wish = original.wish.clone();
    wish.max_tokens = original.wanted.len() - skip;
    let wanted = original.wanted.clone();
    let options = wish.options();
    let cancel = options.cancel.clone();
    if let Ok(fork) = batch.fork(id, options) {
        let expected = Expected {
            wish,
            wanted,
            skip,
            got: Vec::new(),
            ended: None,
            cancel,
        };
        all.insert(fork, expected);
    }
}

const WINDOWED: TinyLlama = TinyLlama {
    arch: "gemma3",
    window: Some(20),
    ..TINY
};

#[test]
fn schedules_on_the_cpu_give_the_tokens_of_each_sequence_alone() {
    for kind in [TINY, WINDOWED] {
        let file = kind.write();
        for seed in 0..4 {
            run_schedule(&file, exact_cpu, 100 * seed, 4096);
            // Three or four of the longer sequences fill it.
            run_schedule(&file, exact_cpu_of_two_threads, 100 * seed + 50, 640);
        }
    }
}

#[test]
fn schedules_on_the_twins_give_the_tokens_of_each_sequence_alone() {
    let file = TINY.write();
    run_schedule(&file, || Box::new(TwinDevice::new()), 7, 640);
}

/// Layers with a state: each sequence continues from its own tokens, in any schedule.
#[test]
fn schedules_of_models_with_states_give_the_tokens_of_each_sequence_alone() {
    for name in ["lfm2", "qwen35"] {
        let file = TinyModel::of(&Fixture::read("transformers", name));
        for seed in 0..3 {
            run_schedule(&file, exact_cpu, 100 * seed, 4096);
            run_schedule(&file, exact_cpu_of_two_threads, 100 * seed + 50, 640);
        }
        run_schedule(&file, ahead, 3, 640);
    }
}

fn ahead() -> Box<dyn Device> {
    Box::new(Watched::new(TwinDevice::new(), Ahead))
}

/// Where the next step is under way, a sequence may leave, end, be cancelled or forked, and others may join, before its tokens
/// are read.
#[test]
fn schedules_on_a_device_that_runs_ahead_give_the_tokens_of_each_sequence_alone() {
    for (kind, pool) in [(TINY, 4096), (TINY, 640), (WINDOWED, 640)] {
        let file = kind.write();
        run_schedule(&file, ahead, u64::from(pool), pool);
    }
}

/// 64 sequences whose contexts would take five times the pool: those without a page wait, and all end as alone.
#[test]
fn more_sequences_than_contiguous_caches_would_allow() {
    let file = TINY.write();
    let (reference, model) = (load(&file, exact_cpu()), load(&file, exact_cpu()));
    model.limit_pool(64 * CONTEXT / 5);
    let mut batch = model.batch(64).expect("memory");
    let wishes: Vec<Wish> = (0..64u32)
        .map(|n| Wish {
            prompt: (0..20 + n % 30).map(|i| (i * 31 + n * 7) % 256).collect(),
            max_tokens: 12,
            sampling: Sampling::greedy(),
            overflow: Overflow::Stop,
        })
        .collect();
    let mut ids = Vec::new();
    for wish in &wishes {
        let joined = batch.join_prompt(session(&model), &wish.prompt, wish.options());
        ids.push(joined.expect("there is room"));
    }
    let mut got: HashMap<SequenceId, Vec<u32>> = HashMap::new();
    while batch.is_running() {
        for event in batch.step() {
            match event.progress {
                Progress::Token(token) => got.entry(event.sequence).or_default().push(token.id),
                Progress::Ended { .. } => drop(batch.leave(event.sequence)),
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    for (id, wish) in ids.iter().zip(&wishes) {
        assert_eq!(got[id], wish.alone(&reference), "{id:?}");
    }
}
