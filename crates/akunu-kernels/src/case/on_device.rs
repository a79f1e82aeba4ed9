//! Cases on any device: one of them, or those of every kernel.

use akunu_program::{Buffer, Device, DeviceError, Room};

use super::{Case, Mismatch, compare};
use crate::plan::KernelCall;
use crate::table::{Access, KernelId, KernelRow};
use crate::{kernel_device::KernelDevice, pipeline::PipelineKey};

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

/// What became of the cases of one kernel.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The kernel's name.
    pub kernel: String,
    /// How many cases it has.
    pub cases: usize,
    /// The largest error of the cases that passed.
    pub worst: f64,
    /// What is wrong, a line for each case that failed.
    pub failures: Vec<String>,
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
    /// Runs every case of the selected kernels, and reports the result of each kernel. It ends with the first case
    /// that loses the device, after which nothing runs on it.
    pub fn run_on(&self, device: &mut dyn KernelDevice, mut each: impl FnMut(Outcome)) {
        let wanted = |kernel: &KernelId| (self.wanted)(&kernel.row());
        for kernel in KernelId::all().into_iter().filter(wanted) {
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
            cases: cases.len(),
            ..Default::default()
        };
        let run = if self.exactly { run_exactly_on } else { run_on };
        for case in &cases {
            match run(device, kernel, case) {
                Ok(nmse) => outcome.worst = outcome.worst.max(nmse),
                Err(error) => {
                    outcome.failures.push(format!("{}: {error}", case.label));
                    if matches!(error, CaseError::Device(DeviceError::Lost { .. })) {
                        return (outcome, true);
                    }
                }
            }
        }
        (outcome, false)
    }

    /// The same, where every case must pass.
    ///
    /// # Errors
    /// A text with the first failures, and how many there are.
    pub fn all_pass_on(&self, device: &mut dyn KernelDevice) -> Result<usize, String> {
        const SHOWN: usize = 40;
        let (mut n_cases, mut failures) = (0, Vec::new());
        self.run_on(device, |outcome| {
            n_cases += outcome.cases;
            let lines = outcome.failures.iter();
            failures.extend(lines.map(|line| format!("{}, {line}", outcome.kernel)));
        });
        if failures.is_empty() {
            return Ok(n_cases);
        }
        let shown = failures[..failures.len().min(SHOWN)].join("\n");
        Err(format!(
            "{} of {n_cases} cases failed:\n{shown}",
            failures.len()
        ))
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
