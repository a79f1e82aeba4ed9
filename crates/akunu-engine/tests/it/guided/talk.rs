//! Models, prompts and answers of these tests.

use std::path::Path;
use std::sync::OnceLock;

use akunu_engine::{
    Batch, EngineError, GenerateOptions, Model, Progress, Sampling, SequenceId, SessionOptions,
    Speculated, StopReason,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_tokenizer::EncodeOptions;

use crate::support::exact_cpu::exact_cpu;
use crate::support::{TINY, TinyLlama};

/// A model on the CPU. Answers alone, together and with guesses are steps of different numbers of rows.
pub fn real(path: &Path) -> Model {
    Model::load(path, exact_cpu()).expect("a whole model")
}

/// One for all tests.
pub fn smollm2() -> Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    let path = || akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    MODEL.get_or_init(|| real(&path())).clone()
}

/// One for all tests.
pub fn gemma3() -> Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    let path = || akunu_assets::path("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    MODEL.get_or_init(|| real(&path())).clone()
}

/// A random model of bytes on the device of twins; token 0 ends an answer.
pub fn tiny() -> Model {
    let file = TinyLlama {
        end_token: Some(0),
        ..TINY
    }
    .write();
    Model::load(&file.path, Box::new(TwinDevice::new())).expect("a whole model")
}

pub fn encode(model: &Model, text: &str) -> Vec<u32> {
    let options = EncodeOptions {
        add_special: true,
        parse_special: true,
        ..EncodeOptions::default()
    };
    model.tokenizer().encode(text, options)
}

/// A question in the way that SmolLM2 was trained on.
pub fn question(text: &str) -> String {
    format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n")
}

pub fn drawn(seed: u64, repetition_penalty: f32) -> Sampling {
    Sampling {
        temperature: 0.8,
        top_k: 40,
        seed,
        repetition_penalty,
        ..Sampling::greedy()
    }
}

/// An answer.
#[derive(Debug)]
pub struct Said {
    pub ids: Vec<u32>,
    pub text: String,
    pub stop: Option<StopReason>,
    pub speculated: Speculated,
}

/// The answer of a session by itself.
pub fn alone(model: &Model, prompt: &[u32], options: GenerateOptions) -> Said {
    try_alone(model, prompt, options).expect("runs")
}

/// The same, or why it fails.
pub fn try_alone(
    model: &Model,
    prompt: &[u32],
    options: GenerateOptions,
) -> Result<Said, EngineError> {
    let context = SessionOptions {
        context: Some(1024.min(model.config().context_length)),
        ..SessionOptions::default()
    };
    let mut session = model.session(context).expect("memory");
    session.feed(prompt).expect("fits");
    let mut generation = session.generate(options).expect("options are fine");
    let (mut ids, mut text) = (Vec::new(), String::new());
    for token in generation.by_ref() {
        let token = token?;
        ids.push(token.id);
        text.push_str(&token.text);
    }
    text.push_str(&generation.tail());
    Ok(Said {
        ids,
        text,
        stop: generation.stop(),
        speculated: generation.speculated(),
    })
}

/// The answers of several prompts that step together, in the order in which they joined.
pub fn together(model: &Model, asked: &[(Vec<u32>, GenerateOptions)]) -> Vec<Said> {
    let mut batch = model.batch(asked.len() as u32).expect("memory");
    let ids: Vec<SequenceId> = asked
        .iter()
        .map(|(prompt, options)| {
            let context = SessionOptions {
                context: Some(1024.min(model.config().context_length)),
                ..SessionOptions::default()
            };
            let session = model.session(context).expect("memory");
            let joined = batch.join_prompt(session, prompt, options.clone());
            joined.expect("there is room")
        })
        .collect();
    run(&mut batch, &ids)
}

/// Steps a batch to its end.
pub fn run(batch: &mut Batch, ids: &[SequenceId]) -> Vec<Said> {
    let mut said: Vec<Said> = ids
        .iter()
        .map(|_| Said {
            ids: Vec::new(),
            text: String::new(),
            stop: None,
            speculated: Speculated::default(),
        })
        .collect();
    while batch.is_running() {
        for event in batch.step() {
            let at = ids.iter().position(|id| *id == event.sequence);
            let said = &mut said[at.expect("one of ours")];
            match event.progress {
                Progress::Token(token) => {
                    said.ids.push(token.id);
                    said.text.push_str(&token.text);
                }
                Progress::Ended { reason, tail } => {
                    said.text.push_str(&tail);
                    said.stop = Some(reason);
                }
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    for (said, id) in said.iter_mut().zip(ids) {
        said.speculated = batch.speculated(*id).expect("still there");
    }
    said
}
