//! How similar texts are: `cargo run --release --example embed MODEL TEXT TEXT…` compares the first with the others.
#![allow(clippy::print_stdout, reason = "it is a program")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let embedder = akunu::Embedder::open(arguments.next().ok_or("name a model")?)?;
    let first = embedder.embed(&arguments.next().ok_or("give some texts")?)?;
    for text in arguments {
        let other = embedder.embed(&text)?;
        let similarity: f32 = first.iter().zip(&other).map(|(a, b)| a * b).sum();
        println!("{similarity:.3}  {text}");
    }
    Ok(())
}
