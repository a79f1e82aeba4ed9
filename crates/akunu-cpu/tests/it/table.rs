//! Every kernel of the table, on each level of instructions that this machine has and on one, two and
//! three threads, against its twin.
//!
//! Each binding lies in a buffer of its own, with guard bytes behind it: a kernel that writes beyond
//! what its row requires changes them. A kernel that gives the parts overlapping shares, or none, is
//! found by the odd numbers of threads.

use std::sync::Arc;

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::case::{Case, compare};
use akunu_kernels::table::{Element, Family};
use akunu_kernels::{KernelCall, KernelDevice, KernelId, KernelRow, PipelineKey};
use akunu_program::{AlignedBytes, Buffer, Device, Room, Slice};
use akunu_types::DType;

const GUARD: [u8; 256] = [0xA5; 256];

/// A device, and whether it was asked to be exact.
pub struct Tested {
    pub device: CpuDevice,
    exact: bool,
}

impl Tested {
    /// A device that is not exact.
    pub fn of(device: CpuDevice) -> Tested {
        let exact = false;
        Tested { device, exact }
    }
}

pub fn device(isa: Isa, threads: usize, exact: bool) -> Tested {
    let options = CpuOptions {
        threads: Some(threads),
        isa: Some(isa),
        exact,
        ..CpuOptions::default()
    };
    let device = CpuDevice::new(options).expect("the machine has it");
    Tested { device, exact }
}

/// Every level with one, two and three threads. Without vector instructions one thread runs the twin while the others wait:
/// three threads show that.
pub fn all_devices() -> Vec<Tested> {
    fn threads(isa: Isa) -> &'static [usize] {
        match isa {
            Isa::Scalar => &[3],
            _ => &[1, 2, 3],
        }
    }
    let levels = Isa::available().into_iter();
    let devices = |isa| threads(isa).iter().map(move |&n| device(isa, n, false));
    levels.flat_map(devices).collect()
}

/// Every level with vector instructions, on one thread.
fn vector_devices(exact: bool) -> Vec<Tested> {
    let levels = Isa::available().into_iter();
    let levels = levels.filter(|isa| *isa != Isa::Scalar);
    levels.map(|isa| device(isa, 1, exact)).collect()
}

/// The call of a case, and its buffers.
pub fn bound(device: &mut CpuDevice, kernel: KernelId, case: &Case) -> (KernelCall, Vec<Buffer>) {
    let row = kernel.row();
    let mut buffers: Vec<Buffer> = Vec::new();
    for (data, binding) in case.data.iter().zip(row.bindings) {
        let guarded = [data.as_ref(), &GUARD].concat();
        if binding.element == Element::Weight {
            // Only weights that cannot change are laid out anew.
            let bytes = Arc::new(AlignedBytes::copy_of(&guarded));
            buffers.push(device.share(bytes, "case").expect("memory"));
            continue;
        }
        let buffer = device.allocate(guarded.len(), "case").expect("memory");
        device.write(buffer, 0, &guarded).expect("fits");
        buffers.push(buffer);
    }
    let key = PipelineKey {
        kernel,
        constants: case.constants.clone(),
    };
    let call = KernelCall {
        key,
        params: case.params,
        bindings: buffers.iter().map(|&buffer| Slice::from(buffer)).collect(),
        row_fields: Vec::new(),
        label: "case",
    };
    (call, buffers)
}

/// Runs a case and returns what each binding holds afterwards, with its guard bytes.
pub fn run(device: &mut CpuDevice, kernel: KernelId, case: &Case) -> Vec<Vec<u8>> {
    let (call, buffers) = bound(device, kernel, case);
    let plan = device.load_kernels(vec![call], Room::default());
    let plan = plan.expect("cases are sound");
    device.run(plan, None).expect("runs");
    device.unload(plan);
    let mut found = Vec::new();
    for buffer in buffers {
        let mut bytes = vec![0; buffer.len];
        device.read(buffer, 0, &mut bytes).expect("fits");
        found.push(bytes);
        device.release(buffer);
    }
    found
}

/// The place of each written binding, and its bytes.
type Written = Vec<(usize, AlignedBytes)>;

/// Products with quantised weights round the activations to 16 bits with a scale for each 32, which is 1e-9 of the
/// power of random dot products, and formats that are widened to f16 round the weights, 1e-7. Floating-point weights of 16 bits
/// that are multiplied with many vectors are rounded to 13, which is 2e-8. Unless the device is to be exact, many vectors become
/// tiles of bf16 on one level, which are 5e-6, and bytes for K formats on others, 2e-5. A few outputs may all be near zero. A wrong number is above 1e-3 of many, a wrong row about 2.
fn error_of_rounding(row: &KernelRow, tested: &Tested, expected: &Written) -> f64 {
    let n_outputs: usize = expected.iter().map(|(_, y)| y.as_ref().len() / 4).sum();
    let Some(dtype) = row
        .dtype
        .filter(|_| [Family::Matmul, Family::Experts].contains(&row.family))
    else {
        return 0.0;
    };
    let is_quantised = dtype.block_len() > 1;
    let is_rounded = !tested.exact && n_outputs >= 8;
    match (dtype, tested.device.isa(), n_outputs) {
        (_, Isa::Scalar, _) => 0.0,
        (DType::F16 | DType::BF16, Isa::Avx2 | Isa::AvxVnni | Isa::Avx512, _) => 1e-7,
        _ if !is_quantised => 0.0,
        (_, Isa::Amx, _) if is_rounded => 2e-5,
        (
            DType::Q3_K | DType::Q4_K | DType::Q5_K | DType::Q6_K,
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512,
            _,
        ) if is_rounded => 1e-4,
        (_, _, 8..) => 3e-7,
        (_, _, ..8) => 1e-5,
    }
}

/// What is wrong with one run, if anything.
fn fault(row: &KernelRow, case: &Case, expected: &Written, found: &[Vec<u8>]) -> Option<String> {
    for (at, bytes) in found.iter().enumerate() {
        let guard = &bytes[case.data[at].as_ref().len()..];
        if guard != GUARD {
            return Some(format!("{}: guard bytes changed", row.bindings[at].name));
        }
    }
    for (at, expected) in expected {
        let (at, expected) = (*at, expected.as_ref());
        let (found, rest) = found[at].split_at(expected.len());
        if let Err(mismatch) = compare(row, case, at, expected, found) {
            return Some(mismatch.to_string());
        }
        let before = &case.data[at].as_ref()[expected.len()..];
        if !rest.starts_with(before) {
            return Some(format!("{}: more was written", row.bindings[at].name));
        }
    }
    None
}

fn check(mut devices: Vec<Tested>, of_interest: impl Fn(&KernelRow) -> bool) {
    let mut n_cases = 0;
    for kernel in KernelId::all() {
        let row = kernel.row();
        if !of_interest(&row) {
            continue;
        }
        for case in (row.cases)(row.dtype) {
            n_cases += 1;
            check_case(&mut devices, kernel, &case);
        }
    }
    assert!(n_cases > 0, "no kernel was of interest");
}

/// Compares what each device computes with what the twin does.
pub fn check_case(devices: &mut [Tested], kernel: KernelId, case: &Case) {
    let row = kernel.row();
    let expected = case.expected(&row);
    for tested in devices {
        let found = run(&mut tested.device, kernel, case);
        let rounding = error_of_rounding(&row, tested, &expected);
        let case = Case {
            nmse: case.nmse.max(rounding),
            ..case.clone()
        };
        if let Some(fault) = fault(&row, &case, &expected, &found) {
            let (isa, threads) = (tested.device.isa(), tested.device.threads());
            let name = row.name();
            panic!("{name} on {threads} × {isa}, {}: {fault}", case.label);
        }
    }
}

/// The families of products.
const PRODUCTS: [Family; 3] = [Family::Matmul, Family::Fused, Family::Experts];
/// The products of one row, of a few and of many. Here the others are computed by the same functions.
const ROWS: [&str; 3] = ["gemv", "gemv_batched", "simd_gemm"];

#[test]
fn products_agree_with_their_twins() {
    check(all_devices(), |row| PRODUCTS.contains(&row.family));
}

#[test]
fn all_other_kernels_agree_with_their_twins() {
    check(all_devices(), |row| !PRODUCTS.contains(&row.family));
}

/// What `cargo xtask neon --products` emulates, which takes a hundred times as long there.
#[test]
fn vectors_multiply_each_format_as_its_twin_does() {
    check(vector_devices(false), |row| ROWS.contains(&row.source));
}

/// A device that is to be exact rounds the vectors of a prompt no further than a single one.
#[test]
fn exact_devices_multiply_many_vectors_as_a_few() {
    check(vector_devices(true), |row| row.source == "simd_gemm");
}
