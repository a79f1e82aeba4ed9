//! What a GPU is told by a whole model: a prefill, a decode step and a chain of three.

mod support;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use akunu_engine::{GenerateOptions, Model, Sampling, Session, SessionOptions};
use akunu_kernels::device::SharedBytes;
use akunu_kernels::gpu::{Bound, Call, Step, replay, unordered_pairs};
use akunu_kernels::{
    Buffer, ChipConfig, Device, DeviceError, Dispatch, PipelineId, PipelineKey, Plan, Ticket,
};
use akunu_sim::{CallLog, Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::DType;
use akunu_types::params::AttentionParams;
use support::tiny_llama;

/// A device that the test keeps a hand on while the model has it.
#[derive(Clone)]
struct Kept {
    device: Arc<Mutex<SimDevice>>,
    chip: ChipConfig,
}

impl Kept {
    fn get(&self) -> MutexGuard<'_, SimDevice> {
        self.device.lock().expect("no test has panicked with it")
    }
}

impl Device for Kept {
    fn name(&self) -> &'static str {
        "kept"
    }
    fn chip(&self) -> &ChipConfig {
        &self.chip
    }
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.get().allocate(bytes, label)
    }
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.get().share(bytes, label)
    }
    fn release(&mut self, buffer: Buffer) {
        self.get().release(buffer);
    }
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.get().write(buffer, offset, bytes)
    }
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.get().read(buffer, offset, bytes)
    }
    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.get().pipeline(key)
    }
    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        self.get().run_chain(plan, first, n)
    }
    fn runs_ahead(&self) -> bool {
        self.get().runs_ahead()
    }
    fn submit_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<Ticket, DeviceError> {
        self.get().submit_chain(plan, first, n)
    }
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        self.get().wait(ticket)
    }
}

fn device() -> (Kept, CallLog) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there: `apt-get install clang-19`");
    let backend = SimBackend::new(simulator, Schedule::Descending);
    let (log, chip) = (backend.log(), ChipConfig::m1());
    let device = SimDevice::over(backend, chip.clone());
    let device = Arc::new(Mutex::new(device));
    (Kept { device, chip }, log)
}

const PROMPT: [u32; 9] = [72, 101, 108, 108, 111, 44, 32, 49, 50];

fn greedy(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        ignore_end: true,
        ..Default::default()
    }
}

fn generate(session: &mut Session, n: usize) -> Vec<u32> {
    let generation = session.generate(greedy(n)).expect("options are fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// The calls of a plan, written down from its dispatches one by one.
fn expected(plan: &Plan, positions: Range<u32>, log: &CallLog) -> Vec<Call> {
    let pipelines = log.pipelines();
    let mut calls = Vec::new();
    for position in positions.clone() {
        for (at, dispatch) in plan.dispatches().iter().enumerate() {
            let is_very_first = at == 0 && position == positions.start;
            if plan.barrier_before(at) && !is_very_first {
                calls.push(Call::Barrier);
            }
            calls.extend(calls_of(dispatch, position, &pipelines));
        }
    }
    calls.push(Call::End);
    calls
}

fn calls_of(dispatch: &Dispatch, position: u32, pipelines: &[PipelineKey]) -> Vec<Call> {
    let row = dispatch.kernel.row();
    let is_ours =
        |key: &PipelineKey| key.kernel == dispatch.kernel && key.constants == dispatch.constants;
    let pipeline = pipelines.iter().position(is_ours).expect("it was made");
    let mut calls = vec![Call::SetPipeline(pipeline as u32)];
    for (binding, slice) in row.bindings.iter().zip(&dispatch.bindings) {
        calls.push(Call::SetBuffer {
            index: binding.index,
            buffer: slice.buffer.id,
            offset: slice.offset,
        });
    }
    let params = dispatch.patch.apply(&dispatch.params, position);
    calls.push(Call::SetBytes {
        index: row.params_index,
        bytes: params.as_bytes().to_vec(),
    });
    calls.push(Call::Dispatch {
        grid: dispatch.launch.grid,
        threads: dispatch.launch.threads,
    });
    calls
}

/// Asserts that no barrier is missing and that each one is needed: without it, a pair of launches
/// would race.
fn assert_barriers_are_exact(calls: &[Call], log: &CallLog) {
    let pipelines = log.pipelines();
    let races = |calls: &[Call]| {
        let steps = replay(calls).expect("an encoder accepts them");
        unordered_pairs(&steps, |number| &pipelines[number as usize])
    };
    assert_eq!(races(calls), []);
    let barriers = (0..calls.len()).filter(|&at| calls[at] == Call::Barrier);
    let mut n_barriers = 0;
    for at in barriers {
        let without = [&calls[..at], &calls[at + 1..]].concat();
        assert_ne!(
            races(&without),
            [],
            "the barrier at call {at} orders nothing"
        );
        n_barriers += 1;
    }
    let is_launch = |call: &&Call| matches!(call, Call::Dispatch { .. });
    let n_launches = calls.iter().filter(is_launch).count();
    assert!(
        (2..n_launches).contains(&n_barriers),
        "{n_barriers} of {n_launches}"
    );
}

/// How many keys each attention of a submission is told to look at.
fn lengths(calls: &[Call], log: &CallLog) -> Vec<u32> {
    let pipelines = log.pipelines();
    let steps = replay(calls).expect("an encoder accepts them");
    let mut lengths = Vec::new();
    for step in &steps {
        let Step::Launch(launch) = step else { continue };
        let row = pipelines[launch.pipeline as usize].kernel.row();
        if row.params.name == "AttentionParams" {
            let Bound::Bytes(params) = &launch.bound[&row.params_index] else {
                panic!("params are inline");
            };
            let params: AttentionParams = bytemuck::pod_read_unaligned(params);
            lengths.push(params.kv_seq_len);
        }
    }
    lengths
}

#[test]
fn a_prefill_a_step_and_a_chain_are_told_what_the_plan_says() {
    let (mut device, log) = device();
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, Box::new(device.clone())).expect("a whole model");
    let options = SessionOptions {
        context: Some(32),
        ..Default::default()
    };
    let mut session = model.session(options).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let prefill = log.submissions().pop().expect("one submission");
    assert_eq!(log.submissions().len(), 1, "one chunk");
    assert_barriers_are_exact(&prefill, &log);
    assert_eq!(lengths(&prefill, &log), [9, 9], "two layers");

    generate(&mut session, 1);
    let first = PROMPT.len() as u32;
    let plan = session.decode_plan(Sampling::greedy()).expect("fine");
    device.run(plan, first).expect("runs");
    let step = log.submissions().pop().expect("submitted");
    assert_eq!(step, expected(plan, first..first + 1, &log));
    assert_barriers_are_exact(&step, &log);
    assert_eq!(lengths(&step, &log), [10, 10]);

    device.run_chain(plan, first, 3).expect("runs");
    let chain = log.submissions().pop().expect("submitted");
    assert_eq!(chain, expected(plan, first..first + 3, &log));
    assert_barriers_are_exact(&chain, &log);
    assert_eq!(lengths(&chain, &log), [10, 10, 11, 11, 12, 12]);
}

/// While tokens are handed out the next submission is under way already; stopping rolls it back.
#[test]
fn the_device_computes_while_tokens_are_handed_out() {
    let (device, log) = device();
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    let options = SessionOptions {
        context: Some(32),
        ..Default::default()
    };
    let mut session = model.session(options).expect("memory");
    session.feed(&PROMPT).expect("fits");
    let whole = generate(&mut session, 5);
    // The prompt, the first choice, and a submission for each token or two after it: never one more.
    let in_all = log.submissions().len();

    session.feed(&PROMPT).expect("fits");
    let before = log.submissions().len();
    let mut generation = session.generate(greedy(5)).expect("options are fine");
    let taken: Vec<u32> = generation
        .by_ref()
        .take(2)
        .map(|token| token.expect("runs").id)
        .collect();
    // The choice, the step of the second token, and the one after it, which nobody has asked for.
    assert_eq!(log.submissions().len() - before, 3);
    drop(generation);
    assert_eq!(session.tokens(), [&PROMPT[..], &taken].concat());
    assert_eq!(taken, whole[..2]);
    assert_eq!(generate(&mut session, 3), whole[2..]);
    assert!((4..=6).contains(&in_all), "{in_all} submissions");
}
