//! What llama.cpp said of a file's weights, as `fixtures/make_parity_fixtures.py` recorded it.

use std::path::PathBuf;

use serde::Deserialize;

/// One model file.
#[derive(Deserialize)]
pub struct Record {
    /// Of the model file.
    pub sha256: String,
    /// Tokens that the perplexity was computed over at once.
    pub chunk: usize,
    pub perplexity: Perplexity,
    pub prompts: Vec<Prompt>,
}

/// Of the text in `text.txt`.
#[derive(Deserialize)]
pub struct Perplexity {
    pub n_tokens: usize,
    pub n_scored: usize,
    pub value: f64,
    /// What llama.cpp gives when it rounds activations, as it does with the file as it is.
    pub rounded: f64,
}

/// A prompt and its greedy continuation.
#[derive(Deserialize)]
pub struct Prompt {
    pub text: String,
    pub ids: Vec<u32>,
    pub tokens: Vec<u32>,
    /// How far llama.cpp's logits move when it rounds activations, as a share of their power.
    pub rounding: f64,
    /// Some of the logits after the prompt: entry i is for token `i * vocab_size / logits.len()`.
    #[serde(skip)]
    pub logits: Vec<f32>,
}

fn fixture(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/parity");
    PathBuf::from(folder).join(name)
}

impl Record {
    pub fn read(name: &str) -> Record {
        let text = std::fs::read(fixture(&format!("{name}.json"))).expect("a fixture");
        let mut record: Record = serde_json::from_slice(&text).expect("a whole fixture");
        let logits = std::fs::read(fixture(&format!("{name}.bin"))).expect("a fixture");
        let of_prompts = logits.chunks_exact(logits.len() / record.prompts.len());
        for (prompt, bytes) in record.prompts.iter_mut().zip(of_prompts) {
            prompt.logits = bytemuck::cast_slice::<u8, [u8; 4]>(bytes)
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect();
        }
        record
    }
}

/// The text whose perplexity was computed.
pub fn text() -> String {
    std::fs::read_to_string(fixture("text.txt")).expect("a fixture")
}
