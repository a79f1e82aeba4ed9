//! Attention: of one row in as many parts as lowering could choose, and of a prompt.

use super::part::Given;
use super::products::{effort, print_time};
use super::record::Record;
use super::target::{Target, kernels};
use crate::timing::Bench;
use akunu_kernels::{KernelDevice, KernelId};
use akunu_program::DeviceError;

/// A measurement: kernel, rows, parts and keys.
type Wanted = (KernelId, [u32; 3]);

pub fn run(target: &mut dyn Target, given: &Given) -> Result<(), DeviceError> {
    let runs = kernels(target, given.is_small);
    let mut all = wanted(given.is_small);
    all.retain(|(kernel, _)| runs.contains(kernel));
    let chip = target.chip().clone();
    let device: &mut dyn KernelDevice = target;
    let mut bench = Bench::new(device, chip, effort(given.is_small))?;
    for (kernel, shape) in given.wanted(all, label) {
        Record::Begin {
            what: label(&(kernel, shape)),
        }
        .print();
        let [rows, parts, keys] = shape;
        print_time(kernel, shape, bench.attend(kernel, (rows, parts, keys)))?;
    }
    Ok(())
}

fn label((kernel, [rows, parts, keys]): &Wanted) -> String {
    format!("{} {rows} {parts} {keys}", kernel.row().name())
}

fn wanted(is_small: bool) -> Vec<Wanted> {
    let (keys, parts): (&[u32], &[u32]) = match is_small {
        true => (&[64, 128], &[2]),
        false => (&[512, 2048, 8192, 32_768], &[4, 8, 16, 32, 64]),
    };
    let mut wanted = Vec::new();
    for &keys in keys {
        wanted.push((KernelId::FlashAttentionDecodeFast, [1, 1, keys]));
        for &parts in parts {
            wanted.push((KernelId::FlashAttentionDecodeSplit, [1, parts, keys]));
            wanted.push((KernelId::FlashAttentionJoin, [1, parts, keys]));
        }
        if !is_small {
            for kernel in [
                KernelId::FlashAttentionPrefill,
                KernelId::FlashAttentionPrefillV2,
                KernelId::TensorAttention,
            ] {
                wanted.push((kernel, [512, 1, keys]));
            }
        }
    }
    wanted
}
