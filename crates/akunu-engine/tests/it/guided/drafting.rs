//! A draft model's guesses: how many are right, against theory, and what happens when it cannot guess.

use akunu_engine::{DraftModel, GenerateOptions, Lookup, Model, Sampling, Speculated, Speculation};

use super::talk::{alone, drawn, together};
use crate::support::drafts::{PLANTED_VOCAB, planted, without_layers};
use crate::support::exact_cpu::exact_cpu;
use crate::support::{TINY, TinyLlama, TinyModel, tiny_llama};

fn load(file: &TinyModel) -> Model {
    Model::load(&file.path, exact_cpu()).expect("a whole model")
}

/// As many guesses of a draft model in every step.
fn drafting(model: &Model, draft: &Model, n: usize) -> Speculation {
    Speculation {
        lookup: Lookup::Off,
        draft: Some(DraftModel::new(model, draft).expect("the same vocabulary")),
        draft_tokens: Some(n),
        ..Speculation::default()
    }
}

fn options(sampling: Sampling, speculation: Speculation, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling,
        speculation,
        max_tokens,
        ignore_end: true,
        ..GenerateOptions::default()
    }
}

/// Tokens of a step that checks k guesses, each of them right with probability a if those before it are: the mean and the
/// variance of one step.
///
/// ```text
/// P(T > i) = aⁱ for i ≤ k     E T = Σ aⁱ = (1 - aᵏ⁺¹) / (1 - a)     E T² = Σ (2i + 1) aⁱ
/// ```
fn tokens_a_step(a: f64, k: usize) -> (f64, f64) {
    let mean = (1.0 - a.powi(k as i32 + 1)) / (1.0 - a);
    let squares = (0..=k).map(|i| (2 * i + 1) as f64 * a.powi(i as i32));
    (mean, squares.sum::<f64>() - mean * mean)
}

/// How many standard deviations the tokens of all steps are from what a share of right guesses predicts.
fn distance(counted: &Speculated, a: f64, k: usize) -> f64 {
    let steps = f64::from(counted.steps);
    let (mean, variance) = tokens_a_step(a, k);
    let tokens = steps + f64::from(counted.n_accepted());
    (tokens - steps * mean) / (steps * variance).sqrt()
}

/// A planted share of right guesses gives the tokens a step that theory predicts. Fails when right guesses are dropped,
/// when wrong ones are kept, when the draft does not draw with the model's noise, or when the counters are wrong. That it
/// can fail is shown by predictions for other shares, which are far off.
#[test]
fn planted_guesses_give_the_tokens_that_theory_predicts() {
    let n_certain = 77;
    let vocab = f64::from(PLANTED_VOCAB);
    let a = 1.0 - f64::from(n_certain) / vocab * (1.0 - 1.0 / vocab);
    assert!((a - 0.7).abs() < 0.01);
    let (model, draft) = (load(&planted(0)), load(&planted(n_certain)));
    let sampling = Sampling {
        temperature: 1.0,
        top_k: 0,
        seed: 3,
        ..Sampling::greedy()
    };
    let plain = alone(&model, &[9], options(sampling, Speculation::off(), 900)).ids;
    for k in [1, 3, 7] {
        let of = options(sampling, drafting(&model, &draft, k), 900);
        let said = alone(&model, &[9], of);
        assert_eq!(said.ids, plain);
        let counted = said.speculated;
        let off = distance(&counted, a, k);
        assert!(
            off.abs() < 4.0,
            "{k} guesses: {off:.1} deviations, {counted:?}"
        );
        for other in [a - 0.15, a + 0.15] {
            let off = distance(&counted, other, k);
            assert!(
                off.abs() > 4.0,
                "{k} guesses at {other}: {off:.1} deviations"
            );
        }
    }
}

/// Fails when a draft draws with other noise than the model, or with another bias: it would then seldom guess right. The
/// same file drafts for itself, so that every guess is right.
#[test]
fn a_draft_model_guesses_with_the_same_noise() {
    let file = tiny_llama(TINY.dtype);
    let (model, draft) = (load(&file), load(&file));
    let prompt = [3, 1, 4, 1, 5, 9, 2, 6];
    for sampling in [Sampling::greedy(), drawn(5, 1.0), drawn(6, 1.2)] {
        let mut plain = options(sampling, Speculation::off(), 60);
        plain.logit_bias = (0..200).map(|id| (id, f32::NEG_INFINITY)).collect();
        let of = GenerateOptions {
            speculation: drafting(&model, &draft, 4),
            ..plain.clone()
        };
        let said = alone(&model, &prompt, of);
        assert_eq!(said.ids, alone(&model, &prompt, plain).ids);
        let counted = said.speculated;
        // All but the second choices.
        let n_first = counted.n_drafted() - counted.branched;
        assert_eq!(
            (n_first, counted.branches_accepted),
            (counted.n_accepted(), 0)
        );
        assert_eq!(counted.branched > 0, sampling.temperature == 0.0);
        assert!(counted.n_accepted() > 40, "{counted:?}");
    }
}

/// Answers of small random models of several architectures, alone and eight together, greedy and drawn: those with a bias
/// or a window too. Fails when guesses of a draft, some of them wrong, change an answer, or when none of its second choices
/// is right.
#[test]
fn answers_with_a_draft_are_the_same_for_every_architecture() {
    let mut second_choices = 0;
    for (arch, window) in [("qwen2", None), ("qwen3", None), ("gemma3", Some(40))] {
        let file = TinyLlama {
            arch,
            window,
            ..TINY
        };
        let file = file.write();
        let (model, draft) = (load(&file), load(&without_layers(&file.path, &[1])));
        let asked = |speculation: &dyn Fn() -> Speculation| -> Vec<(Vec<u32>, GenerateOptions)> {
            let of = |n: u32| {
                let sampling = Sampling {
                    temperature: if n.is_multiple_of(2) { 0.0 } else { 3.0 },
                    seed: u64::from(n),
                    ..Sampling::greedy()
                };
                let prompt = (0..30 + n).map(|i| (i * 29 + n * 53) % 256).collect();
                (prompt, options(sampling, speculation(), 8 + 4 * n as usize))
            };
            (0..8).map(of).collect()
        };
        let plain: Vec<Vec<u32>> = (asked(&Speculation::off).into_iter())
            .map(|(prompt, options)| alone(&model, &prompt, options).ids)
            .collect();
        let asked = asked(&|| drafting(&model, &draft, 3));
        let (mut drafted, mut accepted) = (0, 0);
        for ((prompt, options), plain) in asked.iter().zip(&plain) {
            let said = alone(&model, prompt, options.clone());
            assert_eq!(said.ids, *plain, "{arch}");
            drafted += said.speculated.n_drafted();
            accepted += said.speculated.n_accepted();
            second_choices += said.speculated.branches_accepted;
        }
        assert!(
            accepted > 5 && drafted > accepted,
            "{arch}: {accepted} of {drafted}"
        );
        let all = together(&model, &asked);
        for (said, plain) in all.iter().zip(&plain) {
            assert_eq!(said.ids, *plain, "{arch}, together");
        }
        assert!(all.iter().any(|said| said.speculated.n_drafted() > 0));
    }
    assert!(second_choices > 0);
}

/// Fails when an answer fails because a draft model has no pages left: there is nothing to guess then, and answers are the
/// same. Eight answers together need more than the draft's pool has.
#[test]
fn a_draft_model_without_pages_guesses_nothing() {
    let file = tiny_llama(TINY.dtype);
    let (model, draft) = (load(&file), load(&file));
    draft.limit_pool(256);
    let asked = |speculation: &dyn Fn() -> Speculation| -> Vec<(Vec<u32>, GenerateOptions)> {
        let of = |n: u32| {
            let prompt = (0..60 + n).map(|i| (i * 29 + n * 53) % 256).collect();
            let of = options(Sampling::greedy(), speculation(), 10 + 2 * n as usize);
            (prompt, of)
        };
        (0..8).map(of).collect()
    };
    let plain = together(&model, &asked(&Speculation::off));
    let said = together(&model, &asked(&|| drafting(&model, &draft, 2)));
    let ids = |said: &[super::talk::Said]| -> Vec<Vec<u32>> {
        said.iter().map(|said| said.ids.clone()).collect()
    };
    assert_eq!(ids(&said), ids(&plain));
    assert!(said.iter().any(|said| said.speculated.n_accepted() > 0));
    assert_eq!(draft.pages_in_use(), 0);
}
