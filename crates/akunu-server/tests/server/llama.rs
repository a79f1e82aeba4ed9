//! What clients of llama.cpp's server ask for.

use serde_json::{Value, json};

use super::client::{get, post};
use super::{endless, serve};

/// Breaks when a text, a count or a reason differs from what OpenAI's clients get to the same prompt, or when a stream ends otherwise than
/// llama.cpp's.
#[test]
fn a_text_goes_on_as_in_completions() {
    let server = serve(|_| {});
    let prompt = "1, 2, 3, 4,";
    let asked = json!({"prompt": prompt, "max_tokens": 6, "temperature": 0});
    let wanted = post(server.address, "/v1/completions", &asked).json();
    let plain = json!({"prompt": prompt, "n_predict": 6, "temperature": 0, "n_probs": 2});
    let got = post(server.address, "/completion", &plain).json();
    let wanted_text = wanted["choices"][0]["text"].as_str().unwrap();
    assert_eq!(got["content"], wanted_text);
    assert_eq!(
        (&got["stop"], &got["stop_type"]),
        (&json!(true), &json!("limit"))
    );
    assert_eq!(got["tokens_predicted"], 6);
    assert_eq!(got["tokens_evaluated"], wanted["usage"]["prompt_tokens"]);
    let scored = got["completion_probabilities"].as_array().unwrap();
    assert_eq!(scored.len(), 6);
    let best = |token: &Value| token["top_logprobs"][0]["id"] == token["id"];
    assert!(scored.iter().all(best), "the most likely token was taken");
    let pieces = scored.iter().map(|token| token["token"].as_str().unwrap());
    assert_eq!(pieces.collect::<String>(), wanted_text);

    let mut streamed = plain;
    streamed["stream"] = true.into();
    let (events, has_done) = post(server.address, "/completion", &streamed).events();
    assert!(!has_done, "llama.cpp's stream ends without [DONE]");
    let (last, parts) = events.split_last().unwrap();
    let text: String = parts
        .iter()
        .map(|part| part["content"].as_str().unwrap())
        .collect();
    assert_eq!(text, wanted_text);
    assert!(parts.iter().all(|part| part["stop"] == false));
    assert_eq!(
        (&last["stop"], &last["tokens_predicted"]),
        (&json!(true), &json!(6))
    );

    let several = json!({"prompt": [prompt, "a, b,"], "n_predict": 2, "stop": ["zebra"]});
    let several = post(server.address, "/completion", &several).json();
    assert_eq!(several.as_array().map(Vec::len), Some(2), "{several}");
    let word = json!({"prompt": prompt, "n_predict": 20, "temperature": 0, "stop": [" 7"]});
    let word = post(server.address, "/completion", &word).json();
    assert_eq!(word["stop_type"], "word", "{word}");
    let refused = post(server.address, "/completion", &json!({"prompt": ""}));
    assert_eq!(refused.status, 400);
    let gap = json!({"input_prefix": "a", "input_suffix": "b", "n_predict": 2});
    let refused = post(server.address, "/infill", &gap);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "input_suffix");
}

/// Breaks when a client cannot see how long its prompts may be, or whether the server is busy; or when it sees a path of this machine.
#[test]
fn a_server_says_what_it_is_and_does() {
    let server = serve(|options| options.sequences = 3);
    let props = get(server.address, "/props").json();
    assert_eq!(props["default_generation_settings"]["n_ctx"], 512);
    assert_eq!(props["total_slots"], 3);
    assert_eq!(
        (&props["model_alias"], &props["model_path"]),
        (&json!("smollm2"), &json!("smollm2"))
    );
    assert_eq!(props["eos_token"], "<|im_end|>");
    let busy = || {
        let slots = get(server.address, "/slots").json();
        let slots = slots.as_array().unwrap().clone();
        assert_eq!(slots.len(), 3);
        slots
            .iter()
            .filter(|slot| slot["is_processing"] == true)
            .count()
    };
    server.wait_for("akunu_requests_running", |n| n == 0.0);
    assert_eq!(busy(), 0);
    let mut answer = post(server.address, "/v1/chat/completions", &endless("Count."));
    answer.event().unwrap();
    server.wait_for("akunu_requests_running", |n| n == 1.0);
    assert_eq!(busy(), 1);
}
