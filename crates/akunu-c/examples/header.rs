//! Writes `include/akunu.h` from the Rust sources: `cargo run -p akunu-c --example header`.
#![forbid(unsafe_code)]

#[path = "../tests/it/generate.rs"]
mod generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Ok(std::fs::write(generate::path(), generate::header()?)?)
}
