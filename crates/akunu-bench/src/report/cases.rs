//! The cases of the kernels of a family.

use super::part::Given;
use super::record::{Cases, Record};
use super::target::{Target, kernels};
use akunu_kernels::KernelId;
use akunu_kernels::case::{CaseError, run_on};
use akunu_kernels::table::Family;
use akunu_program::DeviceError;

/// Failures of a kernel that are kept: the others say the same.
const KEPT: usize = 4;
/// Cases of a kernel on the simulator, whose own tests run all of them.
const FEW: usize = 2;

pub fn run(target: &mut dyn Target, family: Family, given: &Given) {
    let mut all = kernels(target, given.is_small);
    all.retain(|kernel| kernel.row().family == family);
    for kernel in given.wanted(all, |kernel| kernel.row().name()) {
        let name = kernel.row().name();
        Record::Begin { what: name }.print();
        let (cases, is_lost) = run_kernel(target, kernel, given.is_small);
        Record::Cases(cases).print();
        if is_lost {
            // Nothing runs on a GPU that has failed; the parent starts a process that goes on after this kernel.
            std::process::exit(1);
        }
    }
}

fn run_kernel(target: &mut dyn Target, kernel: KernelId, is_small: bool) -> (Cases, bool) {
    let row = kernel.row();
    let mut found = Cases {
        kernel: row.name(),
        file: row.source_path(),
        cases: 0,
        worst: 0.0,
        failed: 0,
        failures: Vec::new(),
    };
    let most = if is_small { FEW } else { usize::MAX };
    for case in (row.cases)(row.dtype).into_iter().take(most) {
        found.cases += 1;
        match run_on(target, kernel, &case) {
            Ok(nmse) => found.worst = found.worst.max(nmse),
            Err(error) => {
                found.failed += 1;
                if found.failures.len() < KEPT {
                    let words = error.cause().words().to_owned();
                    let text = format!("{}: {error}", case.label);
                    found.failures.push((words, text));
                }
                if matches!(error, CaseError::Device(DeviceError::Lost { .. })) {
                    return (found, true);
                }
            }
        }
    }
    (found, false)
}
