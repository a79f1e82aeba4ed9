//! Texts a second: `cargo run --release --example embed_speed MODEL FILE` embeds the lines of a file, one by one and 32 at a
//! time, a few times each, and prints the best of both.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let embedder = akunu::Embedder::open(arguments.next().ok_or("name a model")?)?;
    let text = std::fs::read_to_string(arguments.next().ok_or("name a file with texts")?)?;
    let lines: Vec<&str> = text.lines().collect();
    embedder.embed_all(&lines)?;
    for batch in [1, 32] {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let begin = Instant::now();
            for texts in lines.chunks(batch) {
                embedder.embed_all(texts)?;
            }
            best = best.min(begin.elapsed().as_secs_f64());
        }
        println!("batch {batch}: {:.1} texts/s", lines.len() as f64 / best);
    }
    Ok(())
}
