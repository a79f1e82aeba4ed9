//! Guessing changes nothing but the speed.

use akunu_engine::{
    DraftModel, EngineError, GenerateOptions, Grammar, Lookup, Model, Sampling, Speculation,
};

use super::talk::{alone, drawn, encode, gemma3, question, real, smollm2, tiny, together};
use crate::support::drafts::without_layers;

/// A text that asks to be repeated.
const TEXT: &str = "The quick brown fox jumps over the lazy dog. The five boxing wizards jump quickly. \
    Pack my box with five dozen liquor jugs. Sphinx of black quartz, judge my vow.";

/// A text that goes on in several ways after the same words.
const FORKS: &str =
    "one two three four. one two three five. one two three four. one two three six. one two three";

fn options(sampling: Sampling, speculation: Speculation, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling,
        speculation,
        max_tokens,
        ignore_end: true,
        ..GenerateOptions::default()
    }
}

fn lookup(lookup: Lookup) -> Speculation {
    Speculation {
        lookup,
        draft: None,
        ..Speculation::default()
    }
}

/// Answers to some prompts and ways of choosing, with and without guesses, alone and eight together. The draft is the model
/// without some of its layers.
fn check(model: &Model, left_out: &[u32], prompts: &[&str], max_tokens: usize) {
    let ways = [Sampling::greedy(), drawn(3, 1.0), drawn(4, 1.3)];
    let mut plain = Vec::new();
    let mut asked = Vec::new();
    for (at, prompt) in prompts.iter().cycle().take(8).enumerate() {
        let prompt = encode(model, prompt);
        let mut of = options(ways[at % 3], Speculation::off(), max_tokens - at);
        of.sampling.seed += at as u64;
        plain.push(alone(model, &prompt, of.clone()).ids);
        of.speculation = lookup(Lookup::On);
        asked.push((prompt, of));
    }
    let (mut drafted, mut accepted, mut branched) = (0, 0, 0);
    for ((prompt, options), plain) in asked.iter().zip(&plain) {
        let said = alone(model, prompt, options.clone());
        assert_eq!(said.ids, *plain, "alone: {}", said.text);
        drafted += said.speculated.n_drafted();
        accepted += said.speculated.n_accepted();
        branched += said.speculated.branched;
    }
    assert!(
        drafted > accepted && accepted > 10,
        "{accepted} of {drafted}"
    );
    assert!(branched > 0, "no guesses had a second branch");
    let mut drafted_together = 0;
    // Three leave room for guesses among the rows that are rounded alike.
    for (said, plain) in together(model, &asked[..3]).iter().zip(&plain) {
        assert_eq!(said.ids, *plain, "together: {}", said.text);
        drafted_together += said.speculated.n_drafted();
    }
    assert!(drafted_together > 0);
    // While it pays: which guesses are made depends on time, what is said does not.
    let auto: Vec<_> = asked
        .into_iter()
        .map(|(prompt, mut options)| {
            options.speculation = Speculation::default();
            (prompt, options)
        })
        .collect();
    for (said, plain) in together(model, &auto).iter().zip(&plain) {
        assert_eq!(said.ids, *plain, "auto: {}", said.text);
    }
    check_draft(model, left_out, &auto, &plain);
}

/// The same with guesses of a draft model, alone; and eight together with those of texts too. The shortest answers begin
/// first, so that their end leaves room for guesses.
fn check_draft(
    model: &Model,
    left_out: &[u32],
    asked: &[(Vec<u32>, GenerateOptions)],
    plain: &[Vec<u32>],
) {
    let draft = real(&without_layers(model.path(), left_out).path);
    let draft = DraftModel::new(model, &draft).expect("the same vocabulary");
    let with = |lookup: Lookup| {
        let asked = asked.iter().map(|(prompt, options)| {
            let mut options = options.clone();
            options.speculation.lookup = lookup;
            options.speculation.draft = Some(draft.clone());
            options.speculation.draft_tokens = Some(4);
            (prompt.clone(), options)
        });
        asked.collect::<Vec<_>>()
    };
    let (mut drafted, mut accepted) = (0, 0);
    for ((prompt, options), plain) in with(Lookup::Off).into_iter().zip(plain).take(3) {
        let said = alone(model, &prompt, options);
        assert_eq!(said.ids, *plain, "draft: {}", said.text);
        drafted += said.speculated.n_drafted();
        accepted += said.speculated.n_accepted();
    }
    assert!(
        drafted > accepted && accepted > 10,
        "{accepted} of {drafted}"
    );
    let mut drafted_together = 0;
    let mut asked = with(Lookup::On);
    asked.reverse();
    for (said, plain) in together(model, &asked).iter().zip(plain.iter().rev()) {
        assert_eq!(said.ids, *plain, "draft, together: {}", said.text);
        drafted_together += said.speculated.n_drafted();
    }
    assert!(drafted_together > 0);
}

/// Fails when a guess is kept that was not chosen, when a row chooses with the noise of another position, when a penalty
/// does not see the guesses before its row, or when what was computed for a wrong guess is seen later.
#[test]
fn smollm2_says_the_same_with_guesses() {
    let repeat = question(&format!("Repeat this text: {TEXT}"));
    let prompts = [repeat.as_str(), FORKS, TEXT];
    check(&smollm2(), &[12, 20], &prompts, 16);
}

/// The same with windows and other norms.
#[test]
fn gemma3_says_the_same_with_guesses() {
    let twice = format!("{TEXT}\n{TEXT}\nThe quick brown");
    let prompts = [twice.as_str(), FORKS, TEXT];
    check(&gemma3(), &[9], &prompts, 16);
}

/// The same on the device of twins, where a penalty of less than 1 makes a random model repeat itself.
#[test]
fn a_random_model_says_the_same_with_guesses() {
    let model = tiny();
    let prompt: Vec<u32> = [7, 8, 9, 10, 11, 12].repeat(4);
    let repeating = |mut sampling: Sampling| {
        sampling.repetition_penalty = 0.2;
        sampling
    };
    let mut asked = Vec::new();
    for seed in 0..8 {
        let sampling = match seed {
            0 => Sampling::greedy(),
            seed => repeating(drawn(seed, 1.0)),
        };
        let of = options(sampling, lookup(Lookup::On), 30);
        asked.push((prompt[seed as usize..].to_vec(), of));
    }
    let mut accepted = 0;
    let all = together(&model, &asked);
    for ((prompt, mut options), together) in asked.into_iter().zip(&all) {
        let said = alone(&model, &prompt, options.clone());
        accepted += said.speculated.n_accepted();
        options.speculation = Speculation::off();
        let plain = alone(&model, &prompt, options);
        assert_eq!(said.ids, plain.ids);
        assert_eq!(together.ids, plain.ids);
    }
    assert!(accepted > 20, "{accepted}");
}

/// Fails when what one sequence has said is not guessed for the next, or when that changes an answer. Nothing of the
/// first answer repeats itself, so that its own text has nothing to guess from.
#[test]
fn what_one_sequence_said_is_guessed_for_another() {
    let model = tiny();
    let prompt = [3, 1, 4, 1, 5, 9, 2, 6];
    for sampling in [drawn(5, 1.0), drawn(6, 1.2)] {
        let of = |speculation| options(sampling, speculation, 40);
        let plain = alone(&model, &prompt, of(Speculation::off()));
        let first = alone(&model, &prompt, of(lookup(Lookup::On)));
        let second = alone(&model, &prompt, of(lookup(Lookup::On)));
        assert_eq!(first.ids, plain.ids);
        assert_eq!(second.ids, plain.ids);
        let [first, second] = [first, second].map(|said| said.speculated.n_accepted());
        assert!(second > first + 20, "{first} and {second} were right");
    }
}

/// Fails when a branch is not checked beside the trunk, when what its rows computed does not move to where their text has
/// it, or when that changes an answer. The latest text went on otherwise after the same words, so that it is the trunk,
/// which is wrong; what was said before is the branch.
#[test]
fn the_branch_that_was_right_is_kept() {
    let prompt = [3, 1, 4, 1, 5, 9, 2, 6];
    let ways = [Sampling::greedy(), drawn(5, 1.0), drawn(6, 1.0)];
    for (sampling, at) in ways.into_iter().zip([3, 4, 6]) {
        for n_together in [1, 3] {
            // What was said before is another model's business.
            let model = tiny();
            let of = |speculation, max_tokens| options(sampling, speculation, max_tokens);
            let plain = alone(&model, &prompt, of(Speculation::off(), 16)).ids;
            alone(&model, &prompt, of(lookup(Lookup::On), 16));
            let others = plain[at..at + 4].iter().map(|id| (id + 1) % 256);
            let others: Vec<u32> = others.collect();
            let text = [&[200, 201, 202], &prompt[..], &plain[..at], &others].concat();
            alone(&model, &text, of(lookup(Lookup::On), 1));
            let asked = (prompt.to_vec(), of(lookup(Lookup::On), 16));
            for said in together(&model, &vec![asked; n_together]) {
                assert_eq!(said.ids, plain);
                assert!(
                    said.speculated.branches_accepted > 0,
                    "{:?}",
                    said.speculated
                );
            }
        }
    }
}

/// Fails when rows of a branch count another branch as text that penalties look at: there is no branch then.
#[test]
fn penalties_have_no_branches() {
    let model = smollm2();
    let prompt = encode(&model, FORKS);
    for penalty in [1.0, 1.1] {
        let mut of = options(drawn(3, penalty), Speculation::off(), 24);
        let plain = alone(&model, &prompt, of.clone()).ids;
        of.speculation = lookup(Lookup::On);
        let said = alone(&model, &prompt, of);
        assert_eq!(said.ids, plain);
        assert_eq!(said.speculated.branched > 0, penalty == 1.0);
    }
}

/// Fails when the counters do not add up.
#[test]
fn guesses_are_counted_by_place() {
    let model = smollm2();
    let prompt = encode(
        &model,
        "one two three four one two three four one two three",
    );
    let of = options(Sampling::greedy(), lookup(Lookup::On), 30);
    let counted = alone(&model, &prompt, of).speculated;
    assert!(
        counted.steps > 0 && counted.drafted[0] >= counted.steps,
        "{counted:?}"
    );
    assert!(
        counted.branches_accepted <= counted.branched && counted.branched <= counted.steps,
        "{counted:?}"
    );
    let places = counted.drafted.iter().zip(&counted.accepted);
    assert!(
        places
            .clone()
            .all(|(drafted, accepted)| accepted <= drafted),
        "{counted:?}"
    );
    assert!(counted.accepted.is_sorted_by(|a, b| a >= b), "{counted:?}");
    assert_eq!(
        counted.n_accepted(),
        places.map(|(_, accepted)| accepted).sum::<u32>()
    );
}

/// Fails when a draft of other tokens is accepted.
#[test]
fn a_draft_model_of_other_tokens_is_refused() {
    let error = DraftModel::new(&smollm2(), &tiny()).expect_err("other tokens");
    assert!(matches!(error, EngineError::DraftVocabulary { .. }));
    assert!(error.to_string().contains("256 tokens"), "{error}");
}

/// Fails when guesses are not cut where the grammar refuses them, when the grammar is not rolled back after a wrong one,
/// or when a text that is forced comes otherwise after guesses.
#[test]
fn guesses_and_grammars_go_together() {
    let model = smollm2();
    let schema = r#"{"type": "array", "minItems": 6, "maxItems": 6, "items": {"type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"], "additionalProperties": false}}"#;
    let grammar = Grammar::json_schema(&model, schema).expect("a schema");
    let prompt = encode(
        &model,
        &question(
            "Six people with name and age as JSON, such as [{\"name\": \"Ann\", \"age\": 7}]",
        ),
    );
    for sampling in [Sampling::greedy(), drawn(1, 1.1)] {
        let mut of = options(sampling, Speculation::off(), 250);
        of.grammar = Some(grammar.clone());
        let plain = alone(&model, &prompt, of.clone());
        serde_json::from_str::<serde_json::Value>(&plain.text).expect(&plain.text);
        of.speculation = lookup(Lookup::On);
        let said = alone(&model, &prompt, of.clone());
        assert_eq!(said.ids, plain.ids, "{}", said.text);
        assert!(said.speculated.n_drafted() > 0);
        assert_eq!(together(&model, &[(prompt.clone(), of)])[0].ids, plain.ids);
    }
}

/// Fails when what was guessed beyond a stop text, a limit or a full context stays in the session.
#[test]
fn an_end_in_the_middle_of_guesses_leaves_what_was_handed_out() {
    let model = tiny();
    let prompt: Vec<u32> = [7, 8, 9, 10, 11, 12].repeat(4);
    let mut sampling = drawn(2, 1.0);
    sampling.repetition_penalty = 0.2;
    let whole = alone(&model, &prompt, options(sampling, Speculation::off(), 240));
    for n in [1, 2, 3, 10, 17] {
        let mut session = model.session(Default::default()).expect("memory");
        session.feed(&prompt).expect("fits");
        let of = options(sampling, lookup(Lookup::On), 240);
        let mut generation = session.generate(of).expect("fine");
        let taken: Vec<u32> = generation
            .by_ref()
            .take(n)
            .map(|token| token.expect("runs").id)
            .collect();
        drop(generation);
        assert_eq!(taken, whole.ids[..n]);
        assert_eq!(session.tokens(), [&prompt[..], &taken].concat());
        // And it goes on from there as if nothing had been guessed.
        let on = GenerateOptions {
            n_prompt: Some(prompt.len()),
            ..options(sampling, lookup(Lookup::On), 20)
        };
        let on: Vec<u32> = session
            .generate(on)
            .expect("fine")
            .map(|token| token.expect("runs").id)
            .collect();
        assert_eq!(on, whole.ids[n..n + 20]);
    }
    assert_eq!(
        whole.ids.len() + prompt.len(),
        1 + TINY_CONTEXT,
        "it went on until the context was full"
    );
    let of = options(sampling, lookup(Lookup::On), 240);
    assert_eq!(alone(&model, &prompt, of).ids, whole.ids);
}

/// The context of the random model.
const TINY_CONTEXT: usize = 256;
