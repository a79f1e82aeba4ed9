//! Kernels that run, and give what plain Rust gives.

use crate::support::{Case, buffer, values};
use akunu_sim::{ConstantValue, Schedule, SimBuffer};

/// Whole numbers, so that sums are exact in any order.
fn numbers(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 37 + 11) % 101) as f32 - 50.0)
        .collect()
}

fn q4_0_rows(n_rows: usize, n_cols: usize) -> (Vec<u8>, Vec<f32>) {
    let mut bytes = Vec::new();
    let mut dense = Vec::new();
    for block in 0..n_rows * n_cols / 32 {
        // Scales 0.5, 1 and 2 as halves.
        let (bits, d) = [(0x3800u16, 0.5f32), (0x3c00, 1.0), (0x4000, 2.0)][block % 3];
        bytes.extend(bits.to_le_bytes());
        let qs: Vec<u8> = (0..16)
            .map(|i| ((block * 31 + i * 17) % 256) as u8)
            .collect();
        dense.extend(qs.iter().map(|q| d * (f32::from(q & 15) - 8.0)));
        dense.extend(qs.iter().map(|q| d * (f32::from(q >> 4) - 8.0)));
        bytes.extend(qs);
    }
    (bytes, dense)
}

#[test]
fn gemv_q4_0_equals_the_dense_product_in_every_order() {
    let (n_rows, n_cols) = (7, 32 * 40);
    let (weights, dense) = q4_0_rows(n_rows, n_cols);
    let x = numbers(n_cols);
    let expected: Vec<f32> = dense
        .chunks(n_cols)
        .map(|row| row.iter().zip(&x).map(|(w, x)| w * x).sum())
        .collect();
    for schedule in Schedule::EACH {
        for adds in [None, Some(true), Some(false)] {
            let y = buffer(&vec![1.0f32; n_rows]);
            let mut constants = vec![(2, ConstantValue::U32(2))];
            constants.extend(adds.map(|adds| (3, ConstantValue::Bool(adds))));
            Case {
                kernel: "gemv_q4_0",
                grid: 4,
                threads: 64,
                buffers: &[
                    &buffer(&weights),
                    &buffer(&x),
                    &y,
                    &buffer(&[n_rows as u32, n_cols as u32]),
                ],
                constants: &constants,
                schedule,
                ..Case::default()
            }
            .run()
            .unwrap();
            let plus = if adds == Some(true) { 1.0 } else { 0.0 };
            let expected: Vec<f32> = expected.iter().map(|sum| sum + plus).collect();
            assert_eq!(values::<f32>(&y), expected, "{schedule:?} {adds:?}");
        }
    }
}

fn reduce(kernel: &str, schedule: Schedule) -> Vec<f32> {
    let (rows, n) = (5, 1000);
    let y = SimBuffer::zeroed(4 * rows).expect("memory for a buffer");
    Case {
        kernel,
        grid: rows as u32,
        threads: 256,
        buffers: &[&buffer(&numbers(rows * n)), &y, &buffer(&[n as u32])],
        schedule,
        ..Case::default()
    }
    .run()
    .expect("the kernel runs");
    values(&y)
}

#[test]
fn reduction_is_right_in_every_order_and_a_dropped_barrier_is_seen() {
    let expected: Vec<f32> = numbers(5000)
        .chunks(1000)
        .map(|row| row.iter().sum())
        .collect();
    for schedule in Schedule::EACH {
        assert_eq!(reduce("reduce_rows", schedule), expected, "{schedule:?}");
    }
    // Ascending, SIMD group 0 sums before the others have written: it reads poison.
    let broken = reduce("reduce_rows_no_barrier", Schedule::Ascending);
    assert!(broken.iter().all(|sum| sum.is_nan()), "{broken:?}");
    // Descending, every other group has written: the fault hides. That is why there are schedules.
    assert_eq!(
        reduce("reduce_rows_no_barrier", Schedule::Descending),
        expected
    );
}

fn reverse(kernel: &str, schedule: Schedule) -> (Vec<f32>, Vec<f32>) {
    let (rounds, threads) = (3, 128);
    let x = numbers(rounds * threads);
    let y = SimBuffer::zeroed(4 * x.len()).expect("memory for a buffer");
    Case {
        kernel,
        threads: threads as u32,
        buffers: &[&buffer(&x), &y, &buffer(&[rounds as u32])],
        threadgroup_bytes: &[(0, 4 * threads)],
        schedule,
        ..Case::default()
    }
    .run()
    .expect("the kernel runs");
    let expected = x
        .chunks(threads)
        .flat_map(|run| run.iter().rev().copied())
        .collect();
    (values(&y), expected)
}

#[test]
fn dynamic_threadgroup_memory_and_a_missing_second_barrier() {
    for schedule in Schedule::EACH {
        let (y, expected) = reverse("reverse_rounds", schedule);
        assert_eq!(y, expected, "{schedule:?}");
    }
    let (y, expected) = reverse("reverse_rounds_one_barrier", Schedule::Ascending);
    assert_ne!(y, expected, "a fast SIMD group overwrites the tile");
}
