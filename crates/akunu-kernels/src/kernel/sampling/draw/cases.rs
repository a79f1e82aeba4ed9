//! The cases of `draw`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::sampling::cases::outputs;

/// Who draws from what.
struct Setting {
    label: &'static str,
    vocab_size: u32,
    /// The rule of each sequence.
    rules: Vec<SamplingRule>,
    /// Sequence and length of each row; `None` for an idle one.
    rows: Vec<Option<(u32, u32)>>,
    history_stride: u32,
    /// What is done to the logits.
    change: fn(&mut [f32]),
}

pub fn all() -> Vec<Case> {
    let of = |label, rule: SamplingRule| Setting {
        label,
        vocab_size: 1103,
        rules: vec![rule],
        rows: vec![Some((0, 4))],
        history_stride: 8,
        change: |_| (),
    };
    let mut settings: Vec<Setting> = rules()
        .into_iter()
        .map(|(label, rule)| of(label, rule))
        .collect();
    let nucleus = SamplingRule {
        top_p: 0.95,
        ..SEEDED
    };
    let top_k = SamplingRule {
        top_k: 5,
        top_p: 0.9,
        ..SEEDED
    };
    let greedy = SamplingRule {
        temperature: 0.0,
        ..SEEDED
    };
    let moving = SamplingRule {
        mirostat_tau: 2.0,
        mirostat_eta: 0.2,
        ..SEEDED
    };
    settings.extend([
        Setting {
            vocab_size: 1,
            ..of("one token", SEEDED)
        },
        Setting {
            history_stride: 0,
            ..of("no history", SEEDED)
        },
        Setting {
            change: |logits| logits[20..].fill(f32::NEG_INFINITY),
            ..of("most forbidden", nucleus)
        },
        Setting {
            change: |logits| logits.fill(f32::NEG_INFINITY),
            ..of("all forbidden", nucleus)
        },
        Setting {
            change: |logits| {
                logits.fill(f32::NAN);
                (logits[17], logits[90]) = (1.0, 1.5);
            },
            ..of("NaN is no candidate", SEEDED)
        },
        Setting {
            change: |logits| (logits[17], logits[90]) = (f32::INFINITY, f32::INFINITY),
            ..of("inf", top_k)
        },
        Setting {
            change: |logits| logits[300..320].fill(9.0),
            ..of("ties at the limit are kept", top_k)
        },
        Setting {
            change: |logits| logits.iter_mut().for_each(|l| *l *= 200.0),
            ..of("far apart", nucleus)
        },
        Setting {
            rules: vec![top_k, SEEDED, greedy, moving],
            rows: vec![
                Some((1, 3)),
                None,
                Some((0, 50)),
                Some((3, 1)),
                Some((2, 9)),
            ],
            ..of("a rule each", SEEDED)
        },
        Setting {
            rows: vec![None, None],
            ..of("only idle rows", SEEDED)
        },
    ]);
    settings.iter().map(case).collect()
}

/// Tokens are compared exactly; mirostat's bound moves by a logarithm or two.
fn case(s: &Setting) -> Case {
    let table = outputs(&s.rows);
    let params = DrawParams {
        n_rows: s.rows.len() as u32,
        vocab_size: s.vocab_size,
        history_stride: s.history_stride,
        n_sequences: s.rules.len() as u32,
        row_capacity: table.rows.len() as u32,
        ..Default::default()
    };
    let mut rng = Rng::new(31);
    let mut logits = Vec::new();
    for _ in &s.rows {
        // A sum of three is about normal, as logits are.
        let n = s.vocab_size as usize;
        let [a, b, c] = [rng.floats(n, 3.0), rng.floats(n, 3.0), rng.floats(n, 3.0)];
        let mut row: Vec<f32> = (0..n).map(|i| a[i] + b[i] + c[i]).collect();
        (s.change)(&mut row);
        logits.extend(row);
    }
    Case::new(s.label, &params, 1e-10)
        .bind(&logits)
        .bind(&vec![u32::MAX; s.rows.len()])
        .bind(&vec![55u32; s.rules.len() * s.history_stride as usize])
        .bind(&table.outputs)
        .bind(&table.rows)
        .bind(&s.rules)
        .bind(&vec![6.0f32; s.rules.len()])
}

pub const SEEDED: SamplingRule = SamplingRule {
    seed_lo: 42,
    seed_hi: 7,
    ..SamplingRule::PLAIN
};

/// The rules of the cases.
fn rules() -> Vec<(&'static str, SamplingRule)> {
    let rule = SEEDED;
    vec![
        ("nothing is cut", rule),
        (
            "cold",
            SamplingRule {
                temperature: 0.3,
                ..rule
            },
        ),
        (
            "hot",
            SamplingRule {
                temperature: 10.0,
                ..rule
            },
        ),
        (
            "the best",
            SamplingRule {
                temperature: 0.0,
                ..rule
            },
        ),
        (
            "n sigma",
            SamplingRule {
                n_sigma: 1.2,
                ..rule
            },
        ),
        ("top k 1", SamplingRule { top_k: 1, ..rule }),
        ("top k 7", SamplingRule { top_k: 7, ..rule }),
        ("top k 900", SamplingRule { top_k: 900, ..rule }),
        (
            "typical",
            SamplingRule {
                typical_p: 0.4,
                ..rule
            },
        ),
        (
            "top p",
            SamplingRule {
                top_p: 0.73,
                ..rule
            },
        ),
        (
            "nearly all of top p",
            SamplingRule {
                top_p: 0.9985,
                ..rule
            },
        ),
        (
            "min p",
            SamplingRule {
                min_p: 0.21,
                ..rule
            },
        ),
        (
            "XTC",
            SamplingRule {
                xtc_probability: 1.0,
                xtc_threshold: 0.03,
                ..rule
            },
        ),
        (
            "XTC by chance",
            SamplingRule {
                xtc_probability: 0.5,
                xtc_threshold: 0.02,
                ..rule
            },
        ),
        (
            "warmer with entropy",
            SamplingRule {
                dynamic_range: 0.7,
                dynamic_exponent: 1.4,
                ..rule
            },
        ),
        (
            "frozen without entropy",
            SamplingRule {
                top_k: 2,
                dynamic_range: 2.0,
                dynamic_exponent: 60.0,
                ..rule
            },
        ),
        (
            "mirostat",
            SamplingRule {
                mirostat_tau: 3.1,
                mirostat_eta: 0.1,
                ..rule
            },
        ),
        (
            "mirostat, cold",
            SamplingRule {
                mirostat_tau: 1.5,
                mirostat_eta: 0.3,
                temperature: 0.8,
                ..rule
            },
        ),
        (
            "a conversation",
            SamplingRule {
                top_k: 40,
                top_p: 0.95,
                min_p: 0.1,
                temperature: 0.7,
                ..rule
            },
        ),
        (
            "everything",
            SamplingRule {
                n_sigma: 2.0,
                top_k: 200,
                typical_p: 0.97,
                top_p: 0.9,
                min_p: 0.01,
                xtc_probability: 1.0,
                xtc_threshold: 0.06,
                dynamic_range: 0.5,
                temperature: 1.2,
                ..rule
            },
        ),
    ]
}
