//! Log probabilities against the softmax of the logits in f64.

use akunu_engine::{GenerateOptions, Sampling, SessionOptions, Token};
use akunu_tokenizer::EncodeOptions;

use super::smollm2;

/// What the model says by itself, whatever penalties and cuts there are. Fails if a log probability is that of another
/// step of a chain, or was taken after a penalty or a temperature.
#[test]
fn log_probabilities_are_those_of_the_raw_logits() {
    let model = smollm2();
    let encode = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let prompt = model.tokenizer().encode("The best fruit is", encode);
    let options = |max_chain| GenerateOptions {
        max_tokens: 9,
        max_chain,
        ignore_end: true,
        logprobs: Some(5),
        logit_bias: vec![(260, 3.0)],
        sampling: Sampling {
            temperature: 0.8,
            top_k: 50,
            repetition_penalty: 1.5,
            seed: 4,
            ..Sampling::greedy()
        },
        ..GenerateOptions::default()
    };
    let generate = |max_chain| -> Vec<Token> {
        let mut session = model.session(SessionOptions::default()).expect("memory");
        session.feed(&prompt).expect("fits");
        let tokens = session
            .generate(options(max_chain))
            .expect("options are fine");
        tokens.map(|token| token.expect("runs")).collect()
    };
    let tokens = generate(8);
    assert_eq!(generate(1), tokens, "in chains of another length");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    let mut text = prompt.clone();
    for token in &tokens {
        session.feed(&text).expect("fits");
        let logits = session.logits().expect("there are some");
        let of = token.logprobs.as_ref().expect("asked for");
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        let wanted = |id: u32| f64::from(logits[id as usize]) - sum.ln();
        // A row of a prompt is rounded otherwise than a single row.
        let near = |found: f32, id: u32| (f64::from(found) - wanted(id)).abs() < 2e-3;
        assert!(
            near(of.chosen, token.id),
            "{} instead of {}",
            of.chosen,
            wanted(token.id)
        );
        assert_eq!(of.top.len(), 5);
        let mut ranked: Vec<u32> = (0..logits.len() as u32).collect();
        ranked.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        for (&(id, found), &best) in of.top.iter().zip(&ranked) {
            assert!(
                near(found, id) && near(found, best),
                "{id} {found}, {best} {}",
                wanted(best)
            );
        }
        text.push(token.id);
    }
}

/// Fails if somebody gets log probabilities who has not asked, or wrong numbers are let through.
#[test]
fn only_who_asks_is_told_and_only_so_many() {
    let model = smollm2();
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(&[1, 2, 3]).expect("fits");
    let of = |logprobs| GenerateOptions {
        max_tokens: 2,
        logprobs,
        ..GenerateOptions::default()
    };
    for (asked, n) in [(None, None), (Some(0), Some(0)), (Some(20), Some(20))] {
        let tokens = session.generate(of(asked)).expect("in range");
        for token in tokens {
            let token = token.expect("runs");
            assert_eq!(token.logprobs.map(|of| of.top.len()), n);
        }
    }
    let said = session
        .generate(of(Some(21)))
        .err()
        .expect("too many")
        .to_string();
    assert!(
        said.contains("log probabilities") && said.contains("20"),
        "{said}"
    );
}
