//! The 70 templates that llama.cpp ships, against jinja2 set up as `transformers` does.
//!
//! `fixtures/templates.json` is written by `fixtures/make_template_fixtures.py`.

use crate::support;
use akunu_tokenizer::{ChatTemplate, Message, RenderOptions};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const CONVERSATIONS: &str = include_str!("../fixtures/conversations.json");
const EXPECTED: &str = include_str!("../fixtures/templates.json");

/// 29 February 2024, 12:34:56.
const NOW: i64 = 1_709_210_096;

/// Where we differ from jinja2 and mean to: it cannot write the lazy result of `map` as JSON, and it
/// escapes for HTML what is added to text that went through `safe`.
const DIFFERENT: &[(&str, &str)] = &[
    ("llama-cpp-deepseek-r1.jinja", "tools"),
    ("meetkai-functionary-medium-v3.1.jinja", "tools"),
];

fn conversation(mut variables: Map<String, Value>) -> (Vec<Message>, RenderOptions) {
    let messages = variables.remove("messages").expect("a conversation");
    let prompt = variables.remove("add_generation_prompt").expect("a flag");
    let options = RenderOptions {
        add_generation_prompt: prompt.as_bool().expect("a flag"),
        bos_token: Some("<s>".to_string()),
        eos_token: Some("</s>".to_string()),
        variables,
        now: Some(NOW),
        ..RenderOptions::default()
    };
    (serde_json::from_value(messages).unwrap(), options)
}

/// Fails when a text differs in one character, or when only one of the two refuses a conversation.
#[test]
fn every_template_renders_as_jinja2_does() {
    let conversations: BTreeMap<String, Map<String, Value>> =
        serde_json::from_str(CONVERSATIONS).unwrap();
    let expected: BTreeMap<String, BTreeMap<String, Option<String>>> =
        serde_json::from_str(EXPECTED).unwrap();
    assert_eq!(expected.len(), 70);
    let mut failures = Vec::new();
    let mut n_rendered = 0;
    for (name, by_conversation) in &expected {
        let path = support::asset("llama-cpp-vocabs", &format!("templates/{name}"));
        let source = std::fs::read_to_string(path).unwrap();
        let template = ChatTemplate::new(&source).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (conversation_name, expected) in by_conversation {
            let (messages, options) = conversation(conversations[conversation_name].clone());
            let rendered = template.render(&messages, &options);
            let hash = |text: &String| format!("{:x}", Sha256::digest(text));
            let found = rendered.as_ref().ok().map(hash);
            n_rendered += usize::from(found.is_some());
            let is_meant = DIFFERENT.contains(&(name.as_str(), conversation_name.as_str()));
            assert!(!is_meant || found.is_some(), "{name} renders");
            if is_meant == (found == *expected) {
                failures.push(format!("{name}, {conversation_name}:\n{rendered:?}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    // Fails when most of the above were refusals on both sides.
    assert!(n_rendered > 150, "{n_rendered}");
}
