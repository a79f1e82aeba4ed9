//! Texts a second: `cargo run --release --example embed_speed MODEL FILE BATCH THREADS` embeds the lines of a file five times,
//! so many at once, and prints the best.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

use akunu::{CpuOptions, Device, Embedder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("give {what}"));
    let (model, file) = (next("a model")?, next("a file with texts")?);
    let batch: usize = next("the texts of a batch")?.parse()?;
    let threads = Some(next("the number of threads")?.parse()?);
    let device = Device::Cpu(CpuOptions {
        threads,
        isa: None,
        ..CpuOptions::default()
    });
    let embedder = Embedder::open_on(model, device)?;
    let text = std::fs::read_to_string(file)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begin = Instant::now();
        for texts in lines.chunks(batch.max(1)) {
            embedder.embed_all(texts)?;
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{:.1} texts/s", lines.len() as f64 / best);
    Ok(())
}
