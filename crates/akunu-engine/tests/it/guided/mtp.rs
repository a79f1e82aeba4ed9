//! Guesses of a model's own block for multi-token prediction.

use std::path::Path;

use akunu_engine::{
    EngineError, GenerateOptions, Grammar, Lookup, Model, ModelOptions, Mtp, Sampling, Session,
    SessionOptions, Speculation,
};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;

use super::talk::{alone, drawn, together, try_alone};
use crate::support::TinyModel;
use crate::support::exact_cpu::{cpu, exact_cpu};
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;

/// As in `reference`: rounded keys and values, and sums in another order.
const BOUND: f64 = 5e-7;
const MODELS: [&str; 2] = ["qwen35-mtp", "glm4moe-mtp"];

fn read(name: &str) -> Fixture {
    Fixture::read("transformers", name)
}

fn load(fixture: &Fixture) -> Model {
    let file = TinyModel::of(fixture);
    Model::load(&file.path, exact_cpu()).expect("a whole model")
}

fn open(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(128),
        chunk: 7,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn options(sampling: Sampling, mtp: Mtp, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling,
        max_tokens,
        ignore_end: true,
        speculation: Speculation {
            mtp,
            ..Speculation::off()
        },
        ..GenerateOptions::default()
    }
}

fn agrees(fixture: &Fixture, path: &Path, device: Box<dyn Device>) {
    let what = format!("{}, {}", path.display(), device.name());
    let model = Model::load(path, device).expect("a whole model");
    let (mut session, tokens) = (open(&model), &fixture.tokens);
    for (&n, wanted) in &fixture.mtp {
        session.feed(&tokens[..n]).expect("fits");
        let next = tokens[n % tokens.len()];
        let found = session.mtp_logits(next, 3).expect("there is a block");
        for (round, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let error = nmse(found, wanted);
            assert!(
                error < BOUND,
                "{what}, {n} tokens, round {round}: NMSE {error:e}"
            );
        }
    }
}

/// Fails when embedding and result change places, when the result is that of another token or without its norm, when a guess does not
/// go on from the one before, when the block sees other keys than its own, or when its tensors are looked for under wrong names.
#[test]
fn the_block_computes_what_its_formula_says() {
    for name in MODELS {
        let fixture = read(name);
        let folder = tempfile::tempdir().expect("a temporary folder");
        for path in [
            write_gguf(&fixture, folder.path()),
            write_folder(&fixture, folder.path()),
        ] {
            agrees(&fixture, &path, Box::new(TwinDevice::new()));
            agrees(&fixture, &path, cpu());
        }
    }
}

/// The block's guesses behind a session are those behind a new one with the same tokens, whatever happened to it: answers with guesses,
/// cuts, forks. Fails when its keys, or the result that it goes on from, are those of other tokens.
#[test]
fn the_block_follows_cuts_and_forks() {
    for name in MODELS {
        let model = load(&read(name));
        let assert_fresh = |session: &mut Session, what: &str| {
            let found = session.mtp_logits(7, 2).expect("there is a block");
            let mut fresh = open(&model);
            fresh.feed(session.tokens()).expect("fits");
            let wanted = fresh.mtp_logits(7, 2).expect("there is a block");
            for (found, wanted) in found.iter().zip(&wanted) {
                let error = nmse(found, wanted);
                assert!(error < 1e-9, "{name}, {what}: {error:e}");
            }
        };
        let go_on = |session: &mut Session, n| {
            let options = options(drawn(3, 1.0), Mtp::Always(3), n);
            let generation = session.generate(options).expect("fine");
            let said: Result<Vec<_>, _> = generation.collect();
            assert_eq!(said.expect("runs").len(), n);
            let tokens = session.tokens().to_vec();
            session.feed(&tokens).expect("fits");
        };
        let mut session = open(&model);
        let prompt: Vec<u32> = (0..70).map(|i| i * 29 % 256).collect();
        session.feed(&prompt).expect("fits");
        go_on(&mut session, 21);
        assert_fresh(&mut session, "after an answer");
        let mut fork = session.fork();
        go_on(&mut fork, 9);
        assert_fresh(&mut fork, "a fork");
        for len in [85, 64, 50] {
            session.truncate(len);
            let mut tokens = prompt[..session.tokens().len().min(prompt.len())].to_vec();
            tokens.extend([9, 8, 7]);
            session.feed(&tokens).expect("fits");
            assert_fresh(&mut session, "after a cut");
        }
        go_on(&mut session, 5);
        assert_fresh(&mut session, "after cuts and an answer");
        assert_fresh(&mut fork, "the fork after all that");
    }
}

/// Answers are those without guesses, alone and together, greedy and drawn, with penalties and as a grammar wants them, and there are
/// guesses. Which of them `auto` makes depends on time.
#[test]
fn answers_are_the_same_with_guesses_of_the_block() {
    for name in MODELS {
        let model = load(&read(name));
        let grammar = Grammar::regex(&model, "[a-f]{4} [0-9]{3}(xyz)+").expect("a pattern");
        let ways = [Sampling::greedy(), drawn(3, 1.0), drawn(4, 1.3)];
        for mtp in [Mtp::Always(1), Mtp::Always(3), Mtp::Auto] {
            let asked = (0..6u32).map(|at| {
                let prompt: Vec<u32> = (0..5 + 20 * at).map(|i| (i * 31 + at) % 256).collect();
                let mut of = options(ways[at as usize % 3], mtp, 30 - at as usize);
                of.grammar = (at > 3).then(|| grammar.clone());
                (prompt, of)
            });
            let asked: Vec<_> = asked.collect();
            let mut n_drafted = 0;
            let together = together(&model, &asked);
            for ((prompt, of), together) in asked.into_iter().zip(together) {
                let plain = GenerateOptions {
                    speculation: Speculation::off(),
                    ..of.clone()
                };
                let plain = alone(&model, &prompt, plain);
                let said = alone(&model, &prompt, of);
                assert_eq!(said.ids, plain.ids, "{name}, {mtp:?}, alone");
                assert_eq!(together.ids, plain.ids, "{name}, {mtp:?}, together");
                n_drafted += said.speculated.n_drafted() + together.speculated.n_drafted();
            }
            assert!(
                n_drafted > 30 || mtp == Mtp::Auto,
                "{name}, {mtp:?}: {n_drafted}"
            );
        }
    }
}

/// A model without a memory, whose block predicts exactly what it says: of its layers nothing reaches the residual stream, and of the
/// block only the embedding. `noise` is what the block's layer adds to it.
fn predictable(noise: f32) -> Model {
    let mut fixture = read("qwen35-mtp");
    for weight in &mut fixture.weights {
        let ends = |ends: &[&str]| ends.iter().any(|end| weight.gguf.ends_with(end));
        if ends(&["attn_output.weight", "ssm_out.weight", "ffn_down.weight"]) {
            weight.scale = if weight.gguf.starts_with("blk.4.ffn") {
                noise
            } else {
                0.0
            };
        } else if ends(&["output_norm.weight", "enorm.weight", "head_norm.weight"]) {
            weight.scale = 0.0;
        } else if ends(&["eh_proj.weight"]) {
            weight.is_identity = true;
        }
    }
    load(&fixture)
}

/// Fails when right guesses are dropped, wrong ones are kept, or the block guesses for another place.
#[test]
fn guesses_that_must_be_right_are_accepted() {
    for n in [1, 3] {
        for sampling in [Sampling::greedy(), drawn(7, 1.0)] {
            let model = predictable(0.0);
            let said = alone(&model, &[5, 6], options(sampling, Mtp::Always(n), 41));
            let counted = said.speculated;
            assert_eq!(counted.n_accepted(), counted.n_drafted());
            // The first token is chosen from the prompt's logits. The last steps need fewer guesses.
            let steps = 40usize.div_ceil(n + 1) as u32;
            assert_eq!(counted.steps + counted.n_drafted(), 40);
            assert!(counted.steps.abs_diff(steps) <= 1, "{counted:?}");
            let plain = alone(&model, &[5, 6], options(sampling, Mtp::Off, 41));
            assert_eq!(said.ids, plain.ids);
            assert_eq!(plain.speculated.n_drafted(), 0);
        }
    }
    let drawn = drawn(7, 1.0);
    let some = alone(
        &predictable(0.05),
        &[5, 6],
        options(drawn, Mtp::Always(3), 60),
    );
    let [right, all] = [some.speculated.n_accepted(), some.speculated.n_drafted()];
    assert!(right > 10 && right < all, "{right} of {all}");
}

/// A model without the block, or loaded without it, says so when its guesses are asked for, and `auto` goes on.
#[test]
fn a_model_without_the_block_says_so() {
    let with = read("qwen35-mtp");
    let file = TinyModel::of(&with);
    let without = ModelOptions {
        without_mtp: true,
        ..ModelOptions::default()
    };
    let skipped = Model::load_with(&file.path, exact_cpu(), without).expect("a whole model");
    for model in [load(&read("qwen35")), skipped] {
        let wanted = ": the model has no block for multi-token prediction (nextn, MTP) that could guess tokens, or it was loaded without";
        let asked = options(Sampling::greedy(), Mtp::Always(2), 5);
        let mut session = open(&model);
        session.feed(&[1, 2, 3]).expect("fits");
        let Err(error) = session.generate(asked).map(drop) else {
            panic!("there is no block");
        };
        assert!(matches!(error, EngineError::NoMtp { .. }));
        assert!(error.to_string().ends_with(wanted), "{error}");
        let auto = GenerateOptions {
            speculation: Speculation {
                lookup: Lookup::Off,
                ..Speculation::default()
            },
            max_tokens: 5,
            ignore_end: true,
            ..GenerateOptions::default()
        };
        let said = try_alone(&model, &[1, 2, 3], auto).expect("runs");
        assert_eq!((said.ids.len(), said.speculated.n_drafted()), (5, 0));
    }
}

/// A file that lacks a part of the block is refused by the name of the tensor. Loaded without the block it runs.
#[test]
fn a_missing_part_of_the_block_is_named() {
    let mut fixture = read("qwen35-mtp");
    let is_lost = |gguf: &str| gguf == "blk.4.nextn.hnorm.weight";
    fixture.weights.retain(|weight| !is_lost(&weight.gguf));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in [
        write_gguf(&fixture, folder.path()),
        write_folder(&fixture, folder.path()),
    ] {
        let Err(error) = Model::load(&path, exact_cpu()).map(drop) else {
            panic!("a tensor is missing");
        };
        let tensor = match path.is_dir() {
            true => "mtp.pre_fc_norm_hidden.weight",
            false => "blk.4.nextn.hnorm.weight",
        };
        assert!(error.to_string().contains(tensor), "{error}");
        let without = ModelOptions {
            without_mtp: true,
            ..ModelOptions::default()
        };
        Model::load_with(&path, exact_cpu(), without).expect("the rest is whole");
    }
}
