//! What a GPU is told by a whole model: a prefill, a decode step and a chain of three.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::tiny_llama;
use crate::support::watched::{Hooks, Watched};
use akunu_engine::{GenerateOptions, Model, Session, SessionOptions, Speculation};
use akunu_kernels::gpu::{Call, replay, unordered_pairs};
use akunu_kernels::lower::{self, GpuRules};
use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::{ChipConfig, Dispatch, PipelineKey, Plan};
use akunu_program::{Checked, Counts, Device, DeviceError, Op, PlanId, Program, RowTable, op};
use akunu_sim::{CallLog, Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::DType;
use akunu_types::params::Row;

/// What was submitted: a program, its rows, and how often it ran.
#[derive(Clone)]
pub struct Submitted {
    pub program: Program,
    pub counts: Counts,
    pub steps: u32,
}

/// Notes what is submitted.
#[derive(Clone, Default)]
pub struct Notes {
    programs: HashMap<PlanId, Program>,
    submitted: Arc<Mutex<Vec<Submitted>>>,
}

impl Hooks for Notes {
    fn loaded(&mut self, plan: PlanId, program: &Program) {
        self.programs.insert(plan, program.clone());
    }

    fn ran(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<(), DeviceError> {
        let step = step.expect("a model's programs have rows");
        self.submitted.lock().expect("no panic").push(Submitted {
            program: self.programs[&plan].clone(),
            counts: step.counts(),
            steps: step.steps(),
        });
        Ok(())
    }
}

impl Notes {
    pub fn last(&self) -> Submitted {
        let submitted = self.submitted.lock().expect("no panic");
        submitted.last().expect("something was submitted").clone()
    }
}

/// An M1 that a single row fills: keys are not split, so that no kernel asks for scratch memory, which the calls that are
/// written down here could not name.
fn chip() -> ChipConfig {
    ChipConfig {
        gpu_cores: 0,
        ..ChipConfig::m1()
    }
}

pub fn device() -> (Watched<SimDevice, Notes>, Notes, CallLog) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there: `apt-get install clang-19`");
    let backend = SimBackend::new(simulator, Schedule::Descending);
    let (log, hooks) = (backend.log(), Notes::default());
    let device = SimDevice::over(backend, chip());
    let notes = hooks.clone();
    (Watched::new(device, hooks), notes, log)
}

const PROMPT: [u32; 9] = [72, 101, 108, 108, 111, 44, 32, 49, 50];

/// Without guesses, which an answer that was given before would get.
fn greedy(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        max_tokens,
        ignore_end: true,
        speculation: Speculation::off(),
        ..Default::default()
    }
}

fn generate(session: &mut Session, n: usize) -> Vec<u32> {
    let generation = session.generate(greedy(n)).expect("options are fine");
    generation.map(|token| token.expect("runs").id).collect()
}

/// The calls of a submission, written down from its dispatches one by one.
pub fn expected(submitted: &Submitted, log: &CallLog) -> Vec<Call> {
    let Submitted {
        program,
        counts,
        steps,
    } = submitted;
    let calls = lower::by_rules(program, &GpuRules::new(&chip()), None);
    let plan = Plan::make(calls, program.plan_room(), &mut HostPipelines::default());
    let (plan, pipelines) = (plan.expect("it was loaded"), log.pipelines());
    let mut calls = Vec::new();
    for round in 0..*steps {
        for (at, dispatch) in plan.dispatches().iter().enumerate() {
            if plan.barrier_before(at) && (at, round) != (0, 0) {
                calls.push(Call::Barrier);
            }
            calls.extend(calls_of(dispatch, counts, &pipelines));
        }
    }
    calls.push(Call::End);
    calls
}

fn calls_of(dispatch: &Dispatch, counts: &Counts, pipelines: &[PipelineKey]) -> Vec<Call> {
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
    let params = dispatch.params_for(counts);
    let launch = dispatch.launch_for(&params, &chip());
    calls.push(Call::SetBytes {
        index: row.params_index,
        bytes: params.as_bytes().to_vec(),
    });
    calls.push(Call::Dispatch {
        grid: launch.grid,
        threads: launch.threads,
    });
    calls
}

/// Asserts that no barrier is missing and that each one is needed: without it, a pair of launches
/// would race. Only between two rounds there is one whatever the program.
pub fn assert_barriers_are_exact(calls: &[Call], steps: usize, log: &CallLog) {
    let pipelines = log.pipelines();
    let races = |calls: &[Call]| {
        let steps = replay(calls).expect("an encoder accepts them");
        unordered_pairs(&steps, |number| &pipelines[number as usize])
    };
    assert_eq!(races(calls), []);
    let round = (calls.len() - steps) / steps;
    let is_between = |at: usize| at % (round + 1) == round;
    let barriers = (0..calls.len()).filter(|&at| calls[at] == Call::Barrier && !is_between(at));
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

#[test]
fn a_prefill_a_step_and_a_chain_are_told_what_the_plan_says() {
    let (device, notes, log) = device();
    let kept = device.device();
    let file = tiny_llama(DType::Q4_0);
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    let options = SessionOptions {
        context: Some(32),
        ..Default::default()
    };
    let mut session = model.session(options).expect("memory");
    session.feed(&PROMPT).expect("fits");
    assert_eq!(log.submissions().len(), 1, "one chunk");
    let check = |rows: (u32, u32), steps: u32| {
        let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
        let counts = submitted.counts;
        assert_eq!(
            ((counts.singles, counts.run), submitted.steps),
            (rows, steps)
        );
        assert_eq!(calls, expected(&submitted, &log));
        assert_barriers_are_exact(&calls, steps as usize, &log);
    };
    check((0, 9), 1);
    generate(&mut session, 2);
    check((1, 0), 1);

    // The same program three times in one submission, from the tenth position on.
    let submitted = notes.last();
    let chain = Submitted {
        steps: 3,
        ..submitted
    };
    let mut device = kept.lock().expect("no panic");
    let plan = device.load(&chain.program).expect("it was loaded before");
    let mut table = table_of(&chain.program);
    table.set_page(0, 0, 0, Some(0));
    table.push_single(Row::at(0, PROMPT.len() as u32), 5);
    let step = table.check(3).expect("all lies in the first page");
    device.run(plan, Some(&step)).expect("runs");
    let calls = log.submissions().pop().expect("submitted");
    assert_eq!(calls, expected(&chain, &log));
    assert_barriers_are_exact(&calls, 3, &log);
}

/// A row table over the memory that a program names.
fn table_of(program: &Program) -> RowTable {
    let map = program.ops.iter().find_map(|op| match op {
        Op::Attend(op::Attend { cache, .. }) => Some(cache.pages),
        _ => None,
    });
    let memory = program.step.expect("it has rows");
    RowTable::new(memory, &[map.expect("it attends")])
}

/// While tokens are handed out the next submission is under way already; stopping rolls it back.
#[test]
fn the_device_computes_while_tokens_are_handed_out() {
    let (device, _, log) = device();
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
