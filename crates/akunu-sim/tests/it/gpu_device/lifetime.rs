//! What happens between a submission and its end. The simulator runs a submission when it is waited
//! for, as late as a GPU may.

use akunu_kernels::gpu::{Backend, Compiler, Encoder};
use akunu_kernels::kernel::common::gather_rows;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Device, DeviceError, Room, Ticket};
use akunu_sim::{Schedule, SimBackend, SimMemory};
use akunu_types::params::GatherRowsParams;

use super::{Bench, COUNT, START, after, assert_near, simulator};

/// Two chains under way at once: the second is told before the first has ended, and they end in order.
#[test]
fn the_next_chain_is_submitted_while_one_is_under_way() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    let first = bench.submit(plan, 1).expect("submitted");
    let second = bench.submit(plan, 1).expect("submitted");
    assert_eq!(bench.log.submissions().len(), 2);
    assert_eq!(bench.get(1), START, "nothing has run yet");
    bench.device.wait(first).expect("runs");
    assert_near(bench.get(1), after(1).0);
    bench.device.wait(first).expect("it has ended already");
    assert_near(bench.get(1), after(1).0);
    bench.device.wait(second).expect("runs");
    assert_near(bench.get(1), after(2).0);
}

/// The host would change what kernels are about to read.
#[test]
fn a_write_waits_for_what_is_under_way() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    bench.submit(plan, 1).expect("submitted");
    bench.set(3, 7.0);
    assert_near(bench.get(1), after(1).0);
}

/// Breaks when a released buffer does not live until the submission has ended.
#[test]
fn a_buffer_that_is_released_under_way_lives_until_the_end() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let ticket = bench.submit(plan, 1).expect("submitted");
    bench.device.release(bench.memory.chosen);
    bench
        .device
        .wait(ticket)
        .expect("the record is still there");
    let gone = bench.submit(plan, 1).expect_err("now it is not");
    assert_eq!(gone.to_string(), "buffer 2 is not of this device");
    assert_eq!(bench.log.submissions().len(), 1);
}

/// The backend without the device: a gate, from a buffer to itself, told twice.
fn told_twice(between: fn(&mut <SimBackend as Backend>::Encoder<'_>)) -> Told {
    let key = PipelineKey::plain(KernelId::SiluGate);
    let mut backend = SimBackend::new(simulator(), Schedule::Ascending);
    let compiled = backend.compiler().compile(&key);
    let pipeline = compiled.expect("compiles").pipeline;
    let buffer = backend.allocate(96, "test").expect("memory");
    let submission = backend.submit(|encoder| {
        encoder.set_pipeline(&pipeline);
        for index in 0..3 {
            encoder.set_buffer(index, &buffer, 32 * usize::from(index));
        }
        encoder.set_bytes(3, bytemuck::bytes_of(&[8u32, 0, 0, 0]));
        encoder.dispatch([1, 1, 1], [32, 1, 1]);
        between(encoder);
        encoder.dispatch([1, 1, 1], [32, 1, 1]);
        Ok(())
    });
    Told {
        backend,
        buffer,
        submission,
    }
}

struct Told {
    backend: SimBackend,
    buffer: SimMemory,
    submission: Result<<SimBackend as Backend>::Submission, DeviceError>,
}

/// Shows that the test above can fail: the simulator notices a buffer that is gone.
#[test]
fn a_buffer_that_is_dropped_under_way_is_noticed() {
    let mut told = told_twice(|encoder| encoder.barrier());
    drop(told.buffer);
    let submission = told.submission.expect("recorded");
    let why = told.backend.wait(submission).expect_err("it is gone");
    assert!(why.contains("released before the kernel ran"), "{why}");
}

/// Planted: both launches write the same bytes, and nothing orders them.
#[test]
fn a_submission_without_its_barrier_is_refused() {
    assert!(told_twice(|encoder| encoder.barrier()).submission.is_ok());
    let refused = told_twice(|_| ()).submission.expect_err("they race");
    assert!(
        refused.to_string().contains("a barrier is missing"),
        "{refused}"
    );
}

/// More chains than may be under way: the oldest ends first, and nothing is lost.
#[test]
fn many_chains_do_not_pile_up() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.set(1, START);
    let mut last = Ticket::default();
    for _ in 0..5 {
        last = bench.submit(plan, 1).expect("submitted");
    }
    // Two of five had to end.
    assert_near(bench.get(1), after(2).0);
    bench.device.wait(last).expect("all run");
    assert_near(bench.get(1), after(5).0);
}

/// Planted: copies a row that is not there, which no row table would let pass. The simulator stops, as a GPU faults.
fn out_of_bounds(bench: &mut Bench) -> Ticket {
    let outputs = bench.memory.outputs;
    let far = bytemuck::bytes_of(&1_000_000u32);
    bench.device.write(outputs, 0, far).expect("fits");
    let params = GatherRowsParams {
        n_rows: 1,
        dim: COUNT,
        row_capacity: 1,
        ..Default::default()
    };
    let key = PipelineKey::plain(KernelId::GatherRows);
    let buffers = gather_rows::Buffers {
        from: bench.vector(0),
        outputs: outputs.into(),
        to: bench.vector(1),
    };
    let copy = KernelCall::new(key, &params, buffers, "copy");
    let faulty = bench.device.load_kernels(vec![copy], Room::default());
    let faulty = faulty.expect("sizes are right");
    bench.device.submit(faulty, None).expect("submitted")
}

/// A GPU that has failed holds nobody knows what: it is not asked again.
#[test]
fn a_device_that_failed_is_not_used_any_more() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let ticket = out_of_bounds(&mut bench);
    let failed = bench.device.wait(ticket).expect_err("it stops").to_string();
    assert!(
        failed.starts_with("the GPU failed") && failed.contains("bytes behind the end"),
        "{failed}"
    );
    let again = bench.submit(plan, 1).expect_err("not used again");
    assert_eq!(again.to_string(), failed);
    let read = bench.device.read(bench.memory.tokens, 0, &mut [0]);
    assert!(matches!(read, Err(DeviceError::Lost { .. })), "{read:?}");
    assert_eq!(bench.log.submissions().len(), 1);
}
