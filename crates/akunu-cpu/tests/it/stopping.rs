//! A device that is stopped while it lays weights out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use akunu_cpu::Isa;
use akunu_kernels::{KernelDevice, KernelId};
use akunu_program::{Device, DeviceError, Room};
use akunu_types::DType;

use crate::table::{bound, device};

/// Breaks when the weights of a model, which take seconds the first time, are laid out to their end after a caller has cancelled the
/// prompt that they are for; or when they cannot be laid out afterwards.
#[test]
fn weights_are_not_laid_out_any_more_after_a_stop() {
    let kernel = KernelId::Gemv(DType::Q8_0);
    let row = kernel.row();
    let cases = (row.cases)(row.dtype);
    for isa in Isa::available() {
        if isa == Isa::Scalar {
            continue;
        }
        let mut device = device(isa, 2, false).device;
        let (call, _) = bound(&mut device, kernel, &cases[0]);
        let stop = Arc::new(AtomicBool::new(true));
        device.stop_when(Some(Arc::clone(&stop)));
        let stopped = device.load_kernels(vec![call.clone()], Room::default());
        assert!(matches!(stopped, Err(DeviceError::Stopped)), "{stopped:?}");
        stop.store(false, Ordering::Relaxed);
        let plan = device.load_kernels(vec![call.clone()], Room::default());
        device.run(plan.expect("loads"), None).expect("runs");
        // They are there now: nothing is left to stop.
        stop.store(true, Ordering::Relaxed);
        let again = device.load_kernels(vec![call], Room::default());
        assert!(again.is_ok(), "{again:?}");
    }
}
