//! Cases on a device: what passes, and what a faulty device is caught at.

use akunu_kernels::case::{CaseError, run_on};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelCall, KernelId};
use akunu_program::{Buffer, Checked, Device, DeviceError, PlanId, Ticket};

use crate::watched::{Watch, Watched};

/// Changes a byte of a binding after each run, `from_end` bytes from its end; without that, runs nothing.
struct Fault {
    binding: usize,
    from_end: Option<usize>,
    buffer: Option<Buffer>,
}

impl Watch for Fault {
    fn loaded(&mut self, calls: &[KernelCall]) {
        self.buffer = Some(calls[0].bindings[self.binding].buffer);
    }

    fn submit(
        &mut self,
        device: &mut TwinDevice,
        plan: PlanId,
        step: Option<&Checked>,
    ) -> Result<Ticket, DeviceError> {
        let Some(from_end) = self.from_end else {
            return Ok(Ticket::default());
        };
        let ticket = device.submit(plan, step)?;
        let buffer = self.buffer.expect("it was loaded");
        device.write(buffer, buffer.len - from_end, &[0x7f])?;
        Ok(ticket)
    }
}

/// `y` of the first case of a kernel that adds `x` to `y`, and of one that overwrites it.
fn run(kernel: KernelId, binding: usize, from_end: Option<usize>) -> Result<f64, CaseError> {
    let mut device = Watched::new(Fault {
        binding,
        from_end,
        buffer: None,
    });
    let row = kernel.row();
    run_on(&mut device, kernel, &(row.cases)(row.dtype)[0])
}

#[test]
fn a_device_of_twins_passes_every_case() {
    let mut device = TwinDevice::new();
    for kernel in [KernelId::SiluGate, KernelId::GatherRows, KernelId::Argmax] {
        let row = kernel.row();
        for case in (row.cases)(row.dtype) {
            let nmse = run_on(&mut device, kernel, &case);
            assert_eq!(nmse.expect("the twin is right"), 0.0, "{}", case.label);
        }
    }
}

/// The last byte is a guard, the byte before the guards is of the result.
#[test]
fn wrong_and_stray_bytes_are_caught() {
    let overrun = run(KernelId::SiluGate, 2, Some(1)).expect_err("a guard byte");
    assert!(
        matches!(overrun, CaseError::Overrun { binding: "y" }),
        "{overrun}"
    );
    let read_only = run(KernelId::SiluGate, 0, Some(64)).expect_err("a guard of an input");
    assert!(
        matches!(read_only, CaseError::Overrun { binding: "gate" }),
        "{read_only}"
    );
    let wrong = run(KernelId::SiluGate, 2, Some(65)).expect_err("a wrong result");
    assert!(matches!(wrong, CaseError::Mismatch(_)), "{wrong}");
}

/// A kernel that writes nothing leaves what stood there before, which is not a number.
#[test]
fn doing_nothing_is_caught() {
    for kernel in [KernelId::SiluGate, KernelId::RmsNorm, KernelId::Argmax] {
        let idle = run(kernel, 0, None).expect_err("nothing was written");
        assert!(matches!(idle, CaseError::Mismatch(_)), "{kernel:?}: {idle}");
    }
}
