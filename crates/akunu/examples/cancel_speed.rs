//! How long cancelling takes while a prompt is read: `cargo run --release --example cancel_speed MODEL THREADS ROUNDS` cancels
//! so many readings of a long prompt, each at another moment, and prints the median and the longest wait.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::{Duration, Instant};

use akunu::{CancelFlag, ChatOptions, CpuOptions, Device, Error, Model};

/// Words of the prompt, which must take longer to read than the latest cancel comes.
const WORDS: usize = 1000;
/// When the first reading is cancelled, and how much later each further one.
const FIRST: Duration = Duration::from_millis(500);
const LATER: Duration = Duration::from_millis(130);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("give {what}"));
    let model = next("a model")?;
    let threads = Some(next("the number of threads")?.parse()?);
    let rounds: u32 = next("the number of rounds")?.parse()?;
    let device = Device::Cpu(CpuOptions {
        threads,
        ..CpuOptions::default()
    });
    let model = Model::open_on(model, device)?;
    let mut waits = Vec::new();
    for round in 0..rounds {
        waits.push(wait(&model, FIRST + LATER * round)?);
    }
    waits.sort();
    let (Some(longest), Some(median)) = (waits.last(), waits.get(waits.len() / 2)) else {
        return Err("at least one round is needed".into());
    };
    println!("{median:.0?} in the middle, {longest:.0?} at most");
    Ok(())
}

/// The time from a cancel, so long after the question, to the end of the call that reads it.
fn wait(model: &Model, after: Duration) -> Result<Duration, Box<dyn std::error::Error>> {
    let cancel = CancelFlag::default();
    let mut chat = model.chat_with(ChatOptions {
        context: Some(8192),
        cancel: cancel.clone(),
        ..model.chat_options()
    })?;
    // Another beginning each time, so that no page of an earlier round can be taken over.
    let question = format!("{after:?} {}", "word ".repeat(WORDS));
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(after);
        cancel.cancel();
        Instant::now()
    });
    let asked = chat.ask(question).map(drop);
    let ended = Instant::now();
    let cancelled = canceller.join().map_err(|_| "the thread that cancels")?;
    match asked {
        Err(Error::Engine(akunu::EngineError::Cancelled { .. })) => Ok(ended - cancelled),
        Err(other) => Err(other.into()),
        Ok(()) => Err("the prompt was read before it was cancelled".into()),
    }
}
