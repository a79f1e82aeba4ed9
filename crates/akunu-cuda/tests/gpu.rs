//! On an NVIDIA GPU: every kernel against its twin, and a real model against the CPU device and the twins.
//!
//! `cargo measure gpu` runs them; without a GPU they are ignored, in so many words.

use std::time::{Duration, Instant};

use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_cuda::CudaDevice;
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions, Speculation};
use akunu_kernels::case::{Cases, nmse};
use akunu_kernels::table::KernelRow;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Buffer, Checked, Device, DeviceError, PlanId, Program, SharedBytes, Ticket};
use std::sync::{Arc, Mutex, PoisonError};

fn cuda() -> CudaDevice {
    akunu_cuda::open(0).expect("an NVIDIA GPU")
}

/// Products are summed in another order than the twins', which the cases allow for.
#[test]
#[ignore = "needs an NVIDIA GPU: cargo measure gpu"]
fn every_kernel_gives_what_its_twin_says() {
    let cases = Cases {
        wanted: |_: &KernelRow| true,
        exactly: false,
    };
    let n_cases = cases
        .all_pass_on(&mut cuda(), |_| {})
        .unwrap_or_else(|failures| panic!("{failures}"));
    assert!(n_cases > 1000, "{n_cases} cases");
}

/// The ids that follow a prompt, and the logits after it.
fn answer(device: Box<dyn Device>, prompt: &[u32], n_tokens: usize) -> (Vec<u32>, Vec<f32>) {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let model = Model::load(&path, device).expect("a whole model");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(prompt).expect("fits");
    let logits = session.logits().expect("there are some");
    let generate = GenerateOptions {
        max_tokens: n_tokens,
        max_chain: 16,
        sampling: Sampling::greedy(),
        ignore_end: true,
        // A step that checks guesses has other rows, and so a graph of its own.
        speculation: Speculation::off(),
        ..Default::default()
    };
    let generation = session.generate(generate).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    (ids, logits)
}

/// A wrong kernel, a wrong order of kernels or a graph that forgets something shows as another token; a rounding that
/// is not one of `f32` as a distance of the logits.
#[test]
#[ignore = "needs an NVIDIA GPU: cargo measure gpu"]
fn a_real_model_gives_the_tokens_of_the_cpu_and_the_logits_of_the_twins() {
    // "The capital of France is" for this vocabulary.
    let prompt = [504, 3575, 282, 4649, 314];
    let cpu = CpuDevice::new(CpuOptions::default()).expect("threads");
    let (expected, _) = answer(Box::new(cpu), &prompt, 64);
    let (found, logits) = answer(Box::new(cuda()), &prompt, 64);
    assert_eq!(found, expected);
    let (_, twins) = answer(Box::new(TwinDevice::new()), &prompt, 0);
    let error = nmse(&logits, &twins);
    println!("logits: {error:.1e} of the power of the twins'");
    assert!(error < 1e-5, "{error:e}");
}

/// What the host did for the rounds of a chain.
#[derive(Default, Clone, Copy)]
struct Work {
    rounds: u64,
    time: Duration,
}

/// The CUDA device, with the time that `submit` takes of chains.
struct Timed {
    device: CudaDevice,
    work: Arc<Mutex<(Work, akunu_cuda::Counters)>>,
}

impl Device for Timed {
    fn name(&self) -> &'static str {
        self.device.name()
    }
    fn description(&self) -> String {
        self.device.description()
    }
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes, label)
    }
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }
    fn release(&mut self, buffer: Buffer) {
        self.device.release(buffer);
    }
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(buffer, offset, bytes)
    }
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }
    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        self.device.load(program)
    }
    fn unload(&mut self, plan: PlanId) {
        self.device.unload(plan);
    }
    fn runs_ahead(&self) -> bool {
        self.device.runs_ahead()
    }
    fn submit(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        let begin = Instant::now();
        let ticket = self.device.submit(plan, step);
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let rounds = step.map_or(0, Checked::steps);
        if rounds > 1 {
            work.0.rounds += u64::from(rounds);
            work.0.time += begin.elapsed();
        }
        work.1 = self.device.backend().counters();
        ticket
    }
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        self.device.wait(ticket)
    }
}

/// A token of a chain is one launch of a graph that was captured once; the kernels of the prompt alone are launched
/// one by one.
#[test]
#[ignore = "needs an NVIDIA GPU: cargo measure gpu"]
fn a_chain_is_one_graph_launched_for_each_token() {
    const N_TOKENS: usize = 200;
    let work = Arc::new(Mutex::new((
        Work::default(),
        akunu_cuda::Counters::default(),
    )));
    let device = Timed {
        device: cuda(),
        work: Arc::clone(&work),
    };
    let prompt = [504, 3575, 282, 4649, 314];
    let (ids, _) = answer(Box::new(device), &prompt, N_TOKENS);
    assert_eq!(ids.len(), N_TOKENS);
    let (host, counters) = *work.lock().expect("nobody panicked");
    println!(
        "{counters:?}; {:.2} µs of host time a token in chains of {} tokens",
        host.time.as_secs_f64() * 1e6 / host.rounds as f64,
        host.rounds
    );
    assert!(
        counters.graph_launches >= N_TOKENS as u64 - 1,
        "{counters:?}"
    );
    assert!(counters.captures <= 3, "{counters:?}");
    // A few hundred for each part of the prompt, none for the tokens.
    assert!(counters.launches < 2000, "{counters:?}");
}
