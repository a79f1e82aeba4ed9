#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

use std::sync::LazyLock;

use akunu::{EncodeOptions, Grammar, Message, Model, RenderOptions};
use akunu_tokenizer::ChatTemplate;
use serde_json::json;

use super::*;
use crate::error::ApiError;

fn model() -> &'static Model {
    static MODEL: LazyLock<Model> = LazyLock::new(|| {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        Model::open(path).unwrap()
    });
    &MODEL
}

fn style(name: &str) -> &'static Style {
    STYLES.iter().find(|style| style.name == name).unwrap()
}

/// `get_weather` is strict and its schema refers to a part of itself; `note` takes anything.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, parameters, strict| Tool {
        name: name.into(),
        description: None,
        parameters,
        strict,
    };
    let weather = json!({
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "$defs": {"City": {"type": "string", "enum": ["Paris", "Rome"]}},
    });
    vec![
        tool("get_weather", weather, true),
        tool("note", json!({"type": "object"}), false),
    ]
}

fn answering(tools: &[Tool], must_call: bool, many: bool) -> Answering<'_> {
    Answering {
        model: model(),
        tools,
        must_call,
        many,
        thought: None,
    }
}

/// Whether an answer is possible as a whole, given in pieces that tokens do not cross.
fn is_possible(grammar: &Grammar, pieces: &[&str]) -> bool {
    let mut walk = grammar.walk();
    for piece in pieces {
        let ids = model().tokenizer().encode(piece, EncodeOptions::default());
        if walk.take(&ids).unwrap() < ids.len() {
            return false;
        }
    }
    walk.is_complete().unwrap()
}

/// A call of a tool in a style, with the arguments as its notation writes them.
fn written(style: &Style, name: &str, arguments: &[(&str, serde_json::Value)]) -> Vec<String> {
    let mut pieces = Vec::new();
    let sections = [style.open, style.call, style.close];
    sections
        .into_iter()
        .flatten()
        .for_each(|element| write(element, name, arguments, &mut pieces));
    pieces
}

fn write(
    element: &style::Element,
    name: &str,
    arguments: &[(&str, serde_json::Value)],
    out: &mut Vec<String>,
) {
    use style::{Element, Notation};
    let object = || {
        let members = arguments
            .iter()
            .map(|(name, value)| format!("{}: {value}", json!(name)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
    };
    match element {
        Element::Mark(text) | Element::Text(text) => out.push(text.to_string()),
        Element::Space => {}
        Element::OneOf(ways) => ways[0]
            .iter()
            .for_each(|one| write(one, name, arguments, out)),
        Element::Name => out.push(name.into()),
        Element::Id => out.push("abc123def".into()),
        Element::Object(fields) => out.push(format!(
            "{{{}: {}, {}: {}}}",
            json!(fields.name),
            json!(name),
            json!(fields.arguments),
            object()
        )),
        Element::Arguments(Notation::Json) => out.push(object()),
        Element::Arguments(Notation::Python) => {
            let members = arguments
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            out.push(format!("({})", members.collect::<Vec<_>>().join(", ")));
        }
        Element::Arguments(Notation::Quoted(mark)) => {
            let value = |value: &serde_json::Value| match value.as_str() {
                Some(text) => format!("{mark}{text}{mark}"),
                None => value.to_string(),
            };
            let members = arguments
                .iter()
                .map(|(name, given)| format!("{name}:{}", value(given)));
            out.push(format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
        }
        Element::Arguments(Notation::Tagged(tags)) => {
            for (name, value) in arguments {
                let after = tags.after_name[usize::from(!value.is_string())];
                let text = value.as_str().map_or(value.to_string(), String::from);
                let (before, pad, end) = (tags.before_name, tags.padding, tags.after_value);
                out.push(format!("{before}{name}{after}{pad}{text}{pad}{end}\n"));
            }
        }
    }
}

fn right() -> Vec<(&'static str, serde_json::Value)> {
    vec![("city", json!("Rome")), ("days", json!(3))]
}

/// What no style may let through: a value that the schema does not have, one of another type, too few.
fn wrong() -> Vec<Vec<(&'static str, serde_json::Value)>> {
    vec![
        vec![("city", json!("Oslo")), ("days", json!(3))],
        vec![("city", json!("Rome")), ("days", json!("x"))],
        vec![("city", json!("Rome"))],
    ]
}

/// The grammar of every style allows the calls that its reader reads, and no others. Breaks when the two follow from different
/// ideas of a style, when free text before a mark is forced into a form, or when wrong arguments or names get through.
#[test]
fn every_style_is_enforced_as_it_is_read() {
    let tools = tools();
    for style in STYLES {
        let lead: Vec<String> = style.lead.iter().fold(Vec::new(), |mut all, element| {
            write(element, "", &[], &mut all);
            all
        });
        for answering in [
            answering(&tools, true, true),
            answering(&tools, false, true),
        ] {
            let name = style.name;
            let Some(grammar) = grammar(style, &answering).unwrap() else {
                let is_free = !style.has_mark() && style.trigger() != "{";
                assert!(!answering.must_call && is_free, "{name}");
                continue;
            };
            let possible = |tool: &str, arguments: &[(&str, serde_json::Value)]| {
                let call = written(style, tool, arguments);
                let lead = if answering.must_call { &lead[..] } else { &[] };
                let pieces: Vec<&str> = lead.iter().chain(&call).map(String::as_str).collect();
                is_possible(&grammar, &pieces)
            };
            assert!(possible("get_weather", &right()), "{name}");
            assert!(possible("note", &[("any", json!([1, {}]))]), "{name}");
            for arguments in wrong() {
                assert!(
                    !possible("get_weather", &arguments),
                    "{name}: {arguments:?}"
                );
            }
            assert!(!possible("rm", &[]), "{name}");
        }
        let call = written(style, "get_weather", &right()).concat();
        let Scanned::Whole(calls, end) = scan(style, &call, &tools) else {
            // Sections without an end may go on.
            assert!(
                style.close.is_empty() && !style.open.is_empty(),
                "{}",
                style.name
            );
            continue;
        };
        assert_eq!(
            calls[0].arguments, r#"{"city":"Rome","days":3}"#,
            "{}",
            style.name
        );
        assert_eq!(call[end..].trim(), "", "{}", style.name);
    }
}

/// Breaks when a request for one call at most gets more.
#[test]
fn one_call_is_enforced() {
    let tools = tools();
    let hermes = style("hermes");
    let call = written(hermes, "note", &[]).concat();
    let twice = [&call[..], "\n", &call[..]];
    let compiled = |many| {
        grammar(hermes, &answering(&tools, true, many))
            .unwrap()
            .unwrap()
    };
    assert!(is_possible(&compiled(true), &twice));
    assert!(!is_possible(&compiled(false), &twice));
    assert!(is_possible(&compiled(false), &twice[..1]));
}

/// Breaks when text is held for a call, or when a call at the beginning of an answer is free.
#[test]
fn answers_that_begin_with_a_bracket_are_calls() {
    let tools = tools();
    let may = answering(&tools, false, true);
    let compiled = grammar(TOLD, &may).unwrap().unwrap();
    let is_possible = |text: &str| is_possible(&compiled, &[text]);
    for text in ["Hello {\"a\": 1}!", "\n It rains.\n\n", "[1] is a note", ""] {
        assert!(is_possible(text), "{text:?}");
    }
    assert!(!is_possible("{\"a\": 1}"));
    let call = written(TOLD, "note", &[]).concat();
    for calls in [
        call.clone(),
        format!("{call}; {call}"),
        format!("[{call}, {call}]"),
    ] {
        assert!(is_possible(&calls), "{calls}");
    }
    let free: Vec<Tool> = tools[1..].to_vec();
    let none = grammar(TOLD, &answering(&free, false, true)).unwrap();
    assert!(none.is_none(), "without strict tools JSON is an answer too");
}

/// Breaks when a schema that cannot be enforced is not refused for a strict tool, or is refused for another.
#[test]
fn schemas_that_cannot_be_used_are_refused() {
    for (style, parameters, word) in [
        (
            style("hermes"),
            json!({"properties": {"a": {"type": "strin"}}}),
            "strin",
        ),
        (
            style("qwen3-coder"),
            json!({"properties": {"a": {"type": "string", "pattern": "^x$"}}}),
            "pattern",
        ),
        (
            style("lfm2"),
            json!({"properties": {"a": {"type": "integer", "minimum": 3}}}),
            "minimum",
        ),
    ] {
        let mut tools = tools();
        tools[0].parameters = parameters;
        let compiled = |tools: &[Tool]| grammar(style, &answering(tools, false, true));
        let refused: ApiError = compiled(&tools).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("tools"));
        assert!(
            refused.message.contains(word) && refused.message.contains("get_weather"),
            "{}",
            refused.message
        );
        tools[0].strict = false;
        assert!(compiled(&tools).is_ok());
    }
}

/// The style of each of the 70 templates that llama.cpp ships. Breaks when a template's way of writing calls is not seen, or is
/// taken for another.
#[test]
fn styles_are_seen_in_what_templates_write() {
    let call = json!({"id": "call00001", "type": "function", "function": {"name": PROBE, "arguments": {"a": 1}}});
    let mut calling = Message::new("assistant", "");
    calling.extra.insert("tool_calls".into(), json!([call]));
    let tool = Tool {
        name: "weather".into(),
        description: Some("Looks up the weather".into()),
        parameters: json!({
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Its name"}},
            "required": ["city"],
        }),
        strict: false,
    };
    let tools = [tool.for_template()];
    let variables = [("tools".to_string(), json!(tools))].into_iter().collect();
    let options = RenderOptions {
        bos_token: Some("<s>".into()),
        eos_token: Some("</s>".into()),
        now: Some(1_709_210_096),
        variables,
        ..RenderOptions::default()
    };
    let folder = akunu_assets::path("llama-cpp-vocabs", "templates/Qwen3-Coder.jinja");
    let mut found = std::collections::BTreeMap::<&str, Vec<String>>::new();
    for entry in std::fs::read_dir(folder.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(template) = ChatTemplate::new(&std::fs::read_to_string(&path).unwrap()) else {
            continue;
        };
        let rendered = template.render(&[Message::new("user", "Hi"), calling.clone()], &options);
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let style = of_text(&rendered.unwrap_or_default(), model().tokenizer());
        found
            .entry(style.map_or("none", |style| style.name))
            .or_default()
            .push(name);
    }
    for (style, names) in [
        ("command-r", "CohereForAI-c4ai-command-r-plus-tool_use"),
        (
            "command-r7b",
            "Cohere2MoE CohereForAI-c4ai-command-r7b-12-2024-tool_use",
        ),
        (
            "deepseek-v3",
            "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B llama-cpp-deepseek-r1",
        ),
        ("deepseek-v3.1", "deepseek-ai-DeepSeek-V3.1"),
        ("deepseek-v3.2", "deepseek-ai-DeepSeek-V3.2"),
        (
            "deepseek-v4",
            "deepseek-ai-DeepSeek-V4 deepseek-ai-DeepSeek-V4-Flash-0731",
        ),
        (
            "gemma-4",
            "google-gemma-4-31B-it google-gemma-4-31B-it-interleaved",
        ),
        ("glm-4", "GLM-4.6 GLM-4.7-Flash poolside-Laguna-XS.2"),
        ("gpt-oss", "openai-gpt-oss-120b"),
        (
            "hermes",
            "Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B Qwen-QwQ-32B NousResearch-Hermes-3-Llama-3.1-8B-tool_use \
                    ibm-granite-granite-4.0",
        ),
        ("kimi-k2", "moonshotai-Kimi-K2"),
        ("lfm2", "LFM2.5-8B-A1B"),
        (
            "llama-3",
            "meta-llama-Llama-3.1-8B-Instruct meta-llama-Llama-3.2-3B-Instruct meta-llama-Llama-3.3-70B-Instruct",
        ),
        ("minimax-m2", "MiniMax-M2"),
        ("mistral list", "mistralai-Mistral-Nemo-Instruct-2407"),
        (
            "mistral with arguments",
            "unsloth-mistral-Devstral-Small-2507",
        ),
        ("mistral with ids", "Mistral-Small-3.2-24B-Instruct-2506"),
        ("nemotron", "NVIDIA-Nemotron-Nano-v2"),
        ("phi-4, granite-3", "ibm-granite-granite-3.3-2B-Instruct"),
        ("plain", "GigaChat3-10B-A1.8B"),
        (
            "qwen3-coder",
            "Qwen3-Coder Qwen3.5-4B NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        ),
        ("seed-oss", "ByteDance-Seed-OSS"),
        (
            "none",
            "MiniMax-M3 muse-glimmer google-gemma-2-2b-it upstage-Solar-Open-100B",
        ),
    ] {
        for name in names.split_whitespace() {
            assert!(
                found[style].iter().any(|one| one == name),
                "{name}: {found:#?}"
            );
        }
    }
    let n_found: usize = found.values().map(Vec::len).sum();
    assert!(
        n_found >= 70 && n_found - found["none"].len() >= 48,
        "{found:#?}"
    );
}
