//! Cases on any device: one of them, or those of every kernel.

use akunu_program::{Buffer, Device, DeviceError, Room};

use super::error::CaseError;
use super::outcome::{CaseFailure, Outcome, failures_by_cause};
use super::{Case, compare};
use crate::plan::KernelCall;
use crate::table::{Access, KernelId, KernelRow};
use crate::{kernel_device::KernelDevice, pipeline::PipelineKey};

/// Bytes behind each binding that no kernel may change.
const GUARD: [u8; 64] = [0xa5; 64];
/// What a binding that is to be overwritten holds before: not a number, in every float format.
const UNWRITTEN: u8 = 0xff;

/// Runs a case on a device and compares it with the twin; returns the largest NMSE.
///
/// # Errors
/// See [`CaseError`].
pub fn run_on(
    device: &mut dyn KernelDevice,
    kernel: KernelId,
    case: &Case,
) -> Result<f64, CaseError> {
    run_guarded(device, kernel, case, &GUARD)
}

/// The same in buffers that end with the bindings, for a checker of every access.
///
/// # Errors
/// See [`CaseError`].
pub fn run_exactly_on(
    device: &mut dyn KernelDevice,
    kernel: KernelId,
    case: &Case,
) -> Result<f64, CaseError> {
    run_guarded(device, kernel, case, &[])
}

/// How the kernels of the table are run.
#[derive(Clone, Copy, Debug)]
pub struct Cases<W> {
    /// Which kernels.
    pub wanted: W,
    /// Buffers end with the bindings, as in [`run_exactly_on`].
    pub exactly: bool,
}

impl<W: Fn(&KernelRow) -> bool> Cases<W> {
    /// How many kernels there are to run.
    pub fn n_kernels(&self) -> usize {
        self.kernels().count()
    }

    fn kernels(&self) -> impl Iterator<Item = KernelId> {
        let all = KernelId::all().into_iter();
        all.filter(|kernel| (self.wanted)(&kernel.row()))
    }

    /// Runs every case of the selected kernels, and reports the result of each kernel. It ends with the first case
    /// that loses the device, after which nothing runs on it.
    pub fn run_on(&self, device: &mut dyn KernelDevice, mut each: impl FnMut(Outcome)) {
        for kernel in self.kernels() {
            let (outcome, is_lost) = self.outcome(device, kernel);
            each(outcome);
            if is_lost {
                return;
            }
        }
    }

    fn outcome(&self, device: &mut dyn KernelDevice, kernel: KernelId) -> (Outcome, bool) {
        let row = kernel.row();
        let cases = (row.cases)(row.dtype);
        let mut outcome = Outcome {
            kernel: row.name(),
            file: row.source_path(),
            cases: cases.len(),
            ..Default::default()
        };
        let run = if self.exactly { run_exactly_on } else { run_on };
        for case in &cases {
            match run(device, kernel, case) {
                Ok(nmse) => outcome.worst = outcome.worst.max(nmse),
                Err(error) => {
                    let failure = CaseFailure::new(&case.label, &error);
                    outcome.failures.push(failure);
                    if matches!(error, CaseError::Device(DeviceError::Lost { .. })) {
                        return (outcome, true);
                    }
                }
            }
        }
        (outcome, false)
    }

    /// The same, where every case must pass; returns how many there are.
    ///
    /// # Errors
    /// The failures, by cause and file.
    pub fn all_pass_on(
        &self,
        device: &mut dyn KernelDevice,
        mut each: impl FnMut(&Outcome),
    ) -> Result<usize, String> {
        let mut outcomes = Vec::new();
        self.run_on(device, |outcome| {
            each(&outcome);
            outcomes.push(outcome);
        });
        let n_cases: usize = outcomes.iter().map(|outcome| outcome.cases).sum();
        let n_failed: usize = outcomes.iter().map(|outcome| outcome.failures.len()).sum();
        if n_failed == 0 {
            return Ok(n_cases);
        }
        let groups = failures_by_cause(&outcomes);
        Err(format!("{n_failed} of {n_cases} cases failed:\n{groups}"))
    }
}

fn run_guarded(
    device: &mut dyn KernelDevice,
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
    device: &mut dyn KernelDevice,
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
    let plan = device.load_kernels(vec![call], Room::default())?;
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
