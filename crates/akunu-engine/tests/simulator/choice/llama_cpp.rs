//! Every sampler against llama.cpp's on the same logits: what is kept, and with which probabilities.
//!
//! `fixtures/make_sampling_fixtures.py` has recorded what llama.cpp keeps.

use akunu_types::params::SamplingRule;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::bench::{Bench, Wanted, chi_squared};
use super::cpu;

#[derive(Deserialize)]
struct Fixture {
    logits: Vec<f32>,
    raised: Vec<f32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    settings: Map<String, Value>,
    history: Vec<u32>,
    ids: Vec<u32>,
    p: Vec<f64>,
}

/// The rule of a case.
fn wanted(case: &Case) -> Wanted {
    let mut rule = SamplingRule {
        seed_lo: 9,
        penalty_window: 64,
        ..SamplingRule::PLAIN
    };
    let mut biases = Vec::new();
    for (name, value) in &case.settings {
        let number = value.as_f64().unwrap_or(0.0) as f32;
        match name.as_str() {
            "temperature" => rule.temperature = number,
            "top_k" => rule.top_k = number as u32,
            "top_p" => rule.top_p = number,
            "min_p" => rule.min_p = number,
            "top_n_sigma" => rule.n_sigma = number,
            "typical_p" => rule.typical_p = number,
            "xtc_probability" => rule.xtc_probability = number,
            "xtc_threshold" => rule.xtc_threshold = number,
            "dynamic_range" => rule.dynamic_range = number,
            "dynamic_exponent" => rule.dynamic_exponent = number,
            "mirostat_tau" => rule.mirostat_tau = number,
            "mirostat_eta" => rule.mirostat_eta = number,
            "repetition_penalty" => rule.repetition = number,
            "penalty_window" => rule.penalty_window = number as u32,
            "frequency_penalty" => rule.frequency = number,
            "presence_penalty" => rule.presence = number,
            "dry_multiplier" => rule.dry_multiplier = number,
            "dry_base" => rule.dry_base = number,
            "dry_allowed_length" => rule.dry_allowed = number as u32,
            "logit_bias" => {
                biases = serde_json::from_value(value.clone()).expect("pairs");
            }
            other => panic!("{other} is no setting"),
        }
    }
    let history = if case.history.is_empty() {
        vec![0]
    } else {
        case.history.clone()
    };
    Wanted {
        rule,
        history,
        biases,
    }
}

/// Fails if a sampler keeps a token that llama.cpp's does not, in another order than llama.cpp's, or with other
/// probabilities.
#[test]
fn samplers_keep_what_those_of_llama_cpp_keep() {
    const N: usize = 20_000;
    let text = include_str!("../../fixtures/sampling/llama_cpp.json");
    let fixture: Fixture = serde_json::from_str(text).expect("the script's format");
    let n = fixture.logits.len();
    let mut bench = Bench::new(cpu(), n as u32, 250);
    assert!(fixture.cases.len() > 15);
    for case in &fixture.cases {
        let logits = if case.history.is_empty() {
            &fixture.logits
        } else {
            &fixture.raised
        };
        let drawn = bench.draws(logits, &wanted(case), N);
        let mut p = vec![0.0; n];
        for (&id, &share) in case.ids.iter().zip(&case.p) {
            p[id as usize] = share;
        }
        let stray = drawn.iter().find(|&&token| p[token as usize] == 0.0);
        assert_eq!(stray, None, "{:?}: llama.cpp leaves it out", case.settings);
        let (found, limit) = chi_squared(&drawn, &p);
        assert!(found < limit, "{:?}: {found} of {limit}", case.settings);
    }
}

/// The test above can fail: a case with another one's numbers does.
#[test]
fn another_setting_is_told_apart() {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../fixtures/sampling/llama_cpp.json"))
            .expect("the script's format");
    let mut bench = Bench::new(cpu(), fixture.logits.len() as u32, 250);
    let case = fixture
        .cases
        .iter()
        .find(|case| case.settings.contains_key("dynamic_range"));
    let case = case.expect("there is one");
    let mut other = wanted(case);
    other.rule.dynamic_exponent = 2.5;
    let drawn = bench.draws(&fixture.logits, &other, 20_000);
    let mut p = vec![0.0; fixture.logits.len()];
    for (&id, &share) in case.ids.iter().zip(&case.p) {
        p[id as usize] = share;
    }
    let (found, limit) = chi_squared(&drawn, &p);
    assert!(found > limit, "{found} of {limit}");
}
