//! Every kernel on the GPU of this Mac, against its twin.

use akunu_kernels::kernel::common::copy;
use std::sync::Arc;
use std::time::Instant;

use akunu_kernels::case::{Cases, Outcome};
use akunu_kernels::metal::Order;
use akunu_kernels::table::KernelRow;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, MetalDevice, PipelineKey};
use akunu_program::{Device, Room, SharedBytes, SharedMemory, Slice};
use akunu_types::params::ElementwiseParams;

fn device(order: Order) -> MetalDevice {
    MetalDevice::with_order(order).expect("a Mac with a GPU")
}

/// Metal orders the products of a sum as it likes and its SIMD matrices round halves, which the cases
/// allow for, as they do for the simulator.
#[test]
fn every_kernel_gives_what_its_twin_says() {
    let mut device = device(Order::Concurrent);
    let cases = Cases {
        wanted: |row: &KernelRow| row.family.is_metal(),
        exactly: false,
    };
    let (n_kernels, mut n_done) = (cases.n_kernels(), 0);
    let start = Instant::now();
    let show = |outcome: &Outcome| {
        n_done += 1;
        if n_done % 20 == 0 || !outcome.failures.is_empty() {
            let Outcome {
                kernel, failures, ..
            } = outcome;
            let (seconds, failed) = (start.elapsed().as_secs(), failures.len());
            println!(
                "{n_done:>4} of {n_kernels} kernels, {seconds} s: {kernel}, {failed} failures"
            );
        }
    };
    let n_cases = cases
        .all_pass_on(&mut device, show)
        .unwrap_or_else(|failures| panic!("{failures}"));
    assert!(n_cases > 1000, "{n_cases} cases");
}

/// Memory that begins at a page, as a mapped file does, is bound where it is; other memory is copied.
struct Floats {
    values: Vec<f32>,
    skipped: usize,
}

impl Floats {
    /// `n` floats from 0 up, which begin `beyond` bytes behind a page.
    fn new(n: usize, beyond: usize) -> Floats {
        const PAGE: usize = 16 * 1024;
        let mut values = vec![0f32; n + 2 * PAGE / 4];
        let skipped = (PAGE - values.as_ptr().addr() % PAGE + beyond) / 4;
        for (value, slot) in values[skipped..skipped + n].iter_mut().enumerate() {
            *slot = value as f32;
        }
        Floats { values, skipped }
    }
}

impl SharedMemory for Floats {}

impl AsRef<[u8]> for Floats {
    fn as_ref(&self) -> &[u8] {
        let end = self.values.len() - 2 * 16 * 1024 / 4 + self.skipped;
        bytemuck::cast_slice(&self.values[self.skipped..end])
    }
}

#[test]
fn shared_memory_is_read_wherever_it_begins() {
    const COUNT: usize = 5000;
    for order in [Order::Serial, Order::Concurrent] {
        for beyond in [0, 64] {
            let mut device = device(order);
            let floats: SharedBytes = Arc::new(Floats::new(COUNT, beyond));
            let x = device.share(floats, "x").expect("memory");
            let y = device.allocate(4 * COUNT, "y").expect("memory");
            let params = ElementwiseParams {
                count: COUNT as u32,
                ..Default::default()
            };
            let key = PipelineKey::plain(KernelId::Copy);
            let buffers = copy::Buffers::<Slice> {
                x: x.into(),
                y: y.into(),
            };
            let copy = KernelCall::new(key, &params, buffers, "copy");
            let plan = device.load_kernels(vec![copy], Room::default());
            let plan = plan.expect("it compiles and fits");
            for _ in 0..10 {
                device.run(plan, None).expect("runs");
            }
            let mut copied = vec![0f32; COUNT];
            let bytes = bytemuck::cast_slice_mut(&mut copied);
            device.read(y, 0, bytes).expect("fits");
            let expected: Vec<f32> = (0..COUNT).map(|n| n as f32).collect();
            assert_eq!(copied, expected, "{order:?}, {beyond} bytes behind a page");
        }
    }
}
