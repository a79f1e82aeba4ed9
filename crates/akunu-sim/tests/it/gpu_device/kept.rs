//! Rounds that are encoded once and repeated, as a CUDA graph is.

use akunu_program::Device;
use akunu_sim::{Schedule, SimBackend};

use super::{Bench, START, after, assert_near, simulator};

fn keeping() -> Bench {
    let backend = SimBackend::new(simulator(), Schedule::Descending);
    Bench::over(backend.with_kept_rounds())
}

/// Breaks when a chain is encoded for each round or each submission, when a round begins before the last one has ended,
/// or when another number of rows gets the round of these.
#[test]
fn a_round_is_encoded_once_for_each_number_of_rows() {
    let mut bench = keeping();
    let plan = bench.plan();
    bench.set(1, START);
    bench.run(plan, 3);
    assert_near(bench.get(1), after(3).0);
    bench.run(plan, 2);
    assert_near(bench.get(1), after(5).0);
    assert_eq!(bench.log.submissions().len(), 1, "encoded once");
    bench.start(2, 0);
    bench.run(plan, 1);
    assert_eq!(
        bench.log.submissions().len(),
        2,
        "two rows are another round"
    );
    bench.start(1, 0);
    bench.run(plan, 1);
    assert_eq!(bench.log.submissions().len(), 2, "one row is known");
}

/// A kept round names its buffers by address: one that was released must not be reached any more.
#[test]
fn a_released_buffer_is_not_reached_by_a_kept_round() {
    let mut bench = keeping();
    let plan = bench.plan();
    bench.run(plan, 1);
    bench.device.release(bench.memory.chosen);
    let gone = bench.submit(plan, 1).expect_err("its record is gone");
    assert_eq!(gone.to_string(), "buffer 2 is not of this device");
}
