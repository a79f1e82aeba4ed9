//! The same small model through the real Metal kernels.

mod support;

use std::path::Path;

use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, Device};
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::DType;
use support::tiny_llama;

fn simulator(schedule: Schedule) -> Box<dyn Device> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there: `apt-get install clang-19`");
    Box::new(SimDevice::over(
        SimBackend::new(simulator, schedule),
        ChipConfig::m1(),
    ))
}

/// Prompt, then five tokens in chains of two: the ids and the logits after them.
fn run(device: Box<dyn Device>, sampling: Sampling) -> (Vec<u32>, Vec<f32>) {
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, device).expect("a whole model");
    let options = SessionOptions {
        context: Some(64),
        chunk: 40,
    };
    let mut session = model.session(options).expect("memory");
    let prompt: Vec<u32> = (0..35).map(|i| i * 7 % 256).collect();
    session.feed(&prompt).expect("fits");
    let generate = GenerateOptions {
        max_tokens: 5,
        max_chain: 2,
        sampling,
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(generate).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    (ids, session.logits().expect("there are some"))
}

/// Prefill, chain decode, greedy choice and draw, each kernel against its twin inside a whole plan.
#[test]
fn the_metal_kernels_give_the_tokens_of_the_twins() {
    let drawn = Sampling {
        temperature: 0.8,
        top_k: 20,
        top_p: 0.9,
        seed: 3,
        ..Sampling::greedy()
    };
    for sampling in [Sampling::greedy(), drawn] {
        let (twin, twin_logits) = run(Box::new(TwinDevice::new(ChipConfig::m1())), sampling);
        let (sim, sim_logits) = run(simulator(Schedule::Random(9)), sampling);
        assert_eq!(twin, sim, "{sampling:?}");
        let error: f32 = twin_logits
            .iter()
            .zip(&sim_logits)
            .map(|(a, b)| (a - b) * (a - b))
            .sum();
        let power: f32 = twin_logits.iter().map(|a| a * a).sum();
        // Sums in another order and half-precision tiles in the prefill products.
        assert!(error / power < 1e-4, "NMSE {}", error / power);
    }
}
