//! Cases on a device: what passes, and what a faulty device is caught at.

use akunu_kernels::case::{CaseError, run_on};
use akunu_kernels::device::SharedBytes;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    Buffer, ChipConfig, Device, DeviceError, KernelId, PipelineId, PipelineKey, Plan,
};

/// A device of twins that afterwards changes a byte of a binding: `offset` from its end.
struct Faulty {
    device: TwinDevice,
    binding: usize,
    from_end: Option<usize>,
}

impl Device for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }
    fn chip(&self) -> &ChipConfig {
        self.device.chip()
    }
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes, label)
    }
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }
    fn release(&mut self, buffer: Buffer) {
        self.device.release(buffer);
    }
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(buffer, offset, bytes)
    }
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }
    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.device.pipeline(key)
    }
    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        if let Some(from_end) = self.from_end {
            self.device.run_chain(plan, first, n)?;
            let buffer = plan.dispatches()[0].bindings[self.binding].buffer;
            return self.device.write(buffer, buffer.len - from_end, &[0x7f]);
        }
        Ok(())
    }
}

/// `y` of the first case of a kernel that adds `x` to `y`, and of one that overwrites it.
fn run(kernel: KernelId, binding: usize, from_end: Option<usize>) -> Result<f64, CaseError> {
    let mut device = Faulty {
        device: TwinDevice::new(ChipConfig::m1()),
        binding,
        from_end,
    };
    let row = kernel.row();
    run_on(&mut device, kernel, &(row.cases)(row.dtype)[0])
}

#[test]
fn a_device_of_twins_passes_every_case() {
    let mut device = TwinDevice::new(ChipConfig::m1());
    for kernel in [
        KernelId::VectorAdd,
        KernelId::KvCacheWrite,
        KernelId::Argmax,
    ] {
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
    let overrun = run(KernelId::VectorAdd, 2, Some(1)).expect_err("a guard byte");
    assert!(
        matches!(overrun, CaseError::Overrun { binding: "y" }),
        "{overrun}"
    );
    let read_only = run(KernelId::VectorAdd, 0, Some(64)).expect_err("a guard of an input");
    assert!(
        matches!(read_only, CaseError::Overrun { binding: "a" }),
        "{read_only}"
    );
    let wrong = run(KernelId::VectorAdd, 2, Some(65)).expect_err("a wrong result");
    assert!(matches!(wrong, CaseError::Mismatch(_)), "{wrong}");
}

/// A kernel that writes nothing leaves what stood there before, which is not a number.
#[test]
fn doing_nothing_is_caught() {
    for kernel in [KernelId::VectorAdd, KernelId::RmsNorm, KernelId::Argmax] {
        let idle = run(kernel, 0, None).expect_err("nothing was written");
        assert!(matches!(idle, CaseError::Mismatch(_)), "{kernel:?}: {idle}");
    }
}
