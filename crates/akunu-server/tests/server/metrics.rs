//! `/metrics`: every status, every kind of model, and the dashboard that shows them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use akunu_server::ServerOptions;
use serde_json::{Value, json};

use super::audio::transcribe;
use super::client::{get, post, with};
use super::{Running, question, serve, serve_asset, serve_asset_with};

fn text(server: &Running) -> String {
    get(server.address, "/metrics").text()
}

/// The value of a line with exactly these labels.
#[track_caller]
fn value(text: &str, line: &str) -> f64 {
    let found = text
        .lines()
        .find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("{line} in {text}"));
    found.parse().unwrap()
}

/// Breaks when an answer of some status is not counted, or when paths and methods that a client invents become labels of their own, which
/// would fill the memory of whoever collects them.
#[test]
fn requests_are_counted_by_every_status() {
    let server = serve(|_| {});
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        with(server.address, method, path, headers, body.as_bytes()).status
    };
    assert_eq!(ask("GET", "/health", &[], ""), 200);
    assert_eq!(ask("GET", "/v1/models/smollm2", &[], ""), 200);
    assert_eq!(ask("GET", "/v1/models/second", &[], ""), 200);
    assert_eq!(ask("POST", "/v1/chat/completions", &[], "{"), 400);
    assert_eq!(ask("GET", "/v1/chat/completions", &[], ""), 405);
    assert_eq!(ask("GET", "/health", &[("Host", "evil.example")], ""), 403);
    assert_eq!(ask("GET", "/one", &[], ""), 404);
    assert_eq!(ask("GET", "/two", &[], ""), 404);
    assert_eq!(ask("MAKE", "/three", &[], ""), 404);
    let text = text(&server);
    for (labels, n) in [
        (r#"method="GET",path="/health",status="200""#, 1.0),
        (r#"method="GET",path="/health",status="403""#, 1.0),
        (r#"method="GET",path="/v1/models/{name}",status="200""#, 2.0),
        (
            r#"method="POST",path="/v1/chat/completions",status="400""#,
            1.0,
        ),
        (
            r#"method="GET",path="/v1/chat/completions",status="405""#,
            1.0,
        ),
        (r#"method="GET",path="other",status="404""#, 2.0),
        (r#"method="other",path="other",status="404""#, 1.0),
    ] {
        let line = format!("akunu_http_requests_total{{{labels}}}");
        assert_eq!(value(&text, &line), n, "{line}");
    }
}

/// Breaks when an answer is not counted from its request to its end, or when the counters go with the model that is unloaded.
#[test]
fn answers_are_counted_and_outlive_their_model() {
    let server = serve(|options| options.keep = Some(Duration::from_millis(200)));
    let said = post(
        server.address,
        "/v1/chat/completions",
        &question("Hello", 4),
    )
    .json();
    let tokens = said["usage"]["completion_tokens"].as_f64().unwrap();
    for _ in 0..200 {
        let loaded = get(server.address, "/v1/models").json();
        if loaded["data"][0]["meta"].is_null() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = text(&server);
    let counted = |name: &str| value(&text, &format!("{name}{{model_name=\"smollm2\"}}"));
    assert_eq!(counted("akunu_requests_total"), 1.0);
    assert_eq!(counted("akunu_request_seconds_count"), 1.0);
    assert_eq!(counted("akunu_first_token_seconds_count"), 1.0);
    assert_eq!(counted("akunu_generated_tokens_total"), tokens);
    assert!(counted("akunu_request_seconds_sum") >= counted("akunu_first_token_seconds_sum"));
    assert_eq!(counted("akunu_requests_running"), 0.0);
}

/// Breaks when the work of encoders is not counted.
#[test]
fn texts_are_counted() {
    let server = serve_asset("minilm", "config.json");
    let ask = |input: Value| post(server.address, "/v1/embeddings", &json!({"input": input}));
    let made = ask(json!(["a cat sleeps", "rain", "interest rates rose"])).json();
    assert_eq!(ask("word ".repeat(400).into()).status, 400);
    let text = text(&server);
    let counted = |name: &str| value(&text, &format!("{name}{{model_name=\"minilm\"}}"));
    assert_eq!(counted("akunu_requests_total"), 2.0);
    assert_eq!(counted("akunu_requests_failed_total"), 1.0);
    assert_eq!(counted("akunu_request_seconds_count"), 1.0);
    assert_eq!(counted("akunu_texts_total"), 3.0);
    let tokens = made["usage"]["prompt_tokens"].as_f64().unwrap();
    assert_eq!(counted("akunu_prompt_tokens_total"), tokens);
    assert!(
        !text.contains("akunu_generated_tokens"),
        "an encoder writes nothing"
    );
}

/// The names of a text of metrics, of ours.
fn told(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let names = samples.filter_map(|line| line.split(['{', ' ']).next());
    let ours = names.filter(|name| !name.starts_with("vllm:"));
    ours.map(str::to_string).collect()
}

/// The names that the queries of a dashboard ask for.
fn asked(dashboard: &Value) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let words = queries.flat_map(|query| query.split(move |c| !is_part(c)));
    let ours = words.filter(|word| word.starts_with("akunu_") || word.starts_with("process_"));
    ours.map(str::to_string).collect()
}

/// A name without what a kind of metric adds to it.
fn family(name: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count", "_total"];
    let short = ends.iter().find_map(|end| name.strip_suffix(end));
    short.unwrap_or(name)
}

/// Breaks when recordings are not counted; when the dashboard asks for a name that no server tells, and when a server tells something that
/// the dashboard does not show.
#[test]
fn the_dashboard_shows_what_servers_tell() {
    let options = ServerOptions::default();
    let hearing = serve_asset_with("whisper-tiny.en", "model.bin", options);
    assert_eq!(transcribe(&hearing, &[]).status, 200);
    let heard = text(&hearing);
    let counted = |name: &str| value(&heard, &format!("{name}{{model_name=\"whisper-tiny.en\"}}"));
    assert_eq!(counted("akunu_heard_seconds_total"), 11.0);
    assert_eq!(counted("akunu_requests_total"), 1.0);
    assert_eq!(counted("akunu_request_seconds_count"), 1.0);
    drop(hearing);

    let server = serve(|_| {});
    get(server.address, "/health");
    let mut names = told(&text(&server));
    names.extend(told(&heard));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana.json");
    let dashboard = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let asked = asked(&dashboard);
    let unknown: Vec<&String> = asked.difference(&names).collect();
    assert_eq!(
        unknown,
        Vec::<&String>::new(),
        "asked for, and told by nobody"
    );
    let shown: BTreeSet<&str> = asked.iter().map(|name| family(name)).collect();
    let hidden: Vec<&String> = (names.iter())
        .filter(|name| !shown.contains(family(name)))
        .collect();
    assert_eq!(hidden, Vec::<&String>::new(), "told, and not shown");
}
