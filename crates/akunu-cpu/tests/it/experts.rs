//! Experts of a prompt: of some experts there are many results, of others a few or none.

use std::ops::Range;
use std::sync::Mutex;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::KernelId;
use akunu_kernels::case::{Case, Rng};
use akunu_kernels::kernel::experts::{Experts, HAS_BIASES, HAS_SCALES, gate_code};
use akunu_program::{AlignedBytes, GateFunction, Storage};
use akunu_types::DType;
use akunu_types::params::ExpertParams;

use crate::table::{Tested, all_devices, check_case, device, run};

/// Rows of the step, and results of each expert: for tiles, for one block of vectors and for several, for a few vectors, and none.
const COUNTS: [usize; 6] = [36, 12, 9, 5, 20, 0];
const N_ROWS: usize = 41;
const N_USED: usize = 2;

/// The experts of the rows: first those of each row's first result, as often as [`COUNTS`] says.
fn ids() -> Vec<u32> {
    let of = |experts: [u32; 3]| {
        let all = experts.into_iter();
        all.flat_map(|expert| (0..COUNTS[expert as usize]).map(move |_| expert))
    };
    // 36 + 5 and 12 + 9 + 20 are the rows.
    let (first, second) = (of([0, 3, 5]), of([1, 2, 4]));
    first.zip(second).flat_map(|(a, b)| [a, b]).collect()
}

/// The params of products with outputs that are no multiple of sixteen.
fn params(dtype: DType) -> ExpertParams {
    let (n, k, between) = (75, 512, 3);
    let n_experts = COUNTS.len() as u32;
    let rows = ((n_experts - 1) * (n + between) + n) as usize;
    let mlx = Storage::contiguous(dtype, [rows, k as usize], 64).mlx();
    ExpertParams {
        n_rows: N_ROWS as u32,
        n_used: N_USED as u32,
        n_experts,
        N: n,
        K: k,
        stride: n + between,
        flags: HAS_BIASES | HAS_SCALES,
        activation: gate_code(GateFunction::SwigluOai),
        group_size: mlx.group_size,
        scale_type: mlx.scale_type.code(),
        packed_0: mlx.packed_at,
        scales_0: mlx.scales_at,
        biases_0: mlx.biases_at,
        packed_1: mlx.packed_at,
        scales_1: mlx.scales_at,
        biases_1: mlx.biases_at,
        ..ExpertParams::default()
    }
}

/// Some rows of the prompt, for the first products of experts or for the last.
fn step(kernel: KernelId, dtype: DType, rows: Range<usize>) -> Case {
    let (whole, mut rng) = (params(dtype), Rng::new(17));
    let params = ExpertParams {
        n_rows: rows.len() as u32,
        ..whole
    };
    // Where a gate is far below zero its error is a large share of nearly nothing.
    let (n_weights, share, most) = match kernel {
        KernelId::ExpertGate(_) => (2, 1, 0.05),
        _ => (1, N_USED, 1.0),
    };
    let results = N_USED * rows.start..N_USED * rows.end;
    let k = share * whole.K as usize;
    let x = rng.floats(N_ROWS * k, most);
    let case = Case::new("a prompt", &params, 1e-10);
    let row = kernel.row();
    let args = row.args(bytemuck::bytes_of(&params), &case.constants);
    let experts = Experts::of(&args);
    let mut filled = case.clone().bind(&x[rows.start * k..rows.end * k]);
    filled = filled.bind(&ids()[results.clone()]);
    for _ in 0..n_weights {
        filled = filled.bind(&experts.first.random(&mut rng));
    }
    for len in [experts.bias_len(), experts.scale_len()] {
        for _ in 0..n_weights {
            filled = filled.bind(&rng.floats(len, 1.0));
        }
    }
    filled.bind(&vec![f32::NAN; results.len() * params.N as usize])
}

/// The kernels of experts, in every format.
fn kernels() -> impl Iterator<Item = (KernelId, DType)> {
    KernelId::all()
        .into_iter()
        .filter_map(|kernel| match kernel {
            KernelId::ExpertGate(dtype) | KernelId::ExpertDown(dtype) => Some((kernel, dtype)),
            _ => None,
        })
}

/// Fails when an expert's results get another's weights, vectors or bias, when some are left out, or computed from what another
/// part has not laid out yet.
#[test]
fn experts_of_a_prompt_agree_with_their_twins() {
    let mut devices = all_devices();
    for (kernel, dtype) in kernels() {
        check_case(&mut devices, kernel, &step(kernel, dtype, 0..N_ROWS));
    }
}

/// With an exact device, a row of a prompt gets what it gets alone, to the bit.
#[test]
fn an_exact_prompt_is_that_of_single_rows() {
    let levels = Isa::available().into_iter();
    let levels = levels.filter(|isa| *isa != Isa::Scalar && *isa != Isa::Amx);
    let mut devices: Vec<Tested> = levels.map(|isa| device(isa, 2, true)).collect();
    for (kernel, dtype) in kernels().filter(|(_, dtype)| dtype.block_len() > 1) {
        let whole = step(kernel, dtype, 0..N_ROWS);
        for tested in &mut devices {
            let prompt = outputs(tested, kernel, &whole);
            for row in [0, 7, 40] {
                let alone = outputs(tested, kernel, &step(kernel, dtype, row..row + 1));
                let of_prompt = &prompt[row * alone.len()..][..alone.len()];
                let name = kernel.row().name();
                assert!(
                    alone == of_prompt,
                    "{}, {name}, row {row}",
                    tested.device.isa()
                );
            }
        }
    }
}

/// What a device has warned of.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Experts that do not fit are multiplied with the same numbers, in a prompt and alone, and it is said once for each device.
#[test]
fn experts_that_stay_in_the_file_give_the_same_bits() {
    let mut n_devices = 0;
    for isa in Isa::available() {
        let mut laid_out = device(isa, 2, false);
        let options = CpuOptions {
            threads: Some(2),
            isa: Some(isa),
            free_memory: Some(1000),
            warn: Some(|text| WARNINGS.lock().expect("no panic").push(text.into())),
            ..CpuOptions::default()
        };
        let mut in_file = Tested::of(CpuDevice::new(options).expect("the machine has it"));
        n_devices += usize::from(isa != Isa::Scalar);
        for (kernel, dtype) in kernels() {
            for rows in [0..N_ROWS, 6..8] {
                let case = step(kernel, dtype, rows);
                let expected = outputs(&mut laid_out, kernel, &case);
                let found = outputs(&mut in_file, kernel, &case);
                assert!(found == expected, "{isa}, {}", kernel.row().name());
            }
        }
    }
    let warnings = WARNINGS.lock().expect("no panic");
    assert_eq!(warnings.len(), n_devices);
    assert!(
        warnings.iter().all(|text| text.contains("0.0 GB")),
        "{warnings:?}"
    );
}

/// A number of a row that is NaN makes all of the row's products none, and leaves those of other rows as they are: the gate's limits
/// must not hide it.
#[test]
fn a_row_that_is_not_a_number_gives_none() {
    let levels = Isa::available().into_iter();
    for isa in levels.filter(|isa| *isa != Isa::Scalar) {
        let mut tested = device(isa, 2, false);
        for dtype in [DType::Q4_0, DType::Q4_K, DType::MXFP4, DType::F16] {
            let kernel = KernelId::ExpertGate(dtype);
            for rows in [0..N_ROWS, 0..2] {
                let mut case = step(kernel, dtype, rows);
                let mut x = floats(case.data[0].as_ref());
                x[5] = f32::NAN;
                case.data[0] = AlignedBytes::from_values(&x);
                let y = outputs(&mut tested, kernel, &case);
                let y = floats(&y);
                let (first, others) = y.split_at(N_USED * params(dtype).N as usize);
                assert!(first.iter().all(|y| y.is_nan()), "{isa}, {dtype}");
                assert!(others.iter().all(|y| y.is_finite()), "{isa}, {dtype}");
            }
        }
    }
}

/// Bytes as numbers, wherever they lie.
fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// The bytes of y.
fn outputs(tested: &mut Tested, kernel: KernelId, case: &Case) -> Vec<u8> {
    let mut found = run(&mut tested.device, kernel, case);
    let mut y = found.pop().expect("y is the last binding");
    y.truncate(case.data.last().map_or(0, |data| data.as_ref().len()));
    y
}
