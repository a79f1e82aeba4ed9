//! Products: formats, shapes and rows, with every kernel that lowering could choose.

use super::part::Given;
use super::record::{Record, Time};
use super::target::{Target, kernels};
use crate::gpu::PRODUCTS;
use crate::timing::{Bench, Effort, Timed};
use akunu_kernels::{KernelDevice, KernelId};
use akunu_program::DeviceError;
use akunu_types::DType;
use std::ops::RangeInclusive;

/// Formats of models that people run.
const FORMATS: [DType; 13] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q8_0,
    DType::Q2_K,
    DType::Q3_K,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
    DType::IQ4_XS,
    DType::MXFP4,
    DType::F16,
    DType::BF16,
];
/// (outputs, K) of models of 1.5 and 8 billion weights, and the logits of one.
const SHAPES: [(u32, u32); 6] = [
    (2048, 2048),
    (6144, 4096),
    (4096, 4096),
    (14_336, 4096),
    (4096, 14_336),
    (128_256, 4096),
];
const ROWS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// A kernel of every format, with the least and the most rows that it could be chosen for.
struct Candidate {
    kernel: fn(DType) -> KernelId,
    rows: RangeInclusive<u32>,
}

/// The kernels of a Mac.
const CANDIDATES: [Candidate; 5] = [
    Candidate {
        kernel: KernelId::Gemv,
        rows: 1..=4,
    },
    Candidate {
        kernel: KernelId::GemvWide,
        rows: 1..=1,
    },
    Candidate {
        kernel: KernelId::GemvBatched,
        rows: 2..=32,
    },
    Candidate {
        kernel: KernelId::SimdGemmSmall,
        rows: 2..=64,
    },
    Candidate {
        kernel: KernelId::SimdGemm,
        rows: 8..=512,
    },
];

/// A product that is timed.
struct Wanted {
    kernel: KernelId,
    shape: (u32, u32, u32),
}

/// How much is measured, on a Mac with 8 GB too.
pub fn effort(is_small: bool) -> Effort {
    match is_small {
        false => Effort {
            weights: 576 << 20,
            inputs: 32 << 20,
            outputs: 64 << 20,
            calls: 64,
            runs: 3,
        },
        true => Effort {
            weights: 4 << 20,
            inputs: 1 << 20,
            outputs: 1 << 20,
            calls: 2,
            runs: 1,
        },
    }
}

pub fn run(target: &mut dyn Target, given: &Given) -> Result<(), DeviceError> {
    let is_cuda = target.name() == "cuda";
    let wanted = wanted(&kernels(target, given.is_small), is_cuda, given);
    let (chip, effort) = (target.chip().clone(), effort(given.is_small));
    let device: &mut dyn KernelDevice = target;
    let mut bench = Bench::new(device, chip, effort)?;
    for Wanted { kernel, shape } in given.wanted(wanted, label) {
        let (m, n, k) = shape;
        let flops = 2 * u64::from(m) * u64::from(n) * u64::from(k);
        bench.set_calls(calls(flops, effort.calls));
        Record::Begin {
            what: label(&Wanted { kernel, shape }),
        }
        .print();
        print_time(kernel, [m, n, k], bench.product(kernel, shape))?;
    }
    Ok(())
}

/// Launches of a program, such that it takes some hundredths of a second.
fn calls(flops: u64, most: usize) -> usize {
    const FLOPS: u64 = 40_000_000_000;
    usize::try_from(FLOPS / flops.max(1)).map_or(most, |calls| calls.clamp(1, most))
}

/// Prints a time or why there is none; fails when the GPU has failed.
pub fn print_time(
    kernel: KernelId,
    shape: [u32; 3],
    timed: Result<Timed, DeviceError>,
) -> Result<(), DeviceError> {
    let kernel = kernel.row().name();
    match timed {
        Ok(timed) => Record::Time(Time {
            kernel,
            shape,
            // A thousandth of a microsecond is less than any clock shows.
            microseconds: (timed.seconds * 1e9).round() / 1e3,
            bytes: timed.bytes as u64,
            flops: timed.flops,
        })
        .print(),
        Err(lost @ DeviceError::Lost { .. }) => return Err(lost),
        Err(error) => Record::skipped(format!("{kernel} {shape:?}"), error).print(),
    }
    Ok(())
}

fn label(wanted: &Wanted) -> String {
    let (name, (m, n, k)) = (wanted.kernel.row().name(), wanted.shape);
    format!("{name} {m} {n} {k}")
}

fn wanted(kernels: &[KernelId], is_cuda: bool, given: &Given) -> Vec<Wanted> {
    let effort = effort(given.is_small);
    let (shapes, rows): (&[(u32, u32)], &[u32]) = match given.is_small {
        true => (&[(64, 256)], &[1, 2, 8]),
        false => (&SHAPES, &ROWS),
    };
    let mut candidates = Vec::new();
    if is_cuda {
        for (kernel, m) in PRODUCTS {
            candidates.extend(FORMATS.map(|dtype| (kernel(dtype), m)));
        }
    } else {
        for Candidate { kernel, rows: own } in CANDIDATES {
            for &m in rows.iter().filter(|m| own.contains(m)) {
                candidates.extend(FORMATS.map(|dtype| (kernel(dtype), m)));
            }
        }
    }
    let mut wanted = Vec::new();
    for (kernel, m) in candidates {
        if !kernels.contains(&kernel) {
            continue;
        }
        for &(n, k) in shapes {
            let fits = |rows: u32, columns: u32, room: usize| {
                rows as usize * columns as usize * size_of::<f32>() <= room
            };
            if fits(m, n, effort.outputs) && fits(m, k, effort.inputs) {
                let shape = (m, n, k);
                wanted.push(Wanted { kernel, shape });
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(is_small: bool) -> Given {
        Given {
            filter: String::new(),
            after: None,
            is_small,
        }
    }

    /// Breaks when a report says nothing about a number of rows between which lowering chooses, or about a format.
    #[test]
    fn each_format_has_candidates_for_each_number_of_rows() {
        let all = wanted(&KernelId::all(), false, &given(false));
        for dtype in FORMATS {
            for m in ROWS {
                let of = all.iter().filter(|it| it.shape.0 == m);
                let n = of.filter(|it| it.kernel.row().dtype == Some(dtype)).count();
                assert!(n >= SHAPES.len() - 1, "{dtype} with {m} rows: {n}");
            }
        }
        assert!(!wanted(&KernelId::all(), true, &given(false)).is_empty());
    }

    #[test]
    fn a_large_product_is_launched_less_often() {
        assert_eq!(calls(2 * 4096 * 4096, 64), 64);
        assert_eq!(calls(2 * 512 * 14_336 * 4096, 64), 1);
        assert_eq!(calls(0, 64), 64);
    }
}
