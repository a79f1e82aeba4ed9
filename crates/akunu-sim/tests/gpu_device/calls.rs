//! The exact calls of a submission.

use akunu_kernels::gpu::{
    Call, Compiled, Numbered, Part, Recorder, Resources, UnorderedPair, encode_part, replay,
    unordered_pairs,
};
use akunu_kernels::{Device, DeviceError, Dispatch, KernelId, PipelineId, PipelineKey, Plan};
use akunu_sim::CallLog;

use super::{BYTES, Bench, COUNT, SLOTS};

/// The calls of one round of the bench's plan: an addition to each of two vectors, the write to the
/// cache, the sum of both.
fn round(log: &CallLog, position: u32, is_first: bool) -> Vec<Call> {
    let pipelines = log.pipelines();
    let number = |kernel| {
        let at = pipelines.iter().position(|key| key.kernel == kernel);
        Call::SetPipeline(at.expect("it was made") as u32)
    };
    let buffer = |index, buffer, offset| Call::SetBuffer {
        index,
        buffer,
        offset,
    };
    let words = |index, words: &[u32]| Call::SetBytes {
        index,
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    let go = Call::Dispatch {
        grid: [1, 1, 1],
        threads: [256, 1, 1],
    };
    let add = |[a, b, y]: [usize; 3]| {
        vec![
            number(KernelId::VectorAdd),
            buffer(0, 0, a * BYTES),
            buffer(1, 0, b * BYTES),
            buffer(2, 0, y * BYTES),
            words(3, &[COUNT, 0, 0, 0]),
            go.clone(),
        ]
    };
    let keep = vec![
        number(KernelId::KvCacheWrite),
        buffer(0, 0, BYTES),
        buffer(1, 1, 0),
        words(2, &[1, COUNT, SLOTS, position, 0, 1, 0, 0]),
        go.clone(),
    ];
    let barrier = || vec![Call::Barrier];
    [
        if is_first { vec![] } else { barrier() },
        add([0, 0, 1]),
        // Both additions only read vector 0.
        add([0, 0, 2]),
        barrier(),
        keep,
        // Writes vector 0, which is settled by the barrier; vector 1 is only read by both.
        add([1, 2, 0]),
    ]
    .concat()
}

#[test]
fn a_step_is_told_exactly_this() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(0, 1.0);
    bench.device.run(&plan, 5).expect("runs");
    let expected = [round(&bench.log, 5, true), vec![Call::End]].concat();
    assert_eq!(bench.log.submissions(), [expected]);
    assert_eq!(bench.get(0), 4.0);
    assert_eq!(bench.kept(), [0., 0., 0., 0., 0., 2., 0., 0.]);
}

/// One submission, the position patched in each round, a barrier between rounds.
#[test]
fn a_chain_of_three_is_told_exactly_this() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(0, 1.0);
    bench.device.run_chain(&plan, 2, 3).expect("runs");
    let rounds = [
        round(&bench.log, 2, true),
        round(&bench.log, 3, false),
        round(&bench.log, 4, false),
        vec![Call::End],
    ];
    assert_eq!(bench.log.submissions(), [rounds.concat()]);
    assert_eq!(bench.get(0), 64.0);
    assert_eq!(bench.kept(), [0., 0., 2., 8., 32., 0., 0., 0.]);
}

/// A chain that is longer than a first command buffer may be goes on in a second one.
#[test]
fn a_long_chain_is_cut() {
    let mut bench = Bench::new();
    let addition = bench.add([0, 1, 2]);
    let plan = Plan::check(vec![addition], 99).expect("sizes are right");
    bench.device.run_chain(&plan, 0, 20).expect("runs");
    let lengths: Vec<usize> = bench.log.submissions().iter().map(Vec::len).collect();
    // A round has six calls, between two rounds is a barrier, and the end is one.
    assert_eq!(lengths, [8 * 7, 8 * 7, 4 * 7]);
}

/// Buffers and pipelines by the numbers that the bench gives them.
struct Numbers {
    buffers: [Number; 2],
    pipelines: Vec<Compiled<Number>>,
}

struct Number(u32);

impl Numbered for Number {
    fn number(&self) -> u32 {
        self.0
    }
}

impl Resources<Recorder<Number, Number>> for Numbers {
    fn place(
        &self,
        dispatch: &Dispatch,
        binding: usize,
        _: u32,
    ) -> Result<(&Number, usize), DeviceError> {
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
    bench.device.run(&plan, 3).expect("runs");
    let whole = bench.log.submissions().remove(0);
    let is_addition = |key: &PipelineKey| key.kernel == KernelId::VectorAdd;
    let addition = bench.log.pipelines().iter().position(is_addition);
    // The bench asks for the addition first; the simulator numbers what is compiled first.
    let numbers = match addition {
        Some(0) => [0, 1],
        _ => [1, 0],
    };
    let compiled = |number| Compiled {
        pipeline: Number(number),
        max_threads: 1024,
        threadgroup_room: 0,
    };
    let resources = Numbers {
        buffers: [Number(0), Number(1)],
        pipelines: numbers.map(compiled).into(),
    };
    let encode = |dispatches| {
        let mut recorder = Recorder::new();
        let part = Part {
            positions: 3..4,
            dispatches,
        };
        encode_part(&plan, &part, &resources, &mut recorder).expect("all is there");
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
    bench.device.run_chain(&plan, 0, 2).expect("runs");
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
        // The cache keeps what the first addition writes, and so on.
        vec![pair(0, 2, 0), pair(0, 3, 0), pair(1, 3, 0)],
        // Vector 1 is kept while the next round writes it; vector 0 is read while it is written.
        vec![pair(2, 4, 0), pair(3, 4, 0), pair(3, 5, 0)],
        vec![pair(4, 6, 0), pair(4, 7, 0), pair(5, 7, 0)],
    ];
    assert_eq!(found, expected);
}

/// A position that the plan was not checked for never reaches the GPU.
#[test]
fn what_the_plan_does_not_admit_is_not_submitted() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let refused = bench
        .device
        .run_chain(&plan, SLOTS - 1, 2)
        .expect_err("one too many");
    assert!(matches!(refused, DeviceError::Position { .. }), "{refused}");
    assert!(bench.log.submissions().is_empty());
}
