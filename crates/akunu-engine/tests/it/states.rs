//! Layers with a state: after any change, a sequence continues like one that has read the same tokens from the start.

use akunu_engine::{
    EngineError, GenerateOptions, Lookup, Model, Overflow, Sampling, Session, SessionOptions,
    Speculation, StopReason,
};
use akunu_kernels::case::nmse;

use crate::support::TinyModel;
use crate::support::exact_cpu::exact_cpu;
use crate::support::fixture::Fixture;

const MODELS: [&str; 5] = ["lfm2", "qwen35", "granitehybrid", "falcon-h1", "qwen35-mtp"];
const CONTEXT: u32 = 1024;

fn load(name: &str) -> Model {
    let file = TinyModel::of(&Fixture::read("transformers", name));
    Model::load(&file.path, exact_cpu()).expect("a whole model")
}

fn open(model: &Model, context: u32) -> Session {
    let options = SessionOptions {
        context: Some(context),
        chunk: 96,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn prompt(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 29 + i / 7 * salt) % 256).collect()
}

fn options(n: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens: n,
        ignore_end: true,
        sampling: Sampling {
            temperature: 1.0,
            seed: 9,
            ..Sampling::greedy()
        },
        ..Default::default()
    }
}

fn go_on(session: &mut Session, options: GenerateOptions) -> Vec<u32> {
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// Its logits against those of a session that reads the same tokens for the first time.
fn assert_fresh(session: &mut Session, what: &str) {
    let tokens = session.tokens().to_vec();
    let found = session.logits().expect("some");
    let mut fresh = open(session.model(), CONTEXT);
    let wanted = fresh.feed(&tokens).and_then(|_| fresh.logits());
    let error = nmse(&found, &wanted.expect("some"));
    assert!(error < 1e-9, "{what}, {} tokens: {error:e}", tokens.len());
}

/// Prompts that end before, at and after the end of a page, longer answers than a state is kept for, and all of it again.
#[test]
fn answers_follow_prompts_of_any_length() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        for (n, more) in [(1, 3), (63, 2), (64, 70), (65, 0), (300, 300), (700, 5)] {
            session.feed(&prompt(n, 3)).expect("fits");
            go_on(&mut session, options(more));
            assert_fresh(&mut session, &format!("{name}, {n} and {more}"));
        }
    }
}

/// A session goes back to any place: what lies behind the last state before it is read again.
#[test]
fn a_session_goes_back() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(500, 5)).expect("fits");
        go_on(&mut session, options(100));
        for len in [599, 560, 512, 501, 500, 130, 64, 63, 1] {
            session.truncate(len);
            assert_fresh(&mut session, &format!("{name}, back to {len}"));
            let mut again = session.tokens().to_vec();
            again.extend(prompt(30, 11));
            session.feed(&again).expect("fits");
            assert_fresh(&mut session, &format!("{name}, another way from {len}"));
        }
    }
}

/// Text that ends within a chain: the state is beyond it, and the next question is answered all the same.
#[test]
fn an_answer_that_is_cut_is_gone_on_from() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(100, 7)).expect("fits");
        let mut generation = session.generate(options(200)).expect("fine");
        let cut: Vec<_> = generation.by_ref().take(13).collect();
        assert_eq!(cut.len(), 13);
        drop(generation);
        let mut tokens = session.tokens().to_vec();
        tokens.extend(prompt(9, 2));
        session.feed(&tokens).expect("fits");
        assert_fresh(&mut session, name);
    }
}

/// Two prompts with the same beginning share the state at the end of a page.
#[test]
fn equal_beginnings_share_states() {
    for name in MODELS {
        let model = load(name);
        let mut first = open(&model, CONTEXT);
        first.feed(&prompt(400, 3)).expect("fits");
        drop(first);
        let mut tokens = prompt(390, 3);
        tokens.extend(prompt(40, 8));
        let mut second = open(&model, CONTEXT);
        let fed = second.feed(&tokens).expect("fits");
        assert!(fed.reused >= 256, "{name}: only {} are shared", fed.reused);
        assert_eq!(fed.reused % 64, 0, "{name}");
        assert_fresh(&mut second, name);
    }
}

/// The two continue separately, in either order.
#[test]
fn a_fork_and_its_original_do_not_disturb_each_other() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(150, 3)).expect("fits");
        go_on(&mut session, options(20));
        let mut fork = session.fork();
        let [theirs, ours] = [40, 60].map(options);
        let [first, second] = [go_on(&mut session, ours), go_on(&mut fork, theirs)];
        assert_eq!(first[..40], second[..], "{name}: the same seed");
        assert_fresh(&mut session, &format!("{name}, original"));
        assert_fresh(&mut fork, &format!("{name}, fork"));
    }
}

/// Guesses that are wrong leave no trace.
#[test]
fn guesses_change_nothing() {
    for name in MODELS {
        let model = load(name);
        let repeated: Vec<u32> = (0..240).map(|i| i % 12 * 20).collect();
        let [plain, guessed] = [Lookup::Off, Lookup::On].map(|lookup| {
            let mut session = open(&model, CONTEXT);
            session.feed(&repeated).expect("fits");
            let options = GenerateOptions {
                speculation: Speculation {
                    lookup,
                    ..Speculation::off()
                },
                sampling: Sampling::greedy(),
                ..options(120)
            };
            let tokens = go_on(&mut session, options);
            assert_fresh(&mut session, name);
            tokens
        });
        assert_eq!(plain, guessed, "{name}");
    }
}

/// A full context drops its oldest tokens, and reads the others again: no state forgets a token.
#[test]
fn a_full_context_reads_what_stays_again() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, 128);
        session.feed(&prompt(100, 3)).expect("fits");
        let options = GenerateOptions {
            overflow: Overflow::Shift { keep: 4 },
            ..options(100)
        };
        let tokens = go_on(&mut session, options);
        assert_eq!(tokens.len(), 100, "{name}");
        assert_fresh(&mut session, name);
    }
}

/// A file has the state, and a session that is restored reads nothing again.
#[test]
fn a_saved_session_has_its_state() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(100, 3)).expect("fits");
        go_on(&mut session, options(10));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session");
        session.save(&path).expect("saved");
        let mut restored = open(&model, CONTEXT);
        restored.restore(&path).expect("restored");
        assert_eq!(restored.tokens(), session.tokens());
        let mut tokens = restored.tokens().to_vec();
        tokens.push(7);
        let fed = restored.feed(&tokens).expect("fits");
        assert!(
            fed.processed <= 2,
            "{name}: {} are read again",
            fed.processed
        );
        assert_fresh(&mut restored, name);
        let whole = std::fs::read(&path).expect("there");
        std::fs::write(&path, &whole[..whole.len() - 40]).expect("written");
        let error = restored.restore(&path).expect_err("it is cut");
        assert!(matches!(error, EngineError::SavedSession { .. }), "{error}");
        assert_fresh(&mut restored, name);
    }
}

/// A thinking model's answer is longer than there is room for its states, and the next prompt has all of this one but the answer and
/// the tokens that opened it. Breaks when the state of the prompt is given up for those of the answer.
#[test]
fn the_next_prompt_goes_on_from_this_one_after_any_answer() {
    for name in MODELS {
        let model = load(name);
        model.limit_pool(2048);
        let mut session = open(&model, 2048);
        session.feed(&prompt(130, 3)).expect("fits");
        go_on(&mut session, options(1700));
        let mut tokens = prompt(127, 3);
        tokens.extend(prompt(40, 8));
        let fed = session.feed(&tokens).expect("fits");
        assert_eq!((fed.reused, fed.processed), (64, 103), "{name}");
        assert_fresh(&mut session, name);
    }
}

/// An edit in the middle of a long prompt costs what comes after it, and at most a piece of the prompt more.
#[test]
fn an_edit_costs_what_comes_after_it() {
    for name in MODELS {
        let model = load(name);
        let mut session = open(&model, CONTEXT);
        let mut tokens = prompt(1000, 3);
        session.feed(&tokens).expect("fits");
        for edit in [900, 500, 130] {
            tokens[edit] = (tokens[edit] + 1) % 256;
            let fed = session.feed(&tokens).expect("fits");
            let after = 1000 - edit;
            let most = after + 96 + 64;
            assert!(
                (after..=most).contains(&fed.processed),
                "{name}, edit at {edit}: {} are read",
                fed.processed
            );
        }
        assert_fresh(&mut session, name);
    }
}

/// A state that grows beyond all numbers, at the end of a prompt and in an answer. Breaks without a check, and when another layer
/// is named.
#[test]
fn a_state_that_becomes_infinite_is_named() {
    for (name, layer) in [("qwen35", 1), ("nemotron_h", 4)] {
        let mut fixture = Fixture::read("transformers", name);
        let rates = format!("blk.{layer}.ssm_a");
        let rates = fixture
            .weights
            .iter_mut()
            .find(|weight| weight.gguf == rates);
        let rates = rates.expect("there are some");
        (rates.minus_exp, rates.scale, rates.offset) = (false, 0.5, 1.0);
        let file = TinyModel::of(&fixture);
        let model = Model::load(&file.path, exact_cpu()).expect("a whole model");
        let wanted = format!(
            ": the state of layer {layer} has become NaN or infinite, so the model's weights are damaged; fetch the file again"
        );
        let mut session = open(&model, CONTEXT);
        let error = session.feed(&prompt(700, 3)).expect_err("it grows");
        assert!(error.to_string().ends_with(&wanted), "{error}");
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(3, 3)).expect("it is still small");
        let generation = session.generate(options(900)).expect("fine");
        let error = generation.filter_map(Result::err).next();
        let error = error.expect("it grows").to_string();
        assert!(error.ends_with(&wanted), "{error}");
    }
}

/// A dropped session releases its blocks.
#[test]
fn states_are_given_back() {
    let model = load("lfm2");
    let before = model.pages_in_use();
    for n in 0..40 {
        let mut session = open(&model, CONTEXT);
        session.feed(&prompt(70 + n, n)).expect("fits");
        let mut generation = session.generate(options(5)).expect("fine");
        while generation.by_ref().next().is_some() {}
        assert_eq!(generation.stop(), Some(StopReason::MaxTokens));
    }
    assert_eq!(model.pages_in_use(), before);
}
