//! Nothing grows: 2,000 turns of one session, and 100,000 sessions that are made and dropped.
#![cfg(target_os = "linux")]

mod support;

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_types::DType;
use support::tiny_llama;

const TURNS: u32 = 2000;
/// What fills once (plans, pipelines, the allocator's own) has filled by then.
const WARM: u32 = 200;

/// Memory of this process that is in RAM, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    kib.expect("a line").parse().expect("a number")
}

fn small() -> SessionOptions {
    SessionOptions {
        context: Some(128),
        chunk: 64,
        ..SessionOptions::default()
    }
}

fn load() -> Model {
    let options = CpuOptions {
        threads: Some(1),
        ..Default::default()
    };
    let device = CpuDevice::new(options).expect("a CPU");
    let file = tiny_llama(DType::Q8_0);
    Model::load(&file.path, Box::new(device)).expect("a whole model")
}

/// A plan kept for each length of a prompt or for each seed would take some 40 KiB a turn, 70 MiB in
/// all; a buffer that is not given back more.
#[test]
fn two_thousand_turns_take_no_memory() {
    let model = load();
    let mut session = model.session(small()).expect("memory");
    let mut warm = 0;
    for turn in 0..TURNS {
        if turn == WARM {
            warm = resident();
        }
        let len = 1 + turn * 7 % 90;
        let prompt: Vec<u32> = (0..len).map(|i| (i + turn) % 256).collect();
        session.feed(&prompt).expect("fits");
        let options = GenerateOptions {
            max_tokens: 4,
            sampling: Sampling {
                temperature: 1.0,
                seed: turn.into(),
                ..Sampling::greedy()
            },
            ..Default::default()
        };
        let generation = session.generate(options).expect("fine");
        let tokens: Result<Vec<_>, _> = generation.collect();
        assert!(tokens.expect("runs").len() <= 4);
        if turn % 50 == 0 {
            session.score(&prompt, 1).expect("fits");
        }
    }
    let grown = resident().saturating_sub(warm);
    assert!(grown < 8 * 1024, "{grown} KiB from turn {WARM} to {TURNS}");
}

/// A place that is not used again, or a page that is not given back, would show: 100 bytes a session are 10 MB.
#[test]
fn a_hundred_thousand_sessions_take_no_memory() {
    let model = load();
    let mut warm = 0;
    for n in 0..100_000u32 {
        if n == 2000 {
            warm = resident();
        }
        let mut session = model.session(small()).expect("memory");
        // Some of them hold something.
        if n % 500 == 0 {
            let prompt: Vec<u32> = (0..70).map(|i| (i + n / 500) % 256).collect();
            session.feed(&prompt).expect("fits");
        }
    }
    let grown = resident().saturating_sub(warm);
    assert!(grown < 4 * 1024, "{grown} KiB by 98,000 sessions");
    assert_eq!(model.pages_in_use(), 0);
}
