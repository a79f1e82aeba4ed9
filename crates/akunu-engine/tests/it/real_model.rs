//! Real weights through the engine: slow on the device of twins, so only a few tokens.

use akunu_engine::{GenerateOptions, Model, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_tokenizer::EncodeOptions;

fn complete(name: &str, file: &str, prompt: &str, max_tokens: usize) -> String {
    let path = akunu_assets::path(name, file);
    let device = Box::new(TwinDevice::new());
    let model = Model::load(&path, device).expect("a whole model");
    let context = SessionOptions {
        context: Some(64),
        chunk: 32,
        ..SessionOptions::default()
    };
    let mut session = model.session(context).expect("memory");
    let encode = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let ids = model.tokenizer().encode(prompt, encode);
    session.feed(&ids).expect("fits");
    let options = GenerateOptions {
        max_tokens,
        ..Default::default()
    };
    let generation = session.generate(options).expect("greedy");
    generation.map(|token| token.expect("runs").text).collect()
}

#[test]
fn smollm2_knows_the_capital_of_france() {
    let text = complete(
        "smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "The capital of France is",
        2,
    );
    assert_eq!(text, " Paris.");
}

/// QK norm, windows, two RoPE bases, GELU and post norms, in five quantised formats.
#[test]
fn gemma3_counts() {
    let text = complete(
        "gemma3-270m",
        "gemma-3-270m.Q4_K_M.gguf",
        "One, two, three, four, five, six,",
        2,
    );
    assert_eq!(text, " seven,");
}
