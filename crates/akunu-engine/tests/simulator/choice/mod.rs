//! How tokens are chosen: against the exact softmax, against llama.cpp, and the same in every schedule.

mod bench;
mod llama_cpp;
mod logprobs;
mod schedule;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_engine::{Model, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_tokenizer::EncodeOptions;
use akunu_types::params::SamplingRule;

use crate::support::exact_cpu::cpu;
use bench::{Bench, Wanted, chi_squared, simulator, softmax};

fn smollm2() -> Model {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    Model::load(path, cpu()).expect("a whole model")
}

/// The logits after a prompt.
fn logits_after(model: &Model, prompt: &str) -> Vec<f32> {
    let options = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let ids = model.tokenizer().encode(prompt, options);
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(&ids).expect("fits");
    session.logits().expect("there are some")
}

/// Draws at temperature 1 without cuts follow the softmax of the whole vocabulary, for three prompts and 10^5 draws
/// together. Fails for a rule
/// that leaves tokens out, for another temperature and for noise that is not Gumbel's: the planted rules show it.
#[test]
fn draws_follow_the_exact_softmax() {
    const N: usize = 34_000;
    let model = smollm2();
    let prompts = [
        "The best fruit is",
        "Once upon a time, there was a",
        "def fibonacci(n):\n",
    ];
    for (at, prompt) in prompts.iter().enumerate() {
        let logits = logits_after(&model, prompt);
        let wanted = softmax(&logits, 1.0);
        let mut bench = Bench::new(cpu(), logits.len() as u32, 64);
        let rule = SamplingRule {
            seed_lo: 5 + at as u32,
            ..SamplingRule::PLAIN
        };
        let drawn = bench.draws(&logits, &Wanted::of(rule), N);
        let (found, limit) = chi_squared(&drawn, &wanted);
        assert!(found < limit, "{prompt}: {found} of {limit}");
        if at > 0 {
            continue;
        }
        for wrong in [
            SamplingRule { top_k: 256, ..rule },
            SamplingRule {
                temperature: 1.2,
                ..rule
            },
        ] {
            let drawn = bench.draws(&logits, &Wanted::of(wrong), N / 3);
            let (found, limit) = chi_squared(&drawn, &wanted);
            assert!(found > limit, "{wrong:?}: {found} of {limit}");
        }
    }
}

/// The twin, the simulated Metal kernels and every level of instructions draw the same tokens from a real vocabulary,
/// with and without cuts. Fails if one of them reads it otherwise.
#[test]
fn all_devices_draw_the_same_tokens() {
    let logits = logits_after(&smollm2(), "The best fruit is");
    let rule = SamplingRule {
        seed_lo: 77,
        ..SamplingRule::PLAIN
    };
    let rules = [
        rule,
        SamplingRule {
            top_k: 40,
            top_p: 0.95,
            min_p: 0.1,
            temperature: 0.7,
            ..rule
        },
        SamplingRule { top_p: 0.9, ..rule },
        SamplingRule {
            typical_p: 0.6,
            min_p: 0.01,
            ..rule
        },
        SamplingRule {
            n_sigma: 2.0,
            xtc_probability: 1.0,
            xtc_threshold: 0.05,
            dynamic_range: 0.5,
            ..rule
        },
        SamplingRule {
            mirostat_tau: 4.0,
            mirostat_eta: 0.1,
            ..rule
        },
    ];
    let n = logits.len() as u32;
    let tokens = |device: Box<dyn Device>| -> Vec<Vec<u32>> {
        let mut bench = Bench::new(device, n, 2);
        let each = rules.iter();
        each.map(|&rule| bench.draws(&logits, &Wanted::of(rule), 4))
            .collect()
    };
    let wanted = tokens(Box::new(TwinDevice::new()));
    assert_eq!(tokens(simulator()), wanted, "the simulator");
    for isa in Isa::available() {
        for threads in [1, 2, 3] {
            let options = CpuOptions {
                threads: Some(threads),
                isa: Some(isa),
                ..CpuOptions::default()
            };
            let device = Box::new(CpuDevice::new(options).expect("the machine has it"));
            assert_eq!(tokens(device), wanted, "{isa}, {threads} threads");
        }
    }
}
