//! Where everything lies, and how a time is taken.
//!
//! A program has a kernel many times, each with weights of its own that are not in the GPU's cache, and is submitted at once.
//! Bytes and operations are those of the kernel's row (docs/kernels.md); the time is the shortest of a few runs.

use akunu_kernels::{ChipConfig, KernelCall, KernelDevice};
use akunu_program::{Buffer, DeviceError, Room, Slice};
use std::time::Instant;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Bytes that weights and keys are taken from: several times what the GPU caches.
    pub weights: usize,
    /// Bytes of the largest input.
    pub inputs: usize,
    /// Bytes of the largest output.
    pub outputs: usize,
    /// Launches of a program.
    pub calls: usize,
    /// Runs of it.
    pub runs: usize,
}

/// How long a launch takes.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Seconds of a launch.
    pub seconds: f64,
    /// Bytes that it has to read.
    pub bytes: usize,
    /// Operations of it.
    pub flops: u64,
}

/// A part of the activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    X,
    Y,
    Factors,
    Rows,
    Table,
    Counters,
}

/// Bytes of factors, rows, a page table and counters, each.
const SMALL: usize = 4 << 20;

/// A device, and where everything lies on it.
pub struct Bench<'a> {
    pub(super) device: &'a mut dyn KernelDevice,
    pub(super) chip: ChipConfig,
    pub(super) memory: Buffer,
    pub(super) effort: Effort,
    activations: Buffer,
}

impl<'a> Bench<'a> {
    /// Takes memory of the device and fills it with numbers.
    pub fn new(
        device: &'a mut dyn KernelDevice,
        chip: ChipConfig,
        effort: Effort,
    ) -> Result<Bench<'a>, DeviceError> {
        let memory = device.allocate(effort.weights, "weights and keys")?;
        fill(device, memory, &pattern())?;
        let bytes = effort.inputs + effort.outputs + 4 * SMALL;
        let activations = device.allocate(bytes, "inputs and outputs")?;
        Ok(Bench {
            device,
            chip,
            memory,
            effort,
            activations,
        })
    }

    /// Launches of the programs from now on.
    pub fn set_calls(&mut self, calls: usize) {
        self.effort.calls = calls;
    }

    pub(super) fn part(&self, part: Part) -> Slice {
        let Effort {
            inputs, outputs, ..
        } = self.effort;
        let small = inputs + outputs;
        let offset = match part {
            Part::X => 0,
            Part::Y => inputs,
            Part::Factors => small,
            Part::Rows => small + SMALL,
            Part::Table => small + 2 * SMALL,
            Part::Counters => small + 3 * SMALL,
        };
        Slice {
            buffer: self.activations,
            offset,
        }
    }

    /// Times calls of one kernel, of which each has to read so many bytes.
    pub(super) fn time(
        &mut self,
        calls: Vec<KernelCall>,
        bytes: usize,
    ) -> Result<Timed, DeviceError> {
        let n_calls = calls.len();
        let row = calls[0].key.kernel.row();
        let args = row.args(calls[0].params.as_bytes(), &calls[0].key.constants);
        let flops = row.work(&args).flops;
        let seconds = shortest_run(self.device, calls, self.effort.runs)? / n_calls as f64;
        Ok(Timed {
            seconds,
            bytes,
            flops,
        })
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.device.release(self.memory);
        self.device.release(self.activations);
    }
}

/// The seconds of the shortest of `runs` runs of calls, which is none of a device that has no clock.
pub fn shortest_run(
    device: &mut dyn KernelDevice,
    calls: Vec<KernelCall>,
    runs: usize,
) -> Result<f64, DeviceError> {
    let plan = device.load_kernels(calls, Room::default())?;
    let mut best = f64::INFINITY;
    let mut run = || -> Result<(), DeviceError> {
        let begin = Instant::now();
        device.run(plan, None)?;
        best = best.min(begin.elapsed().as_secs_f64());
        Ok(())
    };
    let ran = (0..runs.max(1)).try_for_each(|_| run());
    device.unload(plan);
    ran.map(|()| best)
}

/// Bytes that are neither zeros nor numbers that are not finite, in any format.
fn pattern() -> Vec<u8> {
    let bytes = (0..1u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x3b);
    bytes.collect()
}

/// Fills a buffer with a pattern, again and again.
pub fn fill(
    device: &mut dyn KernelDevice,
    buffer: Buffer,
    pattern: &[u8],
) -> Result<(), DeviceError> {
    /// Bytes that are written at once, about.
    const PIECE: usize = 16 << 20;
    let times = (PIECE.min(buffer.len) / pattern.len().max(1)).max(1);
    let piece = pattern.repeat(times);
    for at in (0..buffer.len).step_by(piece.len()) {
        let bytes = &piece[..piece.len().min(buffer.len - at)];
        device.write(buffer, at, bytes)?;
    }
    Ok(())
}
