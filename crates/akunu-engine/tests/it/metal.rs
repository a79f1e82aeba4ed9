//! The small model on the GPU of this Mac.

use crate::support::agreement::{Open, assert_same_tokens};
use akunu_kernels::MetalDevice;
use akunu_kernels::metal::Order;
use akunu_kernels::twin_device::TwinDevice;

/// A missing barrier shows as a difference between the two orders, a wrong kernel as one from the
/// twins.
#[test]
fn metal_gives_the_tokens_of_the_twins_in_both_orders() {
    let orders: [(&str, Open); 2] = [
        ("serial", || Box::new(open(Order::Serial))),
        ("concurrent", || Box::new(open(Order::Concurrent))),
    ];
    for (name, device) in orders {
        let twins: Open = || Box::new(TwinDevice::new());
        if let Some(tie) = assert_same_tokens(name, [device, twins]) {
            println!("{tie}");
        }
    }
}

fn open(order: Order) -> MetalDevice {
    MetalDevice::with_order(order).expect("a Mac with a GPU")
}
