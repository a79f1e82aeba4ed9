//! Models by further names, and with settings of their own.

use std::path::PathBuf;

use akunu::{Lookup, SamplingOptions};
use akunu_server::{ModelSettings, Server, ServerError, ServerOptions, Source};
use serde_json::{Value, json};

use super::client::{get, post};
use super::{ALONE, Running, question, smollm2, start};

fn source(name: &str, settings: ModelSettings) -> Source {
    Source {
        settings,
        ..Source::new(name, || Ok(smollm2().into()))
    }
}

fn options() -> ServerOptions {
    ServerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        context: Some(512),
        ..ServerOptions::default()
    }
}

fn serve(sources: Vec<Source>, options: ServerOptions) -> Running {
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    start(options, sources, alone)
}

/// The answer of a model, and the name that it says it has.
fn ask(server: &Running, model: &str, question: &Value) -> (String, String) {
    let mut asked = question.clone();
    asked["model"] = model.into();
    let said = post(server.address, "/v1/chat/completions", &asked).json();
    let text = said["choices"][0]["message"]["content"].as_str();
    let text = text.unwrap_or_else(|| panic!("{said}"));
    (
        text.to_string(),
        said["model"].as_str().unwrap().to_string(),
    )
}

/// Breaks when a client that can only ask for a name of another provider's gets nothing, or when one that asks for a model that is
/// not here gets another without anybody having said so.
#[test]
fn models_answer_to_their_aliases_and_a_default_to_all_names() {
    let sources = || {
        let aliases = vec!["gpt-4o".to_string(), "gpt-4o-mini".to_string()];
        let second = Source {
            aliases,
            ..source("second", ModelSettings::default())
        };
        vec![source("first", ModelSettings::default()), second]
    };
    let hello = question("Hello", 2);
    let server = serve(sources(), options());
    for name in ["second", "gpt-4o", "gpt-4o-mini:latest"] {
        assert_eq!(ask(&server, name, &hello).1, "second", "{name}");
    }
    assert_eq!(ask(&server, "", &hello).1, "first");
    let mut other = hello.clone();
    other["model"] = "claude".into();
    let refused = post(server.address, "/v1/chat/completions", &other);
    assert_eq!(refused.status, 404);
    let list = get(server.address, "/v1/models").json();
    let names: Vec<&str> = (list["data"].as_array().unwrap().iter())
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["first", "second", "gpt-4o", "gpt-4o-mini"]);
    let one = get(server.address, "/v1/models/gpt-4o").json();
    assert_eq!(one["id"], "gpt-4o");
    drop(server);

    let server = serve(
        sources(),
        ServerOptions {
            default_model: Some("gpt-4o".into()),
            ..options()
        },
    );
    for name in ["", "claude"] {
        assert_eq!(ask(&server, name, &hello).1, "second", "{name}");
    }
    assert_eq!(ask(&server, "first", &hello).1, "first");
    assert_eq!(get(server.address, "/v1/models/claude").status, 404);
    drop(server);

    let unknown = ServerOptions {
        default_model: Some("third".into()),
        ..options()
    };
    let refused = Server::bind(unknown, sources()).err().unwrap();
    assert!(matches!(refused, ServerError::DefaultModel(name) if name == "third"));
    let mut twice = sources();
    twice[0].aliases.push("gpt-4o".into());
    let refused = Server::bind(options(), twice).err().unwrap();
    assert!(matches!(refused, ServerError::SameName(name) if name == "gpt-4o"));
}

/// Breaks when a setting does not reach the model that it is for, or reaches another one.
#[test]
fn each_model_has_its_own_settings() {
    let settings = ModelSettings {
        context: Some(128),
        system: Some("You are a pirate.".into()),
        sampling: SamplingOptions {
            temperature: Some(0.0),
            ..SamplingOptions::default()
        },
        ..ModelSettings::default()
    };
    let server = serve(
        vec![
            source("set", settings),
            source("plain", ModelSettings::default()),
        ],
        options(),
    );
    let prompt = |model: &str, messages: &Value| {
        let asked = json!({"model": model, "messages": messages});
        let applied = post(server.address, "/apply-template", &asked).json();
        applied["prompt"].as_str().unwrap().to_string()
    };
    let user = json!({"role": "user", "content": "Hello"});
    let own = json!({"role": "system", "content": "You are a king."});
    assert!(prompt("set", &json!([user])).contains("You are a pirate."));
    let kings = prompt("set", &json!([own, user]));
    assert!(
        kings.contains("a king") && !kings.contains("pirate"),
        "{kings}"
    );
    assert!(!prompt("plain", &json!([user])).contains("pirate"));

    let mut free = question("Name a colour.", 8);
    free.as_object_mut().unwrap().remove("temperature");
    let said = |seed: u64| {
        let mut asked = free.clone();
        asked["seed"] = seed.into();
        ask(&server, "set", &asked).0
    };
    let greedy = ask(&server, "set", &question("Name a colour.", 8)).0;
    assert!((1..5).all(|seed| said(seed) == greedy));
    let context = |name: &str| {
        let model = get(server.address, &format!("/v1/models/{name}")).json();
        model["meta"]["context"].as_u64()
    };
    assert_eq!((context("set"), context("plain")), (Some(128), Some(512)));
}

/// Breaks when adapters do not change the answers of the model that has them, when a draft model guesses nothing, or when its guesses change an
/// answer.
#[test]
fn a_model_has_adapters_and_a_draft_model() {
    let adapter =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../akunu/tests/fixtures/smollm2-lora.gguf");
    let adapted = ModelSettings {
        adapters: vec![(adapter, 1.0)],
        ..ModelSettings::default()
    };
    let drafted = ModelSettings {
        draft: Some(Box::new(|| Ok(smollm2()))),
        draft_tokens: Some(2),
        ..ModelSettings::default()
    };
    let server = serve(
        vec![
            source("drafted", drafted),
            source("adapted", adapted),
            source("plain", ModelSettings::default()),
        ],
        ServerOptions {
            lookup: Lookup::Off,
            ..options()
        },
    );
    let asked = question("What is the capital of France?", 16);
    let answer = |model: &str| ask(&server, model, &asked).0;
    let plain = answer("plain");
    assert!(plain.contains("Paris"), "{plain}");
    assert!(!answer("adapted").contains("Paris"));
    assert_eq!(answer("drafted"), plain);
    server.wait_for("akunu_requests_running", |n| n == 0.0);
    assert!(server.metric("akunu_right_guesses_total") > 0.0);
}
