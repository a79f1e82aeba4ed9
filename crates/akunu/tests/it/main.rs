//! The tests of the front door, one module a subject, in one program: each program would link the whole engine.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod chat;
#[path = "../support/classifier.rs"]
mod classifier;
mod embedder;
mod examples;
mod features;
mod images;
#[path = "../support/pictured.rs"]
mod pictured;
mod public_face;
#[path = "../../../akunu-engine/tests/support/random_whisper.rs"]
mod random_whisper;
mod reexported;
mod stream;
mod transcriber;

/// A small model for conversations.
fn smollm2() -> akunu::Model {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    akunu::Model::open(path).unwrap()
}
