//! Planted faults: each is found, and the message names kernel, thread and line.

use crate::support::{Case, SIMULATOR, buffer, kernels, values};
use akunu_sim::{Binding, ConstantValue, Launch, Schedule, SimBuffer};

/// `faults.metal:LINE` of the planted fault with this name.
fn line(fault: &str) -> String {
    let text =
        std::fs::read_to_string(kernels().join("faults.metal")).expect("the fixture is there");
    let marker = format!("// fault: {fault}");
    let at = text
        .lines()
        .position(|line| line.ends_with(&marker))
        .expect("the line is marked");
    format!("faults.metal:{}", at + 1)
}

fn zeros(n: usize) -> SimBuffer {
    SimBuffer::zeroed(n).expect("memory for a buffer")
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// Runs a kernel of one output buffer, in every order.
#[track_caller]
fn fails_with(kernel: &str, threads: u32, parts: &[&str]) {
    for schedule in Schedule::EACH {
        let message = Case {
            kernel,
            threads,
            buffers: &[&zeros(4096)],
            schedule,
            ..Case::default()
        }
        .fails();
        assert_says(
            &message,
            &[&format!("kernel `{kernel}`, threadgroup [0, 0, 0], thread")],
        );
        assert_says(&message, parts);
    }
}

#[test]
fn a_barrier_that_not_all_threads_reach() {
    let place = line("divergent_barrier");
    fails_with(
        "divergent_barrier",
        64,
        &["a threadgroup_barrier", &place, "has returned"],
    );
}

#[test]
fn two_barriers_are_not_one() {
    fails_with(
        "two_barriers",
        64,
        &["of a threadgroup do not meet", &line("two_barriers")],
    );
}

#[test]
fn a_simd_operation_in_divergent_code() {
    fails_with(
        "divergent_simd",
        32,
        &["a SIMD reduction", &line("divergent_simd"), "has returned"],
    );
}

#[test]
fn a_simd_operation_behind_an_early_return() {
    fails_with(
        "early_return",
        64,
        &["of a SIMD group do not meet", &line("early_return")],
    );
}

fn write_at(at: i32) -> Result<(), String> {
    Case {
        kernel: "write_at",
        threads: 1,
        buffers: &[&zeros(100), &buffer(&[at])],
        ..Case::default()
    }
    .run()
    .map_err(|error| error.to_string())
}

#[test]
fn writes_beside_a_binding_on_both_sides_near_and_far() {
    assert_eq!(write_at(0), Ok(()));
    assert_eq!(write_at(99), Ok(()), "the last byte is inside");
    assert_says(
        &write_at(100).unwrap_err(),
        &["write_at", "0 bytes behind the end of buffer(0)"],
    );
    assert_says(
        &write_at(111).unwrap_err(),
        &["11 bytes behind the end of buffer(0)"],
    );
    assert_says(
        &write_at(112).unwrap_err(),
        &["thread 0: a write 12 bytes behind the end of buffer(0)"],
    );
    assert_says(
        &write_at(4000).unwrap_err(),
        &["a write 3900 bytes behind the end of buffer(0)"],
    );
    assert_says(
        &write_at(-1).unwrap_err(),
        &["1 bytes before the beginning of buffer(0)"],
    );
    assert_says(
        &write_at(-5000).unwrap_err(),
        &["a write 5000 bytes before the beginning of buffer(0)"],
    );
    assert_says(
        &write_at(i32::MIN).unwrap_err(),
        &["a write 2147483648 bytes before the beginning of buffer(0)"],
    );
    assert_eq!(write_at(50), Ok(()), "the simulator works on after traps");
}

#[test]
fn reads_beside_a_binding_trap_or_give_nan() {
    let read = |at: i32| {
        let y = zeros(4);
        Case {
            kernel: "read_at",
            threads: 1,
            buffers: &[&buffer(&[1.0f32; 5]), &buffer(&[at]), &y],
            ..Case::default()
        }
        .run()
        .map(|()| values::<f32>(&y)[0])
        .map_err(|error| error.to_string())
    };
    assert_eq!(read(4), Ok(1.0));
    assert!(read(5).unwrap().is_nan(), "just behind the end lies a NaN");
    assert!(
        read(-1).unwrap().is_nan(),
        "just before the beginning lies a NaN"
    );
    assert_says(
        &read(8).unwrap_err(),
        &["a read 12 bytes behind the end of buffer(0)"],
    );
    assert_says(
        &read(i32::MAX / 4).unwrap_err(),
        &["bytes behind the end of buffer(0)"],
    );
}

#[test]
fn a_write_to_a_const_binding() {
    let message = Case {
        kernel: "write_const",
        buffers: &[&zeros(128)],
        ..Case::default()
    }
    .fails();
    assert_says(
        &message,
        &["thread 3: a write at byte 12 of buffer(0), which is read-only"],
    );
}

#[test]
fn a_misaligned_vector_load() {
    let load = |first: u32, offset: usize| {
        let (x, first, y) = (zeros(1024), buffer(&[first]), zeros(512));
        let bindings = [
            Binding {
                index: 0,
                buffer: &x,
                offset,
            },
            Binding::whole(1, &first),
            Binding::whole(2, &y),
        ];
        SIMULATOR
            .kernel("misaligned_vector")
            .unwrap()
            .launch(&Launch {
                grid: [1, 1, 1],
                threads: [32, 1, 1],
                bindings: &bindings,
                ..Launch::default()
            })
    };
    load(4, 16).unwrap();
    load(1, 12).unwrap();
    for (first, offset) in [(1, 0), (2, 0), (0, 8)] {
        let message = load(first, offset).unwrap_err().to_string();
        assert_says(
            &message,
            &["a misaligned access", &line("misaligned_vector")],
        );
    }
}

#[test]
fn shifts_indices_and_divisions_out_of_range() {
    fails_with(
        "shift_too_far",
        32,
        &["a shift by as many bits", &line("shift_too_far")],
    );
    fails_with(
        "index_too_large",
        32,
        &["an index outside its array", &line("index_too_large")],
    );
    let mut divisors = [1u32; 32];
    divisors[7] = 0;
    let message = Case {
        kernel: "divides_by_zero",
        buffers: &[&buffer(&divisors), &zeros(128)],
        ..Case::default()
    }
    .fails();
    assert_says(
        &message,
        &[
            "thread 7: an integer division by zero",
            &line("divides_by_zero"),
        ],
    );
}

#[test]
fn threadgroup_memory_read_before_it_was_written_is_nan() {
    for schedule in Schedule::EACH {
        let y = zeros(128);
        Case {
            kernel: "unwritten_tile",
            buffers: &[&y],
            schedule,
            ..Case::default()
        }
        .run()
        .unwrap();
        for (t, value) in values::<f32>(&y).into_iter().enumerate() {
            assert_eq!(value.is_nan(), t == 5, "thread {t}: {value}");
        }
    }
}

#[test]
fn more_than_32_kb_of_threadgroup_memory() {
    fails_with(
        "too_much_memory",
        32,
        &["33792 bytes of threadgroup memory, 32768 are allowed"],
    );
    let dynamic = |bytes: usize| {
        Case {
            kernel: "enough_memory",
            buffers: &[&zeros(128)],
            threadgroup_bytes: &[(1, bytes)],
            ..Case::default()
        }
        .run()
        .map_err(|error| error.to_string())
    };
    assert_eq!(
        dynamic(16384),
        Ok(()),
        "exactly 32 KB, static and dynamic together"
    );
    assert_says(
        &dynamic(16400).unwrap_err(),
        &["32784 bytes of threadgroup memory"],
    );
}

#[test]
fn threadgroup_memory_written_beside_its_arrays() {
    let message = Case {
        kernel: "beside_the_tile",
        buffers: &[&zeros(128)],
        threadgroup_bytes: &[(0, 128)],
        ..Case::default()
    }
    .fails();
    assert_says(
        &message,
        &["threadgroup memory was written outside its arrays"],
    );
}

#[test]
fn a_function_constant_without_a_value_or_of_another_type() {
    let run = |constants: &[(u32, ConstantValue)]| {
        let y = zeros(128);
        Case {
            kernel: "unset_constant",
            buffers: &[&y],
            constants,
            ..Case::default()
        }
        .run()
        .map(|()| values::<u32>(&y)[31])
        .map_err(|error| error.to_string())
    };
    assert_eq!(run(&[(9, ConstantValue::U32(77))]), Ok(77));
    assert_says(
        &run(&[]).unwrap_err(),
        &["a function constant without a value, FC_UNSET"],
    );
    assert_says(
        &run(&[(9, ConstantValue::F32(1.0))]).unwrap_err(),
        &["`FC_UNSET` is a uint, not a float"],
    );
    assert_says(
        &run(&[(8, ConstantValue::U32(1))]).unwrap_err(),
        &["no function_constant(8)"],
    );
}

#[test]
fn a_stack_that_overflows() {
    let message = Case {
        kernel: "deep_stack",
        threads: 1,
        buffers: &[&zeros(128), &buffer(&[100_000u32])],
        ..Case::default()
    }
    .fails();
    assert_says(&message, &["kernel `deep_stack`"]);
}

#[test]
fn launches_that_do_not_fit_the_signature() {
    let y = zeros(128);
    let fails = |threads, buffers: &[&SimBuffer]| {
        Case {
            kernel: "unwritten_tile",
            threads,
            buffers,
            ..Case::default()
        }
        .fails()
    };
    assert_says(&fails(32, &[]), &["buffer(0) is not bound"]);
    assert_says(&fails(32, &[&y, &y]), &["there is no buffer(1)"]);
    assert_says(&fails(1025, &[&y]), &["1 to 1024 are possible"]);
    assert_says(&fails(0, &[&y]), &["1 to 1024 are possible"]);
    let unknown = SIMULATOR.kernel("nothing").err().unwrap().to_string();
    assert_says(&unknown, &["no kernel `nothing` under"]);
}
