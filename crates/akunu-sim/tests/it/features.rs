//! What MSL offers, operation by operation, against plain Rust.

use crate::support::{Case, SIMULATOR, buffer, values};
use akunu_sim::{Binding, Launch, Schedule, SimBuffer};

fn zeros(n: usize) -> SimBuffer {
    SimBuffer::zeroed(n).expect("memory for a buffer")
}

#[test]
fn lanes_exchange_as_msl_says() {
    let x: Vec<u32> = (0..32).map(|i| (i * 7 + 3) % 41).collect();
    let at = |lane: usize| x[lane % 32];
    let quad = |lane: usize| &x[lane / 4 * 4..lane / 4 * 4 + 4];
    let votes = (0..32)
        .filter(|&i| x[i].is_multiple_of(3))
        .fold(0u32, |bits, i| bits | 1 << i);
    let expected = |row: usize, lane: usize| match row {
        0 => x.iter().sum(),
        1 => *x.iter().max().unwrap(),
        2 => *x.iter().min().unwrap(),
        3 => x.iter().fold(u32::MAX, |bits, v| bits & (v | 8)),
        4 => x.iter().fold(0, |bits, v| bits | v),
        5 => x.iter().fold(0, |bits, v| bits ^ v),
        6 => x[..=lane].iter().sum(),
        7 => x[..lane].iter().sum(),
        8 => x[5],
        9 => x[0],
        10 => x[31 - lane],
        11 => x[lane ^ 9],
        12 => at(if lane < 3 { lane } else { lane - 3 }),
        13 => at(if lane + 3 < 32 { lane + 3 } else { lane }),
        14 => at(lane + 32 - 3),
        15 => at(lane + 3),
        16 => votes,
        17 => 1 + if lane == 0 { 4 } else { 0 },
        18 => quad(lane).iter().sum(),
        19 => *quad(lane).iter().max().unwrap(),
        20 => quad(lane)[2],
        21 => x[lane ^ 1],
        22 => quad(lane)[(lane % 4).saturating_sub(1)],
        23 => quad(lane)[(lane % 4 + 1).min(3)],
        24 => 24,
        _ => unreachable!("25 operations"),
    };
    for schedule in Schedule::EACH {
        let y = zeros(25 * 32 * 4);
        Case {
            kernel: "lane_operations",
            buffers: &[&buffer(&x), &y],
            schedule,
            ..Case::default()
        }
        .run()
        .unwrap();
        for (i, value) in values::<u32>(&y).into_iter().enumerate() {
            assert_eq!(
                value,
                expected(i / 32, i % 32),
                "row {}, lane {}",
                i / 32,
                i % 32
            );
        }
    }
}

#[test]
fn lanes_exchange_values_of_every_width() {
    let y = zeros(32 * 16);
    Case {
        kernel: "lane_types",
        buffers: &[&y],
        ..Case::default()
    }
    .run()
    .unwrap();
    for (lane, row) in values::<[f32; 4]>(&y).into_iter().enumerate() {
        assert_eq!(
            row,
            [4.0 * (lane ^ 1) as f32, 496.0, 0.0, 31.0],
            "lane {lane}"
        );
    }
}

#[test]
fn positions_in_three_dimensions() {
    let (grid, threads) = ([2u32, 3, 2], [5u32, 4, 3]);
    let all: Vec<u32> = (0..3).map(|d| grid[d] * threads[d]).collect();
    let y = zeros((all.iter().product::<u32>() * 12 * 4) as usize);
    SIMULATOR
        .kernel("positions")
        .unwrap()
        .launch(&Launch {
            grid,
            threads,
            bindings: &[Binding::whole(0, &y)],
            ..Launch::default()
        })
        .unwrap();
    for (flat, row) in values::<[u32; 12]>(&y).into_iter().enumerate() {
        let flat = flat as u32;
        let p = [
            flat % all[0],
            flat / all[0] % all[1],
            flat / all[0] / all[1],
        ];
        let inside: Vec<u32> = (0..3).map(|d| p[d] % threads[d]).collect();
        let group: Vec<u32> = (0..3).map(|d| p[d] / threads[d]).collect();
        let index = (inside[2] * 4 + inside[1]) * 5 + inside[0];
        let expected = [
            p[0],
            p[1],
            p[2],
            inside[0] + 100 * inside[1] + 10000 * inside[2],
            group[0] + 100 * group[1] + 10000 * group[2],
            405,
            20302,
            index,
            index % 32,
            index / 32,
            2,
            index,
        ];
        assert_eq!(row, expected, "thread {p:?}");
    }
}

/// Small whole numbers: exact in half and bfloat, and so are their sums in float.
fn small(n: usize, step: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * step + i / 7) % 13) as f32 - 6.0)
        .collect()
}

fn as_f16(values: &[f32]) -> Vec<u16> {
    values
        .iter()
        .map(|&v| half::f16::from_f32(v).to_bits())
        .collect()
}

#[test]
fn matrix_products_equal_plain_loops_in_every_format() {
    let (m, n, k) = (16, 24, 40);
    let (a, b) = (small(m * k, 5), small(n * k, 3));
    let mut expected = vec![0.0f32; m * n];
    for (i, out) in expected.iter_mut().enumerate() {
        *out = (0..k).map(|j| a[i / n * k + j] * b[i % n * k + j]).sum();
    }
    let bf16 = |values: &[f32]| -> Vec<u16> {
        values.iter().map(|v| (v.to_bits() >> 16) as u16).collect()
    };
    let inputs = [
        ("multiply_f32", buffer(&a), buffer(&b)),
        ("multiply_f16", buffer(&as_f16(&a)), buffer(&as_f16(&b))),
        ("multiply_bf16", buffer(&bf16(&a)), buffer(&bf16(&b))),
    ];
    for (kernel, a, b) in &inputs {
        let (c, k) = (zeros(m * n * 4), buffer(&[k as u32]));
        let bindings: Vec<_> = (0u32..)
            .zip([a, b, &c, &k])
            .map(|(i, b)| Binding::whole(i, b))
            .collect();
        SIMULATOR
            .kernel(kernel)
            .unwrap()
            .launch(&Launch {
                grid: [3, 2, 1],
                threads: [32, 1, 1],
                bindings: &bindings,
                ..Launch::default()
            })
            .unwrap();
        assert_eq!(values::<f32>(&c), expected, "{kernel}");
    }
}

#[test]
fn the_lane_layout_is_apples_and_another_gives_other_sums() {
    let x = small(64, 11);
    let run = |kernel| {
        let y = zeros(32);
        Case {
            kernel,
            buffers: &[&buffer(&x), &y],
            ..Case::default()
        }
        .run()
        .unwrap();
        values::<f32>(&y)
    };
    let expected: Vec<f32> = x.chunks(8).map(|row| row.iter().sum()).collect();
    assert_eq!(run("row_sums"), expected);
    assert_ne!(run("row_sums_wrong_layout"), expected);
}

#[test]
fn an_identity_scales_in_half() {
    let x = small(64, 9);
    let y = zeros(128);
    Case {
        kernel: "scale_by_identity",
        buffers: &[&buffer(&as_f16(&x)), &y],
        ..Case::default()
    }
    .run()
    .unwrap();
    let expected: Vec<f32> = x.iter().map(|v| 3.0 * v).collect();
    assert_eq!(values::<u16>(&y), as_f16(&expected));
}

#[test]
fn vectors_are_built_converted_and_swizzled() {
    let y = zeros(21 * 4);
    Case {
        kernel: "vectors",
        threads: 1,
        buffers: &[&buffer(&[1.0f32, 2.0, 3.0, 4.0]), &y],
        ..Case::default()
    }
    .run()
    .unwrap();
    let expected: [f32; 21] = [
        7.0,
        14.0, // 4 + 3 + 3 + 4
        -3.0,
        355.0,
        half::f16::from_f32(0.1).to_f32(),
        1.0, // a tie between 1 and 1.0078125, to even
        std::f32::consts::PI,
        1.0,
        4.0,
        20.0,
        2.0,
        3.0 + 12.0 + 16.0,
        3.5,
        4.5,
        2.0,
        2.0,
        2.0,
        32.0,
        1.0,
        2048.0, // 2049 is not a half
        14.0,   // 1.0 is a float of 4 bytes
    ];
    assert_eq!(values::<f32>(&y), expected);
}

#[test]
fn integer_functions() {
    let y = zeros(15 * 4);
    Case {
        kernel: "integers",
        threads: 1,
        buffers: &[&y],
        ..Case::default()
    }
    .run()
    .unwrap();
    let expected = [
        8,
        31,
        15,
        3,
        0x8000_0000,
        0xbc,
        u32::MAX,
        0xf00,
        3,
        3,
        17,
        16,
        5,
        1,
        0xffff,
    ];
    assert_eq!(values::<u32>(&y), expected);
}

#[test]
fn math_is_that_of_f64_to_a_few_ulps() {
    let x: Vec<f32> = (0..64).map(|i| (i as f32 - 32.0) * 0.171).collect();
    let y = zeros(16 * 64 * 4);
    Case {
        kernel: "math",
        grid: 2,
        buffers: &[&buffer(&x), &y],
        ..Case::default()
    }
    .run()
    .unwrap();
    let exact = |row: usize, v: f32| -> f64 {
        let wide = f64::from(v);
        let size = f64::from(v.abs() + 0.01);
        match row {
            0 => wide.exp(),
            1 => wide.exp2(),
            2 => size.ln(),
            3 => size.log2(),
            4 => wide.abs().sqrt(),
            5 => 1.0 / f64::from(v.abs() + 1.0).sqrt(),
            6 => f64::from(v * 100.0).sin(),
            7 => f64::from(v * 100.0).cos(),
            8 => wide.tanh(),
            9 => f64::from(v.abs() + 0.5).powf(f64::from(1.7f32)),
            10 => 0.0,
            11 => {
                wide.round_ties_even()
                    + 10.0 * wide.round()
                    + 100.0 * wide.floor()
                    + 1000.0 * wide.ceil()
                    + 10000.0 * wide.trunc()
            }
            12 => wide * wide + 1.0,
            13 => {
                let sign = if v == 0.0 { 0.0 } else { wide.signum() };
                wide.clamp(-1.0, 1.0) + sign + wide.clamp(0.0, 1.0)
            }
            14 => wide % 3.0,
            15 => wide.atan2(2.0),
            _ => unreachable!("16 functions"),
        }
    };
    for (i, value) in values::<f32>(&y).into_iter().enumerate() {
        let (row, v) = (i / 64, x[i % 64]);
        let expected = exact(row, v);
        // The C library is good to an ulp or two; 1 / sqrt rounds twice.
        let bound = 4.0 * f64::from(f32::EPSILON) * expected.abs().max(1e-3);
        assert!(
            (f64::from(value) - expected).abs() <= bound,
            "row {row} at {v}: {value} for {expected}"
        );
    }
}

#[test]
fn atomics_count_across_threadgroups() {
    let x: Vec<u32> = (0..256).map(|i| i * 13 % 251 + 1).collect();
    for schedule in Schedule::EACH {
        let counters = buffer(&[0u32, 0, u32::MAX, 0, 0]);
        let total = zeros(4);
        Case {
            kernel: "counts",
            grid: 4,
            threads: 64,
            buffers: &[&counters, &buffer(&x), &total],
            schedule,
            ..Case::default()
        }
        .run()
        .unwrap();
        let all = x.iter().fold(0, |bits, v| bits | v);
        let expected = [
            x.iter().sum(),
            *x.iter().max().unwrap(),
            *x.iter().min().unwrap(),
            all,
            512,
        ];
        assert_eq!(values::<u32>(&counters), expected);
        assert_eq!(values::<f32>(&total), [128.0]);
    }
}
