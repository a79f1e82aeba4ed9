//! The exact calls of a submission.

use akunu_kernels::gpu::{
    Call, Compiled, Numbered, Recorder, Resources, SubmissionPart, UnorderedPair, encode_part,
    replay, unordered_pairs,
};
use akunu_kernels::{ChipConfig, Dispatch, KernelId, PipelineId, PipelineKey};
use akunu_program::{Count, Device, DeviceError, RowError, RowTable};
use akunu_sim::CallLog;
use akunu_types::params::Row;

use super::{BYTES, Bench, COUNT, ROWS, SLOTS, START, after, assert_near};

const GO: Call = Call::Dispatch {
    grid: [1, 1, 1],
    threads: [256, 1, 1],
};

fn pipeline(log: &CallLog, kernel: KernelId) -> Call {
    let pipelines = log.pipelines();
    let at = pipelines.iter().position(|key| key.kernel == kernel);
    Call::SetPipeline(at.expect("it was made") as u32)
}

fn buffer(index: u8, buffer: u32, offset: usize) -> Call {
    Call::SetBuffer {
        index,
        buffer,
        offset,
    }
}

fn words(index: u8, words: &[u32]) -> Call {
    Call::SetBytes {
        index,
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

/// The calls of one gate.
fn gate(log: &CallLog, n_rows: u32, [a, b, y]: [usize; 3]) -> Vec<Call> {
    vec![
        pipeline(log, KernelId::SiluGate),
        buffer(0, 0, a * BYTES),
        buffer(1, 0, b * BYTES),
        buffer(2, 0, y * BYTES),
        words(3, &[n_rows * COUNT, 0, 0, 0]),
        GO,
    ]
}

/// The calls of one round of the bench's plan: a gate into each of two vectors, the step of the rows, a gate of
/// both. Where the rows stand is in none of them.
fn round(log: &CallLog, n_rows: u32, is_first: bool) -> Vec<Call> {
    let advance = vec![
        pipeline(log, KernelId::AdvanceRows),
        buffer(0, 1, 0),
        buffer(1, 0, 0),
        buffer(2, 2, 0),
        words(3, &[n_rows, ROWS + 1, SLOTS, 0]),
        GO,
    ];
    let barrier = || vec![Call::Barrier];
    [
        if is_first { vec![] } else { barrier() },
        gate(log, n_rows, [1, 1, 0]),
        // Both gates only read vector 1.
        gate(log, n_rows, [1, 1, 2]),
        barrier(),
        advance,
        // Writes vector 1, which is settled by the barrier; vector 0 is only read by both.
        gate(log, n_rows, [0, 2, 1]),
    ]
    .concat()
}

#[test]
fn a_step_is_told_exactly_this() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    bench.start(1, 5);
    bench.run(plan, 1);
    let expected = [round(&bench.log, 1, true), vec![Call::End]].concat();
    assert_eq!(bench.log.submissions(), [expected]);
    assert_near(bench.get(1), after(1).0);
    assert_eq!(bench.get_rows(1)[1], START, "one row takes part");
    bench.assert_kept(&[(5, 1)]);
}

/// One submission, the same calls in each round, a barrier between rounds: the rows move on by themselves, and what the
/// host thinks of them is what they are.
#[test]
fn a_chain_of_three_is_told_exactly_this() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    bench.start(1, 2);
    bench.run(plan, 3);
    let rounds = [
        round(&bench.log, 1, true),
        round(&bench.log, 1, false),
        round(&bench.log, 1, false),
        vec![Call::End],
    ];
    assert_eq!(bench.log.submissions(), [rounds.concat()]);
    assert_near(bench.get(1), after(3).0);
    bench.assert_kept(&[(2, 1), (3, 2), (4, 3)]);
    let rows: Vec<Row> = bench.numbers(bench.memory.rows, 0, 1);
    assert_eq!(rows, bench.table.rows());
    assert_eq!((rows[0].step, rows[0].position), (5, 3));
}

/// The same program with one row and with two, and a second step that goes on where the first ended.
#[test]
fn as_many_rows_are_told_as_the_step_has() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    bench.start(2, 0);
    bench.run(plan, 1);
    bench.run(plan, 1);
    bench.start(1, 7);
    bench.run(plan, 1);
    let told = [2, 2, 1].map(|n| [round(&bench.log, n, true), vec![Call::End]].concat());
    assert_eq!(bench.log.submissions(), told);
    let [first, second] = bench.get_rows(1);
    assert_near(first, after(3).0);
    assert_near(second, after(2).0);
    bench.assert_kept(&[(0, 1), (1, 2), (7, 3)]);
}

/// The second dispatch is for the run, which this step has not: its barrier stands before the third.
#[test]
fn what_has_no_rows_is_left_out_but_not_its_barrier() {
    let mut bench = Bench::new();
    let calls = vec![
        bench.gate_rows(Count::Singles, [1, 1, 0]),
        bench.gate_rows(Count::Run, [0, 0, 2]),
        bench.gate_rows(Count::Singles, [1, 1, 3]),
    ];
    let plan = bench.load_with_run(calls, 1);
    let step = bench.table.check(1).expect("no pages are needed");
    bench.device.run(plan, Some(&step)).expect("runs");
    let told = [
        gate(&bench.log, 1, [1, 1, 0]),
        vec![Call::Barrier],
        gate(&bench.log, 1, [1, 1, 3]),
        vec![Call::End],
    ];
    assert_eq!(bench.log.submissions(), [told.concat()]);
}

/// A chain that is longer than a first command buffer may be goes on in a second one.
#[test]
fn a_long_chain_is_cut() {
    let mut bench = Bench::new();
    let calls = vec![bench.gate([0, 1, 2]), bench.advance()];
    let plan = bench.load(calls);
    bench.run(plan, 20);
    let lengths: Vec<usize> = bench.log.submissions().iter().map(Vec::len).collect();
    // A round has twelve calls, between two rounds is a barrier, and the end is one.
    assert_eq!(lengths, [8 * 13, 8 * 13, 4 * 13]);
}

/// Buffers and pipelines by the numbers that the bench gives them.
struct Numbers {
    buffers: [Number; 3],
    pipelines: Vec<Compiled<Number>>,
}

struct Number(u32);

impl Numbered for Number {
    fn number(&self) -> u32 {
        self.0
    }
}

impl Resources<Recorder<Number, Number>> for Numbers {
    fn place(&self, dispatch: &Dispatch, binding: usize) -> Result<(&Number, usize), DeviceError> {
        let slice = dispatch.bindings[binding];
        Ok((&self.buffers[slice.buffer.id as usize], slice.offset))
    }

    fn pipeline(&self, id: PipelineId) -> Result<&Compiled<Number>, DeviceError> {
        Ok(&self.pipelines[id.0 as usize])
    }
}

/// A round in two command buffers: the same calls, but for the barrier where the second begins.
#[test]
fn a_round_can_be_cut_between_dispatches() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.run(plan, 1);
    let whole = bench.log.submissions().remove(0);
    let is_gate = |key: &PipelineKey| key.kernel == KernelId::SiluGate;
    let gate = bench.log.pipelines().iter().position(is_gate);
    // The bench asks for the gate first; the simulator numbers what is compiled first.
    let numbers = match gate {
        Some(0) => [0, 1],
        _ => [1, 0],
    };
    let compiled = |number| Compiled {
        pipeline: Number(number),
        max_threads: 1024,
        threadgroup_room: 0,
    };
    let resources = Numbers {
        buffers: [0, 1, 2].map(Number),
        pipelines: numbers.map(compiled).into(),
    };
    let plan = bench.device.plan(plan).expect("it is loaded");
    let encode = |dispatches| {
        let mut recorder = Recorder::new();
        let part = SubmissionPart {
            rounds: 1,
            dispatches,
            counts: bench.table.counts(),
        };
        let chip = ChipConfig::m1();
        encode_part(plan, &part, &chip, &resources, &mut recorder).expect("all is there");
        recorder.end()
    };
    let (first, second) = (encode(0..2), encode(2..4));
    let split = whole.iter().position(|call| *call == Call::Barrier);
    let split = split.expect("the third dispatch has a barrier");
    assert_eq!(first[..first.len() - 1], whole[..split]);
    assert_eq!(second, whole[split + 1..]);
}

/// Planted: each barrier in turn is taken out of a chain, and each time the check finds the pair.
#[test]
fn a_missing_barrier_is_found() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.run(plan, 2);
    let calls = bench.log.submissions().remove(0);
    let pipelines = bench.log.pipelines();
    let pairs = |calls: &[Call]| {
        let steps = replay(calls).expect("valid calls");
        unordered_pairs(&steps, |number| &pipelines[number as usize])
    };
    assert_eq!(pairs(&calls), []);
    let barriers = |(at, call): (usize, &Call)| (*call == Call::Barrier).then_some(at);
    let barriers: Vec<usize> = calls.iter().enumerate().filter_map(barriers).collect();
    let found: Vec<Vec<UnorderedPair>> = barriers
        .iter()
        .map(|&at| pairs(&[&calls[..at], &calls[at + 1..]].concat()))
        .collect();
    let pair = |first, second, buffer| UnorderedPair {
        first,
        second,
        buffer,
    };
    let expected = [
        // The record keeps what the first gate writes, and so on.
        vec![pair(0, 2, 0), pair(0, 3, 0), pair(1, 3, 0)],
        // Vector 0 is kept while the next round writes it; vector 1 is read while it is written.
        vec![pair(2, 4, 0), pair(3, 4, 0), pair(3, 5, 0)],
        vec![pair(4, 6, 0), pair(4, 7, 0), pair(5, 7, 0)],
    ];
    assert_eq!(found, expected);
}

/// A step that is not for the plan never reaches the GPU.
#[test]
fn what_the_plan_does_not_admit_is_not_submitted() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let calls = vec![bench.gate([0, 1, 2])];
    let still = bench.load(calls);
    let refusals = |bench: &mut Bench, plan, rounds| match bench.submit(plan, rounds) {
        Err(DeviceError::Rows(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusals(&mut bench, still, 2), RowError::Still { steps: 2 });
    let (what, found, room) = ("rounds", SLOTS + 1, SLOTS);
    let too_long = RowError::Room { what, found, room };
    assert_eq!(refusals(&mut bench, plan, SLOTS + 1), too_long);
    bench.start(ROWS + 1, 0);
    let (what, found, room) = ("singles", ROWS + 1, ROWS);
    let too_many = RowError::Room { what, found, room };
    assert_eq!(refusals(&mut bench, plan, 1), too_many);
    bench.memory.n_sequences += 1;
    bench.table = RowTable::new(bench.memory, &[]);
    assert_eq!(refusals(&mut bench, plan, 1), RowError::Foreign);
    assert!(bench.log.submissions().is_empty());
}
