//! The small model on the GPU of this Mac.

use crate::support::tiny_llama;
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_kernels::MetalDevice;
use akunu_kernels::case::nmse;
use akunu_kernels::metal::Order;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_types::DType;

/// A prompt of 35 tokens, then 40 more in chains: the ids, and the logits after the prompt.
fn run(device: Box<dyn Device>, sampling: Sampling) -> (Vec<u32>, Vec<f32>) {
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, device).expect("a whole model");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    let prompt: Vec<u32> = (0..35).map(|i| i * 7 % 256).collect();
    session.feed(&prompt).expect("fits");
    let logits = session.logits().expect("there are some");
    let generate = GenerateOptions {
        max_tokens: 40,
        max_chain: 8,
        sampling,
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(generate).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    (ids, logits)
}

/// A missing barrier shows as a difference between the two orders, a wrong kernel as one from the
/// twins.
#[test]
fn metal_gives_the_tokens_of_the_twins_in_both_orders() {
    let sampling = Sampling::greedy();
    let (twin, twin_logits) = run(Box::new(TwinDevice::new()), sampling);
    for order in [Order::Serial, Order::Concurrent] {
        let device = MetalDevice::with_order(order).expect("a Mac with a GPU");
        let (metal, logits) = run(Box::new(device), sampling);
        let error = nmse(&logits, &twin_logits);
        // Sums in another order and half-precision tiles in the prefill products.
        assert!(error < 1e-4, "{order:?}: NMSE {error}");
        assert_eq!(metal, twin, "{order:?}");
    }
}
