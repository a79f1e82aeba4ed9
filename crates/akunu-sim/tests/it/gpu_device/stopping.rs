//! Submissions that can be stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use akunu_program::{Device, DeviceError};

use super::{Bench, START, after, assert_near};

/// The command buffers of a chain of 20 rounds on a device that has measured nothing: 8, 8 and 4.
const CHAIN: u32 = 20;

/// Breaks when a GPU computes a long prompt to its end after it was cancelled.
#[test]
fn a_submission_that_can_stop_has_little_under_way() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let flag = Arc::new(AtomicBool::new(false));
    bench.set(1, START);
    bench.submit(plan, CHAIN).expect("submitted");
    assert_eq!(
        bench.get(1),
        START,
        "without a flag, submit waits for nothing"
    );

    let mut bench = Bench::new();
    let plan = bench.plan();
    bench.device.stop_when(Some(Arc::clone(&flag)));
    bench.set(1, START);
    let ticket = bench.submit(plan, CHAIN).expect("submitted");
    assert_eq!(bench.log.submissions().len(), 3);
    assert_ne!(
        bench.get(1),
        START,
        "the first part has ended before the last is submitted"
    );
    bench.device.wait(ticket).expect("runs");
    assert_eq!(bench.kept().len(), CHAIN as usize, "all rounds ran");
}

#[test]
fn a_stopped_submission_leaves_a_device_that_works() {
    let mut bench = Bench::new();
    let plan = bench.plan();
    let flag = Arc::new(AtomicBool::new(true));
    bench.device.stop_when(Some(Arc::clone(&flag)));
    bench.set(1, START);
    let stopped = bench.submit(plan, CHAIN).expect_err("it is to stop");
    assert!(matches!(stopped, DeviceError::Stopped), "{stopped}");
    assert!(bench.log.submissions().is_empty(), "nothing was begun");
    assert_eq!(bench.get(1), START);

    flag.store(false, Ordering::Relaxed);
    bench.run(plan, 1);
    assert_near(bench.get(1), after(1).0);
    flag.store(true, Ordering::Relaxed);
    bench.device.stop_when(None);
    bench.run(plan, 1);
    assert_near(bench.get(1), after(2).0);
}
