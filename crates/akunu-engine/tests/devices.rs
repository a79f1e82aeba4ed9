//! The same plans on every device: the specification, the fast one, and the real Metal kernels.

mod support;

use std::path::{Path, PathBuf};

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{ChipConfig, Device};
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
use akunu_tokenizer::EncodeOptions;
use akunu_types::DType;
use support::tiny_llama;

fn twin() -> Box<dyn Device> {
    Box::new(TwinDevice::new(ChipConfig::m1()))
}

fn cpu() -> Box<dyn Device> {
    Box::new(CpuDevice::new(CpuOptions::default()).expect("a CPU"))
}

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
fn run(device: Box<dyn Device>, dtype: DType, sampling: Sampling) -> (Vec<u32>, Vec<f32>) {
    let file = tiny_llama(dtype);
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

/// The error of `found` as a share of the power of `wanted`.
fn error(found: &[f32], wanted: &[f32]) -> f32 {
    let pairs = found.iter().zip(wanted);
    let error: f32 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
    error / wanted.iter().map(|b| b * b).sum::<f32>()
}

/// Prefill, chain decode, greedy choice and draw, each kernel against its twin inside a whole plan.
#[test]
fn a_small_model_gives_the_same_tokens_on_every_device() {
    let drawn = Sampling {
        temperature: 0.8,
        top_k: 20,
        top_p: 0.9,
        seed: 3,
        ..Sampling::greedy()
    };
    for sampling in [Sampling::greedy(), drawn] {
        for dtype in [DType::F16, DType::Q4_0] {
            let (wanted, wanted_logits) = run(twin(), dtype, sampling);
            for device in [cpu(), simulator(Schedule::Random(9))] {
                let name = device.name();
                let (found, logits) = run(device, dtype, sampling);
                assert_eq!(found, wanted, "{name}, {dtype}, {sampling:?}");
                // Sums in another order; the simulator's prefill products have tiles of halves, and
                // the CPU rounds what it multiplies with quantised weights to 8 bits.
                let bound = if dtype == DType::F16 { 1e-5 } else { 1e-3 };
                let error = error(&logits, &wanted_logits);
                assert!(error < bound, "{name}, {dtype}: NMSE {error}");
            }
        }
    }
}

/// The whole of a real model through the Metal kernels.
#[test]
fn smollm2_gives_the_same_tokens_through_the_metal_kernels() {
    let complete = |device: Box<dyn Device>| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/assets/smollm2");
        let path = PathBuf::from(root).join("SmolLM2-135M-Instruct.Q4_1.gguf");
        let model = Model::load(&path, device);
        let model =
            model.unwrap_or_else(|error| panic!("{error}: run `cargo xtask assets smollm2`"));
        let options = SessionOptions {
            context: Some(32),
            chunk: 8,
        };
        let mut session = model.session(options).expect("memory");
        let encode = EncodeOptions {
            add_special: true,
            parse_special: false,
        };
        let ids = model.tokenizer().encode("The capital of France is", encode);
        session.feed(&ids.expect("text")).expect("fits");
        let options = GenerateOptions {
            max_tokens: 3,
            ..Default::default()
        };
        let generation = session.generate(options).expect("greedy");
        let tokens: Vec<String> = generation.map(|token| token.expect("runs").text).collect();
        tokens
    };
    let wanted = complete(cpu());
    assert_eq!(wanted[..2], [" Paris", "."]);
    assert_eq!(complete(simulator(Schedule::Ascending)), wanted);
}
