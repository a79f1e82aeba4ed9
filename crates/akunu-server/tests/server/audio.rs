//! A server of a Whisper: recordings as forms, transcripts in every format.

use super::Running;
use super::client::{Response, connect, post, with};
use super::{asset_source, serve_asset, serve_asset_with};
use akunu_server::{Server, ServerOptions};
use serde_json::{Value, json};
use std::io::Write;

const BOUNDARY: &str = "a-boundary";
pub const PATH: &str = "/v1/audio/transcriptions";

fn jfk() -> Vec<u8> {
    std::fs::read(akunu_assets::path("jfk", "jfk.wav")).unwrap()
}

/// The fields and a file as a form.
fn form(fields: &[(&str, &str)], file: Option<&[u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
        body.extend(part.as_bytes());
    }
    if let Some(file) = file {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"talk.wav\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend([head.as_bytes(), file, b"\r\n"].concat());
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

fn send(server: &Running, path: &str, body: &[u8]) -> Response {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let headers = [("Content-Type", kind.as_str())];
    with(server.address, "POST", path, &headers, body)
}

/// What is answered to a recording with these fields.
pub fn transcribe(server: &Running, fields: &[(&str, &str)]) -> Response {
    send(server, PATH, &form(fields, Some(&jfk())))
}

/// Breaks when a format is not what clients of OpenAI read: its fields, its times, its content type.
#[test]
fn a_recording_becomes_a_transcript_in_every_format() {
    let server = serve_asset("whisper-tiny.en", "model.bin");
    let jfk = jfk();
    let ask = |fields: &[(&str, &str)]| send(&server, PATH, &form(fields, Some(&jfk)));
    let plain = ask(&[("model", "whisper-tiny.en"), ("language", "en")]).json();
    let text = plain["text"].as_str().unwrap();
    assert!(
        text.contains("ask not what your country can do for you"),
        "{text}"
    );
    assert_eq!(plain["usage"], json!({"type": "duration", "seconds": 11.0}));

    let fields = [
        ("response_format", "verbose_json"),
        ("timestamp_granularities[]", "word"),
        ("timestamp_granularities[]", "segment"),
    ];
    let verbose = ask(&fields).json();
    assert_eq!(
        (&verbose["task"], &verbose["language"]),
        (&json!("transcribe"), &json!("en"))
    );
    assert_eq!(verbose["text"], text);
    let segment = &verbose["segments"][0];
    for field in [
        "avg_logprob",
        "compression_ratio",
        "no_speech_prob",
        "temperature",
        "seek",
    ] {
        assert!(segment[field].is_number(), "{field} in {segment}");
    }
    let words = verbose["words"].as_array().unwrap();
    let n_words = text.split(' ').count();
    assert_eq!(words.len(), n_words, "{words:?}");
    assert!(words[n_words - 1]["end"].as_f64().unwrap() <= 11.0);

    let srt = ask(&[("response_format", "srt")]);
    assert!(
        srt.header("content-type")
            .unwrap()
            .starts_with("application/x-subrip")
    );
    assert!(srt.text().starts_with("1\n00:00:00,"));
    assert!(
        ask(&[("response_format", "vtt")])
            .text()
            .starts_with("WEBVTT\n\n00:00:00.")
    );
    assert_eq!(
        ask(&[("response_format", "text")]).text(),
        format!("{text}\n")
    );

    let (events, _) = ask(&[("stream", "true")]).events();
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), text);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["text"]),
        (&json!("transcript.text.done"), &json!(text))
    );
}

/// Breaks when a mistake is not told with its field, or when a form that harms is read.
#[test]
fn mistakes_in_forms_are_named() {
    let server = serve_asset("whisper-tiny.en", "model.bin");
    let ask = |path: &str, fields: &[(&str, &str)], file: Option<&[u8]>| {
        let response = send(&server, path, &form(fields, file));
        let status = response.status;
        let error = response.json();
        let param = error["error"]["param"]
            .as_str()
            .unwrap_or_default()
            .to_string();
        (status, param)
    };
    let wrong = |param: &str| (400, param.to_string());
    let sound = jfk();
    let sound = Some(&sound[..]);
    assert_eq!(ask(PATH, &[], None), wrong("file"));
    assert_eq!(ask(PATH, &[], Some(b"")), wrong("file"));
    assert_eq!(ask(PATH, &[], Some(b"no sound at all")), wrong("file"));
    for (name, value) in [
        ("response_format", "pdf"),
        ("temperature", "hot"),
        ("temperature", "1.5"),
        ("timestamp_granularities[]", "letter"),
        ("stream", "perhaps"),
    ] {
        assert_eq!(ask(PATH, &[(name, value)], sound), wrong(name));
    }
    assert_eq!(
        ask(PATH, &[("language", "de")], sound),
        wrong("model"),
        "only English"
    );
    assert_eq!(ask("/v1/audio/translations", &[], sound), wrong("model"));
    assert_eq!(
        ask(PATH, &[("model", "none")], sound),
        (404, "model".into())
    );
    assert_eq!(send(&server, PATH, b"no form").status, 400);
    assert_eq!(post(server.address, PATH, &json!({})).status, 400);
    let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
    assert_eq!(
        post(server.address, "/v1/chat/completions", &chat).status,
        400
    );
    assert_eq!(
        post(server.address, "/v1/embeddings", &json!({"input": "a"})).status,
        400
    );
    let named = json!({"model": "whisper-tiny.en"});
    let shown = post(server.address, "/api/show", &named).json();
    assert_eq!(shown["capabilities"], json!(["transcription"]), "{shown}");
}

/// The same sentence of 11 s four times, a second of silence after each: three windows when each begins where a sentence of
/// the one before ended.
fn four_times() -> Vec<u8> {
    let sound = jfk();
    let data = sound.windows(4).position(|four| four == b"data").unwrap() + 8;
    let (mut head, samples) = (sound[..data].to_vec(), &sound[data..]);
    let body = [samples, &[0; 32_000]].concat().repeat(4);
    head[4..8].copy_from_slice(&((data - 8 + body.len()) as u32).to_le_bytes());
    head[data - 4..].copy_from_slice(&(body.len() as u32).to_le_bytes());
    [head, body].concat()
}

/// Breaks when the server's batch of windows does not reach the model, or when one that cannot be is found out by a client.
#[test]
fn windows_are_decoded_together_as_the_server_is_told() {
    let segments = |transcribe_batch: usize| -> Value {
        let options = ServerOptions {
            transcribe_batch,
            ..ServerOptions::default()
        };
        let server = serve_asset_with("whisper-tiny.en", "model.bin", options);
        let body = form(&[("response_format", "verbose_json")], Some(&four_times()));
        let answer = send(&server, PATH, &body).json();
        // A sentence that is said twice compresses so well that windows are decoded again, with words by chance.
        let said = answer["text"].as_str().unwrap();
        assert!(said.starts_with("And so my fellow Americans"), "{said}");
        answer["segments"].clone()
    };
    let (alone, together) = (segments(1), segments(4));
    // Windows that are decoded together are cut elsewhere.
    assert_ne!(alone, together);

    let options = ServerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        transcribe_batch: 17,
        ..ServerOptions::default()
    };
    let source = asset_source("whisper-tiny.en", "model.bin");
    let Err(error) = Server::bind(options, vec![source]) else {
        panic!("17 windows cannot be decoded together");
    };
    assert!(error.to_string().contains("17 windows"), "{error}");
}

/// Breaks when recordings fill the memory: one more than there are places for is refused before it is read, and a place is
/// given back when its client has gone.
#[test]
fn recordings_have_places() {
    let server = serve_asset("whisper-tiny.en", "model.bin");
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    );
    let waiting: Vec<_> = (0..8).map(|_| connect(server.address)).collect();
    for mut stream in &waiting {
        stream.write_all(head.as_bytes()).unwrap();
    }
    let status = || send(&server, PATH, &form(&[], None)).status;
    let seen = |wanted| {
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            status() == wanted
        })
    };
    assert!(seen(429), "all places are taken");
    drop(waiting);
    assert!(seen(400), "the places are free again");
}
