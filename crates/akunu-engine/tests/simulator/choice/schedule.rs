//! The same tokens alone, in chains of any length and in batches, also where the choice has a state.

use akunu_engine::{GenerateOptions, Progress, Sampling, Session, SessionOptions};

use super::smollm2;

/// Mirostat's bound moves from token to token and lies on the device. Fails if it is lost when others take the seat, when
/// a chain ends, or if a sequence gets that of another. Log probabilities come along.
#[test]
fn a_state_of_the_choice_follows_its_sequence() {
    let model = smollm2();
    let options = |seed: u64, max_chain| GenerateOptions {
        max_tokens: 8,
        max_chain,
        ignore_end: true,
        logprobs: Some(1),
        sampling: Sampling {
            temperature: 1.0,
            mirostat_tau: 3.0 + seed as f32 / 4.0,
            mirostat_eta: 0.5,
            seed,
            ..Sampling::greedy()
        },
        ..GenerateOptions::default()
    };
    let fed = |seed: u64| -> Session {
        let mut session = model.session(SessionOptions::default()).expect("memory");
        session
            .feed(&[504, 1450 + seed as u32, 4354, 314])
            .expect("fits");
        session
    };
    let alone = |seed: u64, max_chain| -> Vec<u32> {
        let mut session = fed(seed);
        let tokens = session
            .generate(options(seed, max_chain))
            .expect("options are fine");
        tokens.map(|token| token.expect("runs").id).collect()
    };
    let wanted: Vec<Vec<u32>> = (0..3).map(|seed| alone(seed, 1)).collect();
    for (seed, wanted) in (0..).zip(&wanted) {
        assert_eq!(alone(seed, 8), *wanted, "in chains");
    }
    // Twelve take turns on eight seats.
    let mut generations: Vec<_> = (0..12)
        .map(|at| {
            fed(at % 3)
                .into_generation(options(at % 3, 2))
                .expect("options are fine")
        })
        .collect();
    let mut found = vec![Vec::new(); 12];
    for _ in 0..8 {
        for (generation, found) in generations.iter_mut().zip(&mut found) {
            found.extend(generation.next().map(|token| token.expect("runs").id));
        }
    }
    for (at, found) in found.iter().enumerate() {
        assert_eq!(*found, wanted[at % 3], "sequence {at}");
    }
    let mut batch = model.batch(3).expect("memory");
    let ids: Vec<_> = (0..3)
        .map(|seed| {
            batch
                .join(fed(seed), options(seed, 1))
                .expect("there is room")
        })
        .collect();
    let mut found = vec![Vec::new(); 3];
    while batch.is_running() {
        for event in batch.step() {
            if let Progress::Token(token) = event.progress {
                assert!(token.logprobs.is_some());
                let at = ids.iter().position(|id| *id == event.sequence);
                found[at.expect("one of them")].push(token.id);
            }
        }
    }
    assert_eq!(found, wanted, "together");
}
