//! People's own rules.

use akunu_engine::{GenerateOptions, Grammar, LogitRule, LogitRules};

use super::talk::{alone, drawn, tiny, together};

/// The logits of the byte after the last one, and nothing else.
struct Counting;

impl LogitRule for Counting {
    fn apply(&self, tokens: &[u32], logits: &mut [f32]) {
        let next = tokens.last().map_or(1, |last| last + 1) as usize;
        logits.fill(f32::NEG_INFINITY);
        logits[next % 256] = 0.0;
    }
}

fn options(rules: LogitRules) -> GenerateOptions {
    GenerateOptions {
        rules,
        max_tokens: 30,
        ..GenerateOptions::default()
    }
}

/// Fails when a rule is not asked, is asked with other tokens, or when its logits are not chosen from; alone, and
/// together with a sequence that has none.
#[test]
fn rules_decide_alone_and_together() {
    let model = tiny();
    let counting = options(LogitRules::new().with(Counting));
    let mut drawing = counting.clone();
    drawing.sampling = drawn(3, 1.2);
    let asked = [
        (vec![5, 40], counting),
        (vec![9, 8, 7], options(LogitRules::new())),
        (vec![1, 2, 3, 90], drawing),
    ];
    let all = together(&model, &asked);
    for ((prompt, options), together) in asked.iter().zip(&all) {
        let said = alone(&model, prompt, options.clone());
        assert_eq!(said.ids, together.ids);
        if !options.rules.is_empty() {
            let last = prompt[prompt.len() - 1];
            let wanted: Vec<u32> = (last + 1..=last + 30).collect();
            assert_eq!(said.ids, wanted);
        }
    }
}

/// Fails when a rule can allow what the grammar forbids, or when the second rule does not see the first one's change.
#[test]
fn rules_come_in_order_and_before_the_grammar() {
    let model = tiny();
    let best = |id: usize| move |_: &[u32], logits: &mut [f32]| logits[id] = 1e6;
    let rules = LogitRules::new()
        .with(best(usize::from(b'z')))
        .with(best(usize::from(b'b')))
        .with(|_: &[u32], logits: &mut [f32]| {
            assert_eq!(logits[usize::from(b'z')], 1e6);
            logits[usize::from(b'z')] = 2e6;
        });
    let grammar = Grammar::regex(&model, "[abc]{5}").expect("fine");
    let guided = GenerateOptions {
        grammar: Some(grammar),
        ..options(rules)
    };
    assert_eq!(alone(&model, &[1, 2], guided).text, "bbbbb");
}
