//! A barrier orders the memory that its flags name, for the threads that it is for, and no other.

use crate::support::{Case, buffer, values};
use akunu_sim::{ConstantValue, Schedule, SimBuffer};

const DELAYED: Schedule = Schedule::Delayed(7);
const DEVICE: u32 = 1;
const THREADGROUP: u32 = 2;
const THREADS: u32 = 64;

/// Which memories each thread has seen its partner's store in, as flags; all threads must agree.
fn seen(simdgroup_flags: u32, threadgroup_flags: u32, partner: u32, schedule: Schedule) -> u32 {
    let memory = buffer(&[0u32; THREADS as usize]);
    let out = buffer(&[0u32; 2 * THREADS as usize]);
    let constants = [simdgroup_flags, threadgroup_flags, partner].map(ConstantValue::U32);
    let constants: Vec<_> = (0..).zip(constants).collect();
    let case = Case {
        kernel: "hand_over",
        threads: THREADS,
        buffers: &[&memory, &out],
        constants: &constants,
        schedule,
        ..Case::default()
    };
    case.run().expect("the kernel runs");
    let stored: Vec<u32> = (1..=THREADS).collect();
    assert_eq!(values::<u32>(&memory), stored, "all is there at the end");
    let out: Vec<u32> = values(&out);
    let flags: Vec<u32> = (0..THREADS)
        .zip(out.chunks_exact(2))
        .map(|(thread, seen)| {
            let expected = (thread ^ partner) + 1;
            let flag = |at: usize, flag: u32| if seen[at] == expected { flag } else { 0 };
            flag(0, DEVICE) | flag(1, THREADGROUP)
        })
        .collect();
    assert!(flags.iter().all(|&flag| flag == flags[0]), "{out:?}");
    flags[0]
}

/// Fails when a barrier orders what it does not name, or does not order what it names, or a simdgroup_barrier orders anything
/// between SIMD groups.
#[test]
fn a_barrier_orders_what_its_flags_name() {
    for of_simdgroup in 0..4 {
        for of_threadgroup in 0..4 {
            let what = format!("simdgroup {of_simdgroup}, threadgroup {of_threadgroup}");
            let neighbour = seen(of_simdgroup, of_threadgroup, 1, DELAYED);
            assert_eq!(neighbour, of_simdgroup | of_threadgroup, "{what}");
            let in_another_group = seen(of_simdgroup, of_threadgroup, 32, DELAYED);
            assert_eq!(in_another_group, of_threadgroup, "{what}");
        }
    }
}

/// The other schedules do not see the flags: each finds the stores of both memories.
#[test]
fn only_the_delayed_schedule_knows_flags() {
    for schedule in [
        Schedule::Ascending,
        Schedule::Descending,
        Schedule::Random(7),
    ] {
        assert_eq!(seen(0, 0, 32, schedule), DEVICE | THREADGROUP, "{schedule}");
    }
}

/// Fails when a SIMD function orders memory, when a thread does not see its own stores, or when atomic sums are delayed.
#[test]
fn simd_functions_order_no_memory() {
    let out = SimBuffer::zeroed(4 * 4 * 32).expect("memory for a buffer");
    let case = Case {
        kernel: "behind_a_sum",
        buffers: &[&out],
        schedule: DELAYED,
        ..Case::default()
    };
    case.run().expect("the kernel runs");
    let out: Vec<u32> = values(&out);
    for (lane, seen) in (0..).zip(out.chunks_exact(4)) {
        let poison = u32::MAX;
        assert_eq!(seen, [lane + 1, poison, 32, 32], "lane {lane}");
    }
}

/// Fails when a store is kept as more than its own bytes, or places that overlap are taken out or put back in the wrong order.
#[test]
fn stores_may_overlap() {
    let out = SimBuffer::zeroed(4 * 8).expect("memory for a buffer");
    let case = Case {
        kernel: "overlapping_stores",
        buffers: &[&out],
        schedule: DELAYED,
        ..Case::default()
    };
    case.run().expect("the kernel runs");
    let mut expected: Vec<u8> = (0..32).collect();
    expected[4..8].copy_from_slice(&[9, 3, 2, 1]);
    assert_eq!(out.bytes(), expected);
}
