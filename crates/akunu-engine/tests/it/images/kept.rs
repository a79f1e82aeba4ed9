//! Images in sessions and batches: shared, forked, saved, cut, paused and shifted; never taken for different images with the same
//! tokens.

use std::ops::ControlFlow;

use akunu_engine::{
    CancelFlag, GenerateOptions, Lookup, Model, Overflow, Progress, Prompt, Sampling, Session,
    Speculation,
};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;

use crate::support::exact_cpu::exact_cpu;
use crate::support::pictured::{load, long, open, read};

/// Slots of a page.
const PAGE: usize = 64;

/// As in `reference`: sums of pieces of other lengths may put a key on the other side of its rounding to halves. Another image
/// gives more than 1e-3.
const BOUND: f64 = 5e-7;

/// How far the logits of two sessions are apart.
fn error(a: &mut Session, b: &mut Session) -> f64 {
    let [a, b] = [a, b].map(|session| session.logits().expect("some"));
    nmse(&a, &b)
}

/// Models of all kinds, one of them with states, and how many further feature maps an image has.
fn models() -> Vec<(Model, usize)> {
    ["llama", "gemma3", "qwen2vl", "qwen3vl", "lfm2", "qwen35"]
        .map(|name| (load(name, exact_cpu()), read(name).deep))
        .into()
}

fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        ignore_end: true,
        sampling: Sampling::greedy(),
        ..GenerateOptions::default()
    }
}

fn go_on(session: &mut Session, n: usize) -> Vec<u32> {
    let generation = session.generate(options(n)).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// The answer to a prompt, and the logits before it.
fn alone(model: &Model, prompt: &Prompt) -> (Vec<f32>, Vec<u32>) {
    let mut session = open(model, 32);
    session.feed_prompt(prompt.clone()).expect("it fits");
    (session.logits().expect("some"), go_on(&mut session, 8))
}

/// Fails when pages are named by their tokens alone: both prompts have the same tokens.
#[test]
fn only_the_same_image_is_shared() {
    for (model, deep) in models() {
        let [a, b] = [0, 1].map(|number| long(number, deep, 100));
        let mut first = open(&model, 32);
        let fed = first.feed_prompt(a.clone()).expect("it fits");
        assert_eq!(fed.reused, 0);
        let mut second = open(&model, 32);
        let fed = second.feed_prompt(a.clone()).expect("it fits");
        assert_eq!(fed.reused, PAGE, "the page of the image");
        assert!(error(&mut second, &mut first) < BOUND);
        let mut other = open(&model, 32);
        let fed = other.feed_prompt(b.clone()).expect("it fits");
        assert_eq!(fed.reused, 0, "another image");
        assert!(error(&mut other, &mut first) > 1e-3);
        let mut plain = open(&model, 32);
        let fed = plain.feed(&a.tokens).expect("it fits");
        assert_eq!(fed.reused, 0, "no image");
        // The same session with another image keeps what comes before it.
        let fed = first.feed_prompt(b.clone()).expect("it fits");
        assert!(fed.reused <= PAGE);
        assert!(error(&mut first, &mut other) < BOUND);
    }
}

/// The next turn of a conversation reads neither the image nor the answer again.
#[test]
fn the_next_turn_reads_only_what_is_new() {
    for (model, deep) in models() {
        let mut prompt = long(0, deep, 40);
        let mut session = open(&model, 32);
        session.feed_prompt(prompt.clone()).expect("it fits");
        let answer = go_on(&mut session, 8);
        prompt.tokens.extend(answer);
        prompt.tokens.extend([3, 1, 4]);
        let fed = session.feed_prompt(prompt.clone()).expect("it fits");
        assert!(fed.processed <= 4, "{fed:?}");
        let mut whole = open(&load_again(&model), 64);
        whole.feed_prompt(prompt).expect("it fits");
        assert_eq!(go_on(&mut whole, 8), go_on(&mut session, 8));
    }
}

/// The same model with nothing kept.
fn load_again(model: &Model) -> Model {
    load(model.config().arch, exact_cpu())
}

#[test]
fn a_fork_goes_on_with_the_image() {
    for (model, deep) in models() {
        let mut session = open(&model, 32);
        session.feed_prompt(long(0, deep, 40)).expect("it fits");
        let mut fork = session.fork();
        let answer = go_on(&mut session, 8);
        assert_eq!(go_on(&mut fork, 8), answer);
        // The tokens behind the image can be read again.
        fork.truncate(40);
        assert_eq!(go_on(&mut fork, 8), answer);
    }
}

/// A session that goes back into an image knows only a part of it, and reads the rest when it is fed again.
#[test]
fn a_session_goes_back_into_an_image() {
    for (model, deep) in models() {
        let prompt = long(0, deep, 40);
        let (_, answer) = alone(&model, &prompt);
        let mut session = open(&load_again(&model), 32);
        session.feed_prompt(prompt.clone()).expect("it fits");
        session.truncate(9);
        assert_eq!(session.tokens().len(), 9);
        let part = session.logits().expect("after a row of the image");
        let mut again = open(&load_again(&model), 32);
        again.feed_prompt(prompt.clone()).expect("it fits");
        again.truncate(9);
        assert_eq!(again.logits().expect("the same"), part);
        // Text after a part of an image is possible too.
        let odd = go_on(&mut again, 4);
        assert_eq!(odd.len(), 4);
        session.feed_prompt(prompt).expect("it fits");
        assert_eq!(go_on(&mut session, 8), answer);
    }
}

#[test]
fn a_saved_session_has_its_images() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.session");
    for (model, deep) in models() {
        let prompt = long(0, deep, 40);
        let mut session = open(&model, 32);
        session.feed_prompt(prompt.clone()).expect("it fits");
        session.save(&path).expect("disk");
        let answer = go_on(&mut session, 8);
        let mut restored = open(&load_again(&model), 32);
        restored.restore(&path).expect("whole");
        assert_eq!(go_on(&mut restored, 8), answer);
        let mut longer = prompt.clone();
        longer.tokens.push(9);
        restored.restore(&path).expect("whole");
        let fed = restored.feed_prompt(longer).expect("it fits");
        assert_eq!(fed.reused, 40, "the image is known");
        // A part of the image is read again, with the features of the file.
        restored.truncate(10);
        let mut fresh = open(&load_again(&model), 32);
        fresh.feed_prompt(prompt.clone()).expect("it fits");
        fresh.truncate(10);
        let found = error(&mut restored, &mut fresh);
        assert!(found < BOUND, "{}: NMSE {found:e}", model.config().arch);
        restored.restore(&path).expect("whole");
        let fed = restored.feed_prompt(long(1, deep, 40)).expect("it fits");
        assert!(fed.reused <= 5, "another image");
    }
}

/// Every file that is cut or changed in the images is refused, even with a checksum that fits.
#[test]
fn damaged_images_of_a_file_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.session");
    let model = load("llama", Box::new(TwinDevice::new()));
    let mut session = open(&model, 32);
    session.feed_prompt(long(0, 0, 40)).expect("it fits");
    session.save(&path).expect("disk");
    let whole = std::fs::read(&path).expect("a file");
    // Header and tokens, then: n_images, slot, rows, height, width, n_rows, n_deep, features.
    let images = 88 + 4 * 40;
    let word = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[images + at..][..4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let nan = f32::NAN.to_bits();
    let damaged = [
        word(0, 2),
        word(0, u32::MAX),
        word(0, 0),
        word(4, 30),
        word(4, u32::MAX),
        word(8, 13),
        word(8, 0),
        word(12, 5),
        word(20, 11),
        word(20, u32::MAX),
        word(24, 1),
        word(24, u32::MAX),
        word(28, nan),
    ];
    let tokens = session.tokens().to_vec();
    for (at, bytes) in damaged.into_iter().enumerate() {
        std::fs::write(&path, with_checksum(bytes)).expect("disk");
        let error = session.restore(&path).expect_err("damaged");
        assert!(error.to_string().contains("damaged"), "{at}: {error}");
        assert_eq!(session.tokens(), tokens, "it is as it was");
    }
    let cut = whole[..images + 40].to_vec();
    std::fs::write(&path, with_checksum(cut)).expect("disk");
    session.restore(&path).expect_err("cut");
    std::fs::write(&path, whole).expect("disk");
    session.restore(&path).expect("whole");
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let len = bytes.len() - 32;
    let checksum = Sha256::digest(&bytes[..len]);
    bytes[len..].copy_from_slice(&checksum);
    bytes
}

/// Fails when a reading that ends early leaves images behind that are not among the tokens.
#[test]
fn a_reading_that_is_ended_goes_on_later_or_gives_way() {
    for (model, deep) in models() {
        let prompt = long(0, deep, 100);
        let (_, answer) = alone(&load_again(&model), &prompt);
        for n_chunks in [0, 1, 2] {
            let mut session = open(&model, 16);
            let mut n = 0;
            let watch = &mut |_| {
                n += 1;
                match n > n_chunks {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let flag = CancelFlag::default();
            let ended = session.feed_prompt_until(prompt.clone(), &flag, watch);
            ended.expect_err("it was ended");
            let mut text = session.fork();
            // Text takes the place of the rest.
            let tokens = [1, 2, 3, 4, 5, 6, 7, 8];
            text.feed(&tokens).expect("it fits");
            let mut fresh = open(&load_again(&model), 16);
            fresh.feed(&tokens).expect("it fits");
            assert_eq!(text.logits().expect("some"), fresh.logits().expect("some"));
            session.feed_prompt(prompt.clone()).expect("it fits");
            assert_eq!(go_on(&mut session, 8), answer);
        }
    }
}

/// Beside others, and where pages are so few that a sequence must read its image again.
#[test]
fn in_a_batch_the_answers_are_the_same() {
    for (model, deep) in models() {
        let prompts = [0, 1, 2].map(|number| long(number, deep, 60));
        let wanted = prompts.each_ref().map(|prompt| {
            let mut session = open(&load_again(&model), 32);
            session.feed_prompt(prompt.clone()).expect("it fits");
            go_on(&mut session, 30)
        });
        for pool in [None, Some(256)] {
            let model = load_again(&model);
            if let Some(positions) = pool {
                model.limit_pool(positions);
            }
            let mut batch = model.batch(3).expect("memory");
            let ids = prompts.each_ref().map(|prompt| {
                let session = open(&model, 32);
                let joined = batch.join_prompt(session, prompt.clone(), options(30));
                joined.expect("there is room")
            });
            let mut found = vec![Vec::new(); 3];
            while batch.is_running() {
                for event in batch.step() {
                    let at = ids.iter().position(|id| *id == event.sequence);
                    match event.progress {
                        Progress::Token(token) => found[at.expect("ours")].push(token.id),
                        Progress::Failed(error) => panic!("{}: {error}", model.config().arch),
                        Progress::Ended { .. } => drop(batch.leave(event.sequence)),
                        _ => {}
                    }
                }
            }
            assert_eq!(found, wanted, "{pool:?}");
        }
    }
}

/// A full context drops an image as a whole, or keeps it as a whole and reads again what moves. Fails when an image is cut, or when
/// a different one replaces it.
#[test]
fn a_full_context_drops_whole_images() {
    for (model, deep) in models() {
        let prompt = long(0, deep, 120);
        // The image has the slots 5 to 17.
        for (keep, is_kept) in [(0, false), (3, false), (9, true)] {
            let mut session = open(&model, 32);
            session.feed_prompt(prompt.clone()).expect("it fits");
            let more = GenerateOptions {
                overflow: Overflow::Shift { keep },
                ..options(20)
            };
            let generation = session.generate(more).expect("fine");
            let answer: Vec<u32> = generation.map(|token| token.expect("runs").id).collect();
            assert_eq!(answer.len(), 20);
            let rest = Prompt {
                tokens: session.tokens().to_vec(),
                images: prompt.images.iter().filter(|_| is_kept).cloned().collect(),
            };
            let mut fresh = open(&load_again(&model), 32);
            fresh.feed_prompt(rest).expect("it fits");
            assert_eq!(go_on(&mut session, 8), go_on(&mut fresh, 8), "keep {keep}");
        }
    }
}

/// A full context whose image stays before what moves.
#[test]
fn text_behind_an_image_moves_without_it() {
    for (model, deep) in models() {
        let mut session = open(&model, 32);
        session.feed_prompt(long(0, deep, 120)).expect("it fits");
        let more = GenerateOptions {
            overflow: Overflow::Shift { keep: 30 },
            ..options(40)
        };
        let generation = session.generate(more).expect("fine");
        let answer: Vec<u32> = generation.map(|token| token.expect("runs").id).collect();
        assert_eq!(answer.len(), 40);
        let kept = &session.tokens()[..30];
        assert_eq!(kept, &long(0, deep, 120).tokens[..30]);
    }
}

/// Guesses behind an image have the positions of the text. Fails when the positions of a tree are its slots.
#[test]
fn guesses_change_nothing() {
    let mut n_guessing = 0;
    for (model, deep) in models() {
        let mut prompt = long(0, deep, 60);
        for (at, token) in prompt.tokens[17..].iter_mut().enumerate() {
            *token = at as u32 % 6 * 20;
        }
        let [plain, guessed] = [Lookup::Off, Lookup::On].map(|lookup| {
            let mut session = open(&load_again(&model), 64);
            session.feed_prompt(prompt.clone()).expect("it fits");
            let more = GenerateOptions {
                speculation: Speculation {
                    lookup,
                    ..Speculation::off()
                },
                ..options(60)
            };
            let mut generation = session.generate(more).expect("fine");
            let tokens: Vec<u32> = (&mut generation)
                .map(|token| token.expect("runs").id)
                .collect();
            let has_guessed = generation.speculated().steps > 0;
            n_guessing += u32::from(has_guessed && model.config().has_axes());
            tokens
        });
        assert_eq!(plain, guessed);
    }
    assert!(n_guessing > 0, "no model with axes has guessed");
}
