//! A model whose architecture is described here and not in akunu: `cargo run --release --example architecture llama.gguf`
//!
//! This one is Llama's. Yours has other parts, and the name that its files have in `general.architecture`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use akunu::arch::{Activation, Layer, ModelFile, Pairing, Parts, WindowPattern};
use akunu::{ArchError, Architecture, ModelConfig, ModelOptions};

static MINE: Architecture = Architecture::new("llama", &["llama"], Pairing::Interleaved, read);

/// From the description of a model to its layers.
fn read(file: &ModelFile) -> Result<ModelConfig, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    Ok(parts.decoder(|at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(parts.attention(at), ffn, parts.input_norms(at))
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a model file")?;
    let options = ModelOptions {
        architecture: Some(&MINE),
        ..ModelOptions::default()
    };
    let model = akunu::Model::open_with(path, akunu::Device::Auto, options)?;
    println!("{}", model.config().layers[0]);
    let mut chat = model.chat_with(akunu::ChatOptions {
        sampling: akunu::Sampling::greedy(),
        ..model.chat_options()
    })?;
    for piece in chat.ask("What is the capital of France?")? {
        print!("{}", piece?);
    }
    println!();
    Ok(())
}
