//! Asks a model one question: `cargo run --release --example hello model.gguf`
#![allow(clippy::print_stdout, reason = "it is a program")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a model file")?;
    let model = akunu::Model::open(path)?;
    let mut chat = model.chat()?;
    for piece in chat.ask("What is the capital of France?")? {
        print!("{}", piece?);
    }
    println!();
    Ok(())
}
