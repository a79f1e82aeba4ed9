//! Grammars, with a real model: small ones say anything but JSON by themselves.

use akunu_engine::{EngineError, GenerateOptions, Grammar, Model, SessionOptions, StopReason};

use super::talk::{alone, drawn, encode, gemma3, question, smollm2, tiny, together};

const COUNTRY: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "continent": {"enum": ["Africa", "America", "Asia", "Europe", "Oceania"]},
        "languages": {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 1, "maxItems": 3},
        "population": {"type": "integer", "minimum": 0, "maximum": 2000000000}
    },
    "required": ["name", "continent", "languages", "population"],
    "additionalProperties": false
}"#;

fn options(grammar: Grammar, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        grammar: Some(grammar),
        max_tokens,
        ..GenerateOptions::default()
    }
}

/// Whether a text is what COUNTRY asks for, looked at by hand.
fn check_country(text: &str) {
    let value: serde_json::Value = serde_json::from_str(text).expect(text);
    let object = value.as_object().expect(text);
    assert_eq!(object.len(), 4, "{text}");
    let continent = object["continent"].as_str().expect(text);
    let known = ["Africa", "America", "Asia", "Europe", "Oceania"];
    assert!(known.contains(&continent), "{text}");
    assert!(object["population"].is_u64(), "{text}");
    let languages = object["languages"].as_array().expect(text);
    assert!((1..=3).contains(&languages.len()), "{text}");
    assert!(
        object["name"]
            .as_str()
            .is_some_and(|name| name.chars().count() <= 20)
    );
}

/// Fails when a mask is not applied, is that of another row, or comes a token too late; when forced tokens are not
/// read; when sequences of a batch share a state.
#[test]
fn answers_alone_and_together_follow_a_schema() {
    let model = smollm2();
    let grammar = Grammar::json_schema(&model, COUNTRY).expect("a schema");
    let ask = |country: &str| encode(&model, &question(&format!("Tell me about {country}.")));
    let mut asked = Vec::new();
    for (at, country) in ["France", "Peru", "Japan"].iter().enumerate() {
        let mut of = options(grammar.clone(), 200);
        of.sampling = drawn(at as u64, 1.0 + 0.1 * at as f32);
        asked.push((ask(country), of));
    }
    // One that nobody guides, among them.
    let free = GenerateOptions {
        max_tokens: 40,
        ..GenerateOptions::default()
    };
    asked.insert(1, (ask("Kenya"), free));
    let all = together(&model, &asked);
    for (at, (prompt, options)) in asked.iter().enumerate() {
        let said = alone(&model, prompt, options.clone());
        assert_eq!(said.ids, all[at].ids, "{}", said.text);
        if options.grammar.is_some() {
            check_country(&said.text);
            assert_eq!(said.stop, Some(StopReason::GrammarEnd));
        }
    }
    assert!(!all[1].text.contains('{'), "{}", all[1].text);
}

/// Fails when the vocabulary is not byte exact in one of the ways that vocabularies spell text.
#[test]
fn texts_of_every_kind_of_grammar_and_vocabulary() {
    for model in [smollm2(), gemma3()] {
        let prompt = encode(&model, "The date of the first landing on the moon is ");
        let said = |grammar: Grammar| alone(&model, &prompt, options(grammar, 60));
        let date = said(Grammar::regex(&model, "[12][0-9]{3}-[01][0-9]-[0-3][0-9]").expect("fine"));
        assert_eq!(date.text.len(), 10, "{}", date.text);
        assert_eq!(date.stop, Some(StopReason::GrammarEnd));
        let words = ["größer", "日本語", "a b  c\n"].map(String::from);
        let choice = said(Grammar::choice(&model, &words).expect("fine"));
        assert!(words.contains(&choice.text), "{}", choice.text);
        let lark = Grammar::lark(&model, "start: \"<\" NAME \">\"\nNAME: /[a-zé]{3,6}/");
        let lark = said(lark.expect("fine"));
        assert!(
            lark.text.starts_with('<') && lark.text.ends_with('>'),
            "{}",
            lark.text
        );
        let json = said(Grammar::json_schema(&model, r#"{"type": "number"}"#).expect("fine"));
        assert!(json.text.parse::<f64>().is_ok(), "{}", json.text);
    }
}

/// Fails when a token of control is taken for its text, or when an end token is refused where the grammar may end.
#[test]
fn control_tokens_come_only_where_a_grammar_names_them() {
    let model = smollm2();
    let prompt = encode(&model, &question("Say yes."));
    let end = *encode(&model, "<|im_end|>").last().expect("a token");
    let text = Grammar::choice(&model, &["<|im_end|>".into()]).expect("fine");
    let said = alone(&model, &prompt, options(text, 20));
    assert_eq!(said.text, "<|im_end|>");
    assert!(!said.ids.contains(&end));
    let named = Grammar::lark(&model, "start: \"yes\" <|im_end|> \"no\"").expect("fine");
    let mut going_on = options(named, 20);
    going_on.ignore_end = true;
    let said = alone(&model, &prompt, going_on);
    assert!(said.ids.contains(&end), "{said:?}");
    assert_eq!(said.text, "yesno");
    let open = Grammar::regex(&model, "[Yy]es[A-Za-z ,.!]*").expect("fine");
    let said = alone(&model, &prompt, options(open, 100));
    assert_eq!(said.stop, Some(StopReason::EndToken), "{said:?}");
}

/// Fails when the grammar begins at once, never, or in the middle.
#[test]
fn a_grammar_may_begin_late() {
    let model = smollm2();
    let prompt = encode(&model, "One, two, three, four, five,");
    let grammar = Grammar::choice(&model, &["STOP".into()]).expect("fine");
    let said = alone(
        &model,
        &prompt,
        options(grammar.starting_after(" eight"), 30),
    );
    assert_eq!(said.text, " six, seven, eightSTOP");
    assert_eq!(said.stop, Some(StopReason::GrammarEnd));
}

/// Fails when a text that is longer than a step's rows is not read, or is chosen token by token.
#[test]
fn long_forced_texts_are_read_and_not_chosen() {
    let model = smollm2();
    let prompt = encode(&model, "A story: ");
    let text = "Once upon a time there was a fox who lived in the woods. ".repeat(8);
    let words = [text.clone(), format!("B{text}")];
    let grammar = Grammar::choice(&model, &words).expect("fine");
    let asked = (prompt.clone(), options(grammar.clone(), 400));
    let said = alone(&model, &prompt, asked.1.clone());
    assert!(words.contains(&said.text), "{}", said.text);
    assert_eq!(together(&model, &[asked])[0].ids, said.ids);
    // As many as are wanted, and what was read is what was said.
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(&prompt).expect("fits");
    let generation = session.generate(options(grammar, 50)).expect("fine");
    assert_eq!(generation.count(), 50);
    assert_eq!(session.tokens(), [&prompt[..], &said.ids[..50]].concat());
}

/// Fails when a fork begins its grammar anew, or shares its state.
#[test]
fn forks_go_on_in_the_grammar() {
    let model = tiny();
    let grammar = Grammar::regex(&model, "a[bc]{4}d").expect("fine");
    let with_seed = |seed| GenerateOptions {
        sampling: drawn(seed, 1.0),
        ..options(grammar.clone(), 20)
    };
    let mut batch = model.batch(4).expect("memory");
    let session = model.session(SessionOptions::default()).expect("memory");
    let first = batch
        .join_prompt(session, &[5, 6, 7], with_seed(1))
        .expect("room");
    let mut began = String::new();
    while began.len() < 3 {
        for event in batch.step() {
            if let akunu_engine::Progress::Token(token) = event.progress {
                began.push_str(&token.text);
            }
        }
    }
    let mut ids = vec![first];
    for seed in 2..5 {
        ids.push(batch.fork(first, with_seed(seed)).expect("room"));
    }
    let said = super::talk::run(&mut batch, &ids);
    for said in &said {
        let whole = format!("{began}{}", said.text);
        assert_eq!(whole.len(), 6, "{whole}");
        assert!(whole.starts_with('a') && whole.ends_with('d'), "{whole}");
    }
}

/// Fails when a grammar's bits are used with another model's tokens.
#[test]
fn a_grammar_of_another_model_is_refused() {
    let (one, other) = (tiny(), tiny());
    let grammar = Grammar::any_json(&one).expect("fine");
    let mut session = other.session(SessionOptions::default()).expect("memory");
    session.feed(&[1, 2]).expect("fits");
    let refused = session.generate(options(grammar, 5)).err();
    assert!(matches!(refused, Some(EngineError::GrammarModel { .. })));
}

/// The grammar of a model of bytes without an end token ends by itself.
#[test]
fn a_full_context_and_a_stop_text_end_a_grammar_too() {
    let model: Model = tiny();
    let grammar = Grammar::regex(&model, "[ab]{2000}").expect("fine");
    let said = alone(&model, &[1, 2, 3], options(grammar.clone(), 2000));
    assert_eq!(said.stop, Some(StopReason::ContextFull));
    let text = said.text;
    let stop = text[4..7].to_string();
    let at = text.find(&stop).expect("in it");
    let mut stopping = options(grammar, 2000);
    stopping.stop = vec![stop];
    let said = alone(&model, &[1, 2, 3], stopping);
    assert_eq!(
        (said.text.as_str(), said.stop),
        (&text[..at], Some(StopReason::StopText))
    );
}
