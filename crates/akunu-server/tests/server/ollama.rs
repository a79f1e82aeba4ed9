//! What Ollama's clients ask for besides answers.

use serde_json::{Value, json};

use super::client::{get, post};
use super::{question, serve_asset, serve_pinned};

fn names(running: &Value) -> Vec<&str> {
    let models = running["models"].as_array().unwrap().iter();
    models
        .map(|model| model["name"].as_str().unwrap())
        .collect()
}

/// Breaks when a client cannot see what is loaded, or cannot have it unloaded.
#[test]
fn models_are_listed_while_they_are_loaded_and_unloaded_when_asked() {
    let server = serve_pinned(|_| {}, "second");
    let running = || get(server.address, "/api/ps").json();
    let loaded = running();
    assert_eq!(names(&loaded), ["smollm2"]);
    let model = &loaded["models"][0];
    assert!(model["size"].as_u64().unwrap() > 50_000_000, "{model}");
    assert_eq!(model["context_length"], 512);
    assert_eq!(model["details"]["format"], "gguf");
    assert_eq!(model["details"]["family"], "llama");
    assert!(model["expires_at"].as_str().unwrap().starts_with("21"));

    let stop = |model: &str| {
        let body = json!({"model": model, "keep_alive": 0});
        post(server.address, "/api/generate", &body).json()
    };
    let stopped = stop("smollm2");
    assert_eq!(
        (&stopped["done"], &stopped["done_reason"]),
        (&json!(true), &json!("unload"))
    );
    assert_eq!(names(&running()), Vec::<&str>::new());
    // An answer that is asked for with it is given to its end.
    let mut asked = question("Hello", 4);
    asked["stream"] = false.into();
    asked["keep_alive"] = "0s".into();
    let said = post(server.address, "/api/chat", &asked).json();
    assert_eq!(said["done"], true, "{said}");
    assert_eq!(names(&running()), Vec::<&str>::new());
    asked["model"] = "second".into();
    asked["keep_alive"] = "5m".into();
    post(server.address, "/api/chat", &asked).json();
    stop("second");
    assert_eq!(names(&running()), ["second"], "it is pinned");
    asked["keep_alive"] = "soon".into();
    let refused = post(server.address, "/api/chat", &asked);
    assert_eq!(refused.status, 400);
}

/// Breaks when the older way to ask for a vector gives another one than the newer.
#[test]
fn one_text_becomes_a_vector_in_the_older_way_too() {
    let server = serve_asset("minilm", "config.json");
    let older = json!({"model": "minilm", "prompt": "a cat sleeps"});
    let older = post(server.address, "/api/embeddings", &older).json();
    let newer = json!({"model": "minilm", "input": "a cat sleeps"});
    let newer = post(server.address, "/api/embed", &newer).json();
    assert_eq!(older["embedding"], newer["embeddings"][0]);
    let version = get(server.address, "/api/version").json();
    let parts = version["version"].as_str().unwrap().split('.');
    let parts: Vec<u32> = parts.map(|part| part.parse().unwrap()).collect();
    assert!(parts > vec![0, 6, 4], "some clients want at least 0.6.4");
}
