//! What sequences cost each other: joining and leaving, a beginning that is known already, idle neighbours, and a long
//! prompt that is read beside them.
//!
//! ```text
//! cargo bench -p akunu-benches --bench scheduler -- MODEL.gguf
//! ```
#![allow(clippy::print_stdout, reason = "figures for docs/performance.md")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{
    Batch, EngineError, GenerateOptions, Model, Progress, SequenceId, Session, SessionOptions,
};

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: usize = 5;

fn main() -> Result<(), EngineError> {
    let path = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let Some(path) = path else {
        println!("give a model file: cargo bench -p akunu-benches --bench scheduler -- MODEL.gguf");
        return Ok(());
    };
    let device = CpuDevice::new(CpuOptions::default()).map_err(|error| {
        let why = error.to_string();
        EngineError::Device(akunu_program::DeviceError::Unavailable { device: "cpu", why })
    })?;
    println!("{path}, {} threads", device.threads());
    let model = Model::load(&path, Box::new(device))?;
    joining(&model)?;
    known_beginning(&model)?;
    idle_neighbours(&model)?;
    long_prompt(&model)?;
    Ok(())
}

fn session(model: &Model, context: u32) -> Result<Session, EngineError> {
    model.session(SessionOptions {
        context: Some(context),
        ..Default::default()
    })
}

/// Tokens that no other text begins with.
fn text(model: &Model, salt: u32, n: u32) -> Vec<u32> {
    let vocab_size = model.config().vocab_size;
    let spread = |i: u32| (i ^ (salt << 20)).wrapping_mul(2_654_435_761) % vocab_size;
    (1..=n).map(spread).collect()
}

fn endless() -> GenerateOptions {
    GenerateOptions {
        ignore_end: true,
        ..Default::default()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The tokens of one step.
fn step(batch: &mut Batch) -> Result<Vec<SequenceId>, EngineError> {
    let mut stepped = Vec::new();
    for event in batch.step() {
        match event.progress {
            Progress::Token(_) => stepped.push(event.sequence),
            Progress::Failed(error) => return Err(error),
            _ => {}
        }
    }
    Ok(stepped)
}

/// Joining and leaving a batch of sixteen that runs.
fn joining(model: &Model) -> Result<(), EngineError> {
    let mut batch = model.batch(16)?;
    for n in 0..15 {
        let mut session = session(model, 512)?;
        session.feed(&text(model, 100 + n, 20))?;
        batch.join(session, endless())?;
    }
    let mut guest = session(model, 512)?;
    guest.feed(&text(model, 99, 20))?;
    step(&mut batch)?;
    let (mut joins, mut leaves, mut allocations) = (Vec::new(), Vec::new(), 0);
    for _ in 0..200 {
        let options = endless();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let begin = Instant::now();
        let id = batch.join(guest, options)?;
        joins.push(begin.elapsed().as_secs_f64() * 1e6);
        allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        step(&mut batch)?;
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let begin = Instant::now();
        let Some(left) = batch.leave(id) else {
            return Err(EngineError::UnknownSequence);
        };
        leaves.push(begin.elapsed().as_secs_f64() * 1e6);
        allocations = allocations.max(ALLOCATIONS.load(Ordering::Relaxed) - before);
        guest = left;
        guest.truncate(20);
    }
    println!(
        "join {:.1} µs, leave {:.1} µs (medians of 200), {allocations} allocations at most",
        median(joins),
        median(leaves)
    );
    Ok(())
}

/// The time to the first token of a prompt of 2,000 tokens, cold and when somebody has read it before.
fn known_beginning(model: &Model) -> Result<(), EngineError> {
    let first_token = |prompt: &[u32]| -> Result<f64, EngineError> {
        let begin = Instant::now();
        let mut session = session(model, 2100)?;
        session.feed(prompt)?;
        session.generate(endless())?.next().transpose()?;
        Ok(begin.elapsed().as_secs_f64() * 1e3)
    };
    let (mut cold, mut known) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u32 {
        let prompt = text(model, 200 + round, 2000);
        cold.push(first_token(&prompt)?);
        known.push(first_token(&prompt)?);
    }
    let (cold, known) = (median(cold), median(known));
    let share = 100.0 * known / cold;
    println!("first token after 2,000: {cold:.1} ms cold, {known:.1} ms known, {share:.1} %");
    Ok(())
}

/// Tokens a second of one sequence, alone and with 32 idle ones that hold 200 tokens each.
fn idle_neighbours(model: &Model) -> Result<(), EngineError> {
    let speed = |salt| -> Result<f64, EngineError> {
        let mut session = session(model, 512)?;
        session.feed(&text(model, salt, 100))?;
        let mut generation = session.generate(endless())?;
        generation.next().transpose()?;
        let begin = Instant::now();
        for token in generation.take(64) {
            token?;
        }
        Ok(64.0 / begin.elapsed().as_secs_f64())
    };
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u32 {
        alone.push(speed(300 + round)?);
        let mut idle = Vec::new();
        for n in 0..32 {
            let mut session = session(model, 512)?;
            session.feed(&text(model, 400 + 32 * round + n, 200))?;
            idle.push(session);
        }
        beside.push(speed(350 + round)?);
    }
    let (alone, beside) = (median(alone), median(beside));
    let share = 100.0 * beside / alone;
    println!(
        "decoding: {alone:.1} tok/s alone, {beside:.1} beside 32 idle sequences, {share:.1} %"
    );
    Ok(())
}

/// The longest time between two tokens of a running sequence while a prompt of 4,000 tokens is read beside it.
fn long_prompt(model: &Model) -> Result<(), EngineError> {
    let mut batch = model.batch(4)?;
    let mut runner = session(model, 4200)?;
    runner.feed(&text(model, 500, 50))?;
    let runner = batch.join(runner, endless())?;
    for _ in 0..10 {
        step(&mut batch)?;
    }
    let prompt = text(model, 501, 4000);
    let reader = batch.join_prompt(session(model, 4200)?, prompt, endless())?;
    let (mut gaps, mut last) = (Vec::new(), Instant::now());
    loop {
        let stepped = step(&mut batch)?;
        if stepped.contains(&runner) {
            gaps.push(last.elapsed());
            last = Instant::now();
        }
        if stepped.contains(&reader) {
            break;
        }
    }
    let longest = gaps.iter().max().copied().unwrap_or_default();
    let total: Duration = gaps.iter().sum();
    println!(
        "a prompt of 4,000 beside: {} steps in {:.2} s, longest gap {:.0} ms",
        gaps.len(),
        total.as_secs_f64(),
        longest.as_secs_f64() * 1e3
    );
    Ok(())
}
