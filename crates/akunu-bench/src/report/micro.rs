//! What a launch, a barrier and a read cost, whatever the kernel.
//!
//! ```text
//! launch  = (time of 256 copies to as many places − time of 16) / 240
//! barrier = (time of 256 copies to and fro − time of 16) / 240 − launch
//! read    = bytes of a product with one row / its time, for so many SIMD groups
//! ```

use super::part::Given;
use super::products::effort;
use super::record::Record;
use super::target::Target;
use crate::timing::{Bench, shortest_run};
use akunu_kernels::kernel::common::copy;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{DeviceError, Slice};
use akunu_types::DType;
use akunu_types::params::ElementwiseParams;

/// Launches of the long and of the short program.
const LAUNCHES: [usize; 2] = [256, 16];
/// Bytes of a copy.
const COPIED: usize = 1024;
/// Runs, of which the shortest counts.
const RUNS: usize = 9;

pub fn run(target: &mut dyn Target, given: &Given) -> Result<(), DeviceError> {
    Record::Begin {
        what: "launches".into(),
    }
    .print();
    let launch = of_one(target, |at| [0, at + 1])?;
    let ordered = of_one(target, |at| [at % 2, (at + 1) % 2])?;
    microseconds("launch", launch);
    microseconds("barrier", ordered - launch);
    bandwidth(target, given)
}

fn microseconds(name: &str, seconds: f64) {
    Record::Micro {
        name: name.to_owned(),
        value: seconds * 1e6,
        unit: "us".to_owned(),
    }
    .print();
}

/// Seconds of a copy between these places, by its number.
fn of_one(target: &mut dyn Target, places: fn(usize) -> [usize; 2]) -> Result<f64, DeviceError> {
    let buffer = target.allocate((LAUNCHES[0] + 1) * COPIED, "copies")?;
    let place = |at: usize| Slice {
        buffer,
        offset: at * COPIED,
    };
    let params = ElementwiseParams {
        count: (COPIED / 4) as u32,
        ..Default::default()
    };
    let calls = |n: usize| -> Vec<KernelCall> {
        let one = |at: usize| {
            let [x, y] = places(at).map(place);
            let key = PipelineKey::plain(KernelId::Copy);
            KernelCall::new(key, &params, copy::Buffers { x, y }, "copy")
        };
        (0..n).map(one).collect()
    };
    let [long, short] = LAUNCHES.map(|n| shortest_run(target, calls(n), RUNS));
    target.release(buffer);
    Ok((long? - short?) / (LAUNCHES[0] - LAUNCHES[1]) as f64)
}

/// A product's SIMD groups compute four outputs each.
const OUTPUTS: u32 = 4;

fn bandwidth(target: &mut dyn Target, given: &Given) -> Result<(), DeviceError> {
    let k = if given.is_small { 256 } else { 8192 };
    let most = if given.is_small { 16 } else { 4096 };
    let chip = target.chip().clone();
    let device: &mut dyn KernelDevice = target;
    let mut bench = Bench::new(device, chip, effort(given.is_small))?;
    let mut groups = 1;
    while groups <= most {
        let timed = bench.product(KernelId::Gemv(DType::F16), (1, OUTPUTS * groups, k))?;
        Record::Micro {
            name: format!("read by {groups} SIMD groups"),
            value: timed.bytes as f64 / timed.seconds / 1e9,
            unit: "GB/s".to_owned(),
        }
        .print();
        groups *= 4;
    }
    Ok(())
}
