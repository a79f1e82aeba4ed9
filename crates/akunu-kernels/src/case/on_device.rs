//! A case on any device.

use super::{Case, Mismatch, compare};
use crate::device::{Buffer, Device, DeviceError};
use crate::pipeline::PipelineKey;
use crate::plan::KernelCall;
use crate::program::Program;
use crate::table::{Access, KernelId};

/// Bytes behind each binding that no kernel may change.
const GUARD: [u8; 64] = [0xa5; 64];
/// What a binding that is to be overwritten holds before: not a number, in every float format.
const UNWRITTEN: u8 = 0xff;

/// Why a case failed on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Another result than the twin's.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// Bytes behind a binding were changed.
    #[error("binding {binding}: bytes behind its end were changed")]
    Overrun {
        /// The binding's name.
        binding: &'static str,
    },
}

/// Runs a case on a device and compares it with the twin; returns the largest NMSE.
///
/// # Errors
/// See [`CaseError`].
pub fn run_on(device: &mut dyn Device, kernel: KernelId, case: &Case) -> Result<f64, CaseError> {
    run_guarded(device, kernel, case, &GUARD)
}

/// The same in buffers that end with the bindings, for a checker that looks at every access itself.
///
/// # Errors
/// See [`CaseError`].
pub fn run_exactly_on(
    device: &mut dyn Device,
    kernel: KernelId,
    case: &Case,
) -> Result<f64, CaseError> {
    run_guarded(device, kernel, case, &[])
}

fn run_guarded(
    device: &mut dyn Device,
    kernel: KernelId,
    case: &Case,
    guard: &[u8],
) -> Result<f64, CaseError> {
    let mut buffers = Vec::new();
    let ran = run(device, kernel, case, (guard, &mut buffers));
    let checked = ran.and_then(|()| check(device, kernel, case, (guard, &buffers)));
    for buffer in buffers {
        device.release(buffer);
    }
    checked
}

fn run(
    device: &mut dyn Device,
    kernel: KernelId,
    case: &Case,
    (guard, buffers): (&[u8], &mut Vec<Buffer>),
) -> Result<(), CaseError> {
    let row = kernel.row();
    for (data, binding) in case.data.iter().zip(row.bindings) {
        let data = match binding.access {
            Access::Write => vec![UNWRITTEN; data.as_ref().len()],
            Access::Read | Access::ReadWrite => data.as_ref().to_vec(),
        };
        let buffer = device.allocate(data.len() + guard.len(), binding.name)?;
        buffers.push(buffer);
        device.write(buffer, 0, &[&data[..], guard].concat())?;
    }
    let key = PipelineKey {
        kernel,
        constants: case.constants.clone(),
    };
    let bindings = buffers.iter().map(|&buffer| buffer.into()).collect();
    let call = KernelCall {
        key,
        params: case.params,
        bindings,
        row_fields: Vec::new(),
        label: "case",
    };
    let plan = device.load(&Program::of_kernels(vec![call]))?;
    let ran = device.run(plan, None);
    device.unload(plan);
    Ok(ran?)
}

fn check(
    device: &dyn Device,
    kernel: KernelId,
    case: &Case,
    (guard, buffers): (&[u8], &[Buffer]),
) -> Result<f64, CaseError> {
    let row = kernel.row();
    let mut found = Vec::new();
    for (buffer, binding) in buffers.iter().zip(row.bindings) {
        let mut bytes = vec![0; buffer.len];
        device.read(*buffer, 0, &mut bytes)?;
        if !bytes.ends_with(guard) {
            let binding = binding.name;
            return Err(CaseError::Overrun { binding });
        }
        found.push(bytes);
    }
    let mut worst = 0f64;
    for (at, expected) in case.expected(&row) {
        let expected = expected.as_ref();
        let nmse = compare(&row, case, at, expected, &found[at][..expected.len()])?;
        worst = worst.max(nmse);
    }
    Ok(worst)
}
