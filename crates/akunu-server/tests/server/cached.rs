//! What a server has read outlives it.

use std::path::Path;
use std::time::{Duration, Instant};

use akunu::{CacheOptions, Model};
use akunu_server::{ServerOptions, Source};

use super::client::post;
use super::{ALONE, question, start};

/// Tokens of the question that a server with this folder did not read, and its answer.
fn ask(folder: &Path, text: &str) -> (u64, String) {
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let options = ServerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        context: Some(512),
        ..ServerOptions::default()
    };
    let cache = CacheOptions {
        folder: folder.to_path_buf(),
        ..CacheOptions::default()
    };
    let open = move || {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        let model = Model::open(path)?;
        model.use_cache(&cache);
        Ok(model.into())
    };
    let server = start(options, vec![Source::new("cached", open)], alone);
    let mut body = question(text, 4);
    body["model"] = "cached".into();
    let said = post(server.address, "/v1/chat/completions", &body).json();
    let cached = &said["usage"]["prompt_tokens_details"]["cached_tokens"];
    // The pages are written when nothing else is to be done.
    let begin = Instant::now();
    while n_files(folder) < 2 && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = said["choices"][0]["message"]["content"].as_str();
    (cached.as_u64().unwrap(), text.unwrap().to_string())
}

fn n_files(folder: &Path) -> usize {
    let models = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = models.filter_map(|model| std::fs::read_dir(model.path()).ok());
    files.map(|files| files.flatten().count()).sum()
}

/// Breaks when an idle server writes nothing, and when another one does not look.
#[test]
fn another_server_finds_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = "Count the sheep. ".repeat(40);
    let (none, first) = ask(folder.path(), &text);
    let (cached, second) = ask(folder.path(), &text);
    assert_eq!(none, 0);
    assert!(cached >= 128, "{cached}");
    assert_eq!(first, second);
}
