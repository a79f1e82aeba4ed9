//! The cases of `penalties`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::sampling::cases::outputs;

/// Tokens of the vocabulary of the cases.
const VOCABULARY: u32 = 100;

pub fn all() -> Vec<Case> {
    let mut rng = Rng::new(4);
    let many: Vec<u32> = (0..600).map(|_| rng.below(90)).collect();
    let of = |window: u32| SamplingRule {
        repetition: 1.5,
        penalty_window: window,
        ..SamplingRule::PLAIN
    };
    let counted = SamplingRule {
        frequency: 0.25,
        presence: -0.75,
        ..of(0)
    };
    let after = |prompt: u32| SamplingRule {
        penalty_start: prompt,
        ..counted
    };
    let biased = SamplingRule {
        n_biases: 5,
        ..SamplingRule::PLAIN
    };
    let dry = SamplingRule {
        dry_multiplier: 0.8,
        dry_base: 1.75,
        dry_allowed: 2,
        ..SamplingRule::PLAIN
    };
    // 7 8 9 stands before, followed by 1, and 8 9 once more, followed by 2 and by 3; 95 is a breaker.
    let run = [4, 7, 8, 9, 1, 8, 9, 2, 5, 8, 9, 3, 95, 6, 7, 8, 9];
    let broken = [7, 8, 9, 1, 7, 95, 8, 9, 95, 8, 9];
    let again: Vec<u32> = (0..700).map(|i| i % 3).collect();
    let all = SamplingRule {
        n_biases: 3,
        dry_multiplier: 2.0,
        dry_base: 1.1,
        dry_allowed: 1,
        ..counted
    };
    let some = [
        Some((2, 40)),
        Some((0, 200)),
        None,
        Some((1, 70)),
        Some((3, 5)),
    ];
    let one = |length: u32| [Some((0, length))];
    vec![
        case("one token", &[3], &[of(0)], &one(1)),
        case(
            "repeated, beyond the vocabulary",
            &[5, 9, 5, 5, 1000, 9, 99],
            &[of(0)],
            &one(7),
        ),
        case("no token yet", &[7], &[of(0)], &one(0)),
        case("many duplicates", &many, &[of(0)], &one(600)),
        case("window of 64", &many, &[of(64)], &one(600)),
        case(
            "a window larger than the history",
            &[5, 7, 5],
            &[of(64)],
            &one(3),
        ),
        case(
            "only what follows a prompt",
            &many,
            &[after(590)],
            &one(600),
        ),
        case(
            "a prompt, and a window that is larger than the answer",
            &many,
            &[SamplingRule {
                penalty_window: 64,
                ..after(580)
            }],
            &one(600),
        ),
        case(
            "nothing after the prompt yet",
            &many,
            &[after(600)],
            &one(600),
        ),
        case(
            "a prompt longer than the row",
            &many,
            &[after(601)],
            &one(600),
        ),
        case(
            "a prompt in a history that began again",
            &many,
            &[after(1100)],
            &one(1230),
        ),
        case(
            "DRY does not search the prompt",
            &run,
            &[SamplingRule {
                penalty_start: 5,
                ..dry
            }],
            &one(17),
        ),
        case("a history that began again", &many, &[of(64)], &one(1230)),
        case("more tokens than it keeps", &many, &[of(0)], &one(5000)),
        case("frequency and presence", &many, &[counted], &one(600)),
        case("biases", &[1], &[biased], &one(1)),
        case(
            "more biases than there is room for",
            &[1],
            &[SamplingRule {
                n_biases: 99,
                ..biased
            }],
            &one(1),
        ),
        case("DRY", &run, &[dry], &one(17)),
        case(
            "DRY in a window",
            &run,
            &[SamplingRule {
                dry_window: 12,
                ..dry
            }],
            &one(17),
        ),
        case("DRY ends at a breaker", &broken, &[dry], &one(11)),
        case(
            "DRY of one token",
            &many,
            &[SamplingRule {
                dry_allowed: 1,
                ..dry
            }],
            &one(600),
        ),
        case(
            "DRY of a long repetition",
            &again,
            &[SamplingRule {
                dry_base: 1.2,
                ..dry
            }],
            &one(700),
        ),
        case("all at once", &many, &[all], &one(600)),
        case(
            "a rule each",
            &many,
            &[of(0), counted, SamplingRule::PLAIN, dry],
            &some,
        ),
        case("only idle rows", &many, &[of(0)], &[None, None]),
    ]
}

/// A few operations each: nearly exact.
fn case(label: &str, history: &[u32], rules: &[SamplingRule], of: &[Option<(u32, u32)>]) -> Case {
    let table = outputs(of);
    let n = rules.len() as u32;
    let history: Vec<u32> = (0..rules.len())
        .flat_map(|_| history.iter().copied())
        .collect();
    let params = PenaltiesParams {
        n_rows: of.len() as u32,
        vocab_size: VOCABULARY,
        history_stride: history.len() as u32 / n,
        n_sequences: n,
        row_capacity: table.rows.len() as u32,
        bias_stride: 6,
        ..Default::default()
    };
    let mut rng = Rng::new(5);
    let bias_tokens = [3, 99, 100, 41, 0, 77].repeat(rules.len());
    let words = breaker_words(&params) as usize;
    let mut breakers = vec![0u32; words * rules.len()];
    for own in breakers.chunks_exact_mut(words) {
        own[95 / 32] |= 1 << (95 % 32);
    }
    Case::new(label, &params, 1e-13)
        .bind(&rng.floats(of.len() * VOCABULARY as usize, 4.0))
        .bind(&table.outputs)
        .bind(&table.rows)
        .bind(rules)
        .bind(&history)
        .bind(&bias_tokens)
        .bind(&rng.floats(bias_tokens.len(), 5.0))
        .bind(&breakers)
}
