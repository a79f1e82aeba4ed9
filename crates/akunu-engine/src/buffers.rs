//! Buffers that are made together, and given back together.

use akunu_program::{Buffer, Device, StepMemory};
use akunu_types::params::{Row, SamplingRule};
use half::f16;

use crate::error::EngineError;

/// Makes buffers, and remembers them.
pub(crate) struct Buffers<'a> {
    pub device: &'a mut dyn Device,
    made: Vec<Buffer>,
}

/// All buffers that were made together.
#[derive(Default)]
pub(crate) struct Made(Vec<Buffer>);

impl Made {
    /// Gives all of them back.
    pub fn release(self, device: &mut dyn Device) {
        self.0.into_iter().for_each(|buffer| device.release(buffer));
    }
}

impl Buffers<'_> {
    /// What `make` makes of buffers, and all of those. If it fails, they are given back.
    pub fn make<T>(
        device: &mut dyn Device,
        make: impl FnOnce(&mut Buffers) -> Result<T, EngineError>,
    ) -> Result<(T, Made), EngineError> {
        let mut buffers = Buffers {
            device,
            made: Vec::new(),
        };
        let result = make(&mut buffers);
        let Buffers { device, made } = buffers;
        let made = Made(made);
        match result {
            Ok(result) => Ok((result, made)),
            Err(error) => {
                made.release(device);
                Err(error)
            }
        }
    }

    /// A buffer of as many bytes.
    pub fn bytes(&mut self, bytes: usize, label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.device.allocate(bytes, label)?;
        self.made.push(buffer);
        Ok(buffer)
    }

    /// A buffer of (rows, width) elements of 4 bytes, at least one.
    pub fn words(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        let n_words = (rows as usize * width as usize).max(1);
        self.bytes(4 * n_words, label)
    }

    /// A buffer with these numbers.
    pub fn floats(&mut self, values: &[f32], label: &str) -> Result<Buffer, EngineError> {
        let buffer = self.bytes(size_of_val(values), label)?;
        self.device.write(buffer, 0, bytemuck::cast_slice(values))?;
        Ok(buffer)
    }

    /// A buffer of (rows, width) halves.
    pub fn halves(&mut self, rows: u32, width: u32, label: &str) -> Result<Buffer, EngineError> {
        self.bytes(size_of::<f16>() * rows as usize * width as usize, label)
    }

    /// The memory of a step of some rows, of some sequences, in which no token is chosen.
    pub fn step(&mut self, rows: u32, n_sequences: u32) -> Result<StepMemory, EngineError> {
        self.chain_step(rows, n_sequences, (1, 1))
    }

    /// The memory of up to `max_steps` steps in which tokens are chosen, with a history of `history_stride` tokens.
    pub fn chain_step(
        &mut self,
        rows: u32,
        n_sequences: u32,
        (history_stride, max_steps): (u32, u32),
    ) -> Result<StepMemory, EngineError> {
        let words = |bytes: usize| (bytes / 4) as u32;
        Ok(StepMemory {
            rows: self.words(rows, words(size_of::<Row>()), "rows")?,
            tokens: self.words(rows, 1, "tokens")?,
            outputs: self.words(rows, 1, "outputs")?,
            rules: self.words(n_sequences, words(size_of::<SamplingRule>()), "rules")?,
            history: self.words(n_sequences, history_stride, "history")?,
            chosen: self.words(max_steps, rows, "chosen")?,
            row_capacity: rows,
            n_sequences,
            history_stride,
            max_steps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_kernels::twin_device::TwinDevice;
    use akunu_program::DeviceError;

    fn is_there(device: &TwinDevice, buffer: Buffer) -> bool {
        device.read(buffer, 0, &mut [0; 4]).is_ok()
    }

    /// Fails if a buffer stays behind, or is given back while it is used.
    #[test]
    fn buffers_are_given_back_together_or_after_a_failure() {
        let mut device = TwinDevice::new();
        let pair =
            |buffers: &mut Buffers| Ok([buffers.words(1, 1, "a")?, buffers.step(2, 1)?.rows]);
        let (pair, made) = Buffers::make(&mut device, pair).expect("there is room");
        assert!(pair.iter().all(|&buffer| is_there(&device, buffer)));
        made.release(&mut device);
        assert!(!pair.iter().any(|&buffer| is_there(&device, buffer)));

        let mut first = None;
        let failed = Buffers::make(&mut device, |buffers| {
            first = Some(buffers.words(1, 1, "a")?);
            let (bytes, label) = (4, "b".into());
            Err::<(), _>(EngineError::Device(DeviceError::Memory { bytes, label }))
        });
        assert!(failed.is_err());
        assert!(!is_there(&device, first.expect("it was made")));
    }
}
