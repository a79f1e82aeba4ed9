//! A conversation, line by line: `cargo run --release --example chat model.gguf`
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::io::{Write, stdin, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a model file")?;
    let mut chat = akunu::Model::open(path)?.chat()?;
    for line in stdin().lines() {
        for piece in chat.ask(line?)? {
            print!("{}", piece?);
            stdout().flush()?;
        }
        println!();
    }
    Ok(())
}
