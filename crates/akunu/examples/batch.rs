//! Several questions together, each weight read once for all: `cargo run --release --example batch model.gguf QUESTION…`
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;

use akunu::{GenerateOptions, Message, Progress, SessionOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = akunu::Model::open(arguments.next().ok_or("name a model file")?)?;
    let mut batch = model.batch(8)?;
    let mut answers = BTreeMap::new();
    for question in arguments {
        let session = model.session(SessionOptions::default())?;
        let prompt = model.prompt(&[Message::new("user", question.as_str())])?;
        let options = GenerateOptions {
            max_tokens: 32,
            ..GenerateOptions::default()
        };
        let sequence = batch.join_prompt(session, prompt, options)?;
        answers.insert(sequence, (question, String::new()));
    }
    while batch.is_running() {
        for event in batch.step() {
            let Some((_, answer)) = answers.get_mut(&event.sequence) else {
                continue;
            };
            match event.progress {
                Progress::Token(token) => answer.push_str(&token.text),
                Progress::Ended { tail, .. } => {
                    answer.push_str(&tail);
                    batch.leave(event.sequence);
                }
                Progress::Failed(error) => return Err(error.into()),
                _ => {}
            }
        }
    }
    for (question, answer) in answers.values() {
        println!("{question}\n  {}", answer.trim());
    }
    Ok(())
}
