//! The buffers of an encoder: for the rows of a step, and for its texts.

use akunu_arch::Model;
use akunu_program::{Buffer, Device, Slice, StepMemory};

use super::file::EncoderFile;
use crate::buffers::{Buffers, Made};
use crate::builder::{
    self, AttentionMemory, Builder, LayerMemory, MixerMemory, Scratch, SeenKeys, TextPlaces,
};
use crate::error::EngineError;

/// Everything that the programs of an encoder read and write, besides the weights.
pub(super) struct Memory {
    /// All buffers, to be given back.
    made: Made,
    pub step: StepMemory,
    /// Scratch memory for the rows of a step.
    scratch: Buffer,
    /// One vector for each text, (texts, dim), and what the classifier makes of it.
    pub pooled: Buffer,
    hidden: Buffer,
    /// (texts, labels).
    pub scores: Buffer,
    /// RoPE divisors of each layer, (layers, [`DIVISORS`]).
    divisors: Buffer,
    /// The bias of norms that have none, (dim).
    zeros: Buffer,
}

/// Numbers from the divisors of a layer to those of the next: half of the largest head.
const DIVISORS: u32 = 128;

/// Rows and texts that there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub rows: u32,
    pub texts: u32,
}

impl Memory {
    pub fn allocate(
        file: &EncoderFile,
        room: Room,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let (mut memory, made) = Buffers::make(device, |buffers| Memory::of(file, room, buffers))?;
        memory.made = made;
        Ok(memory)
    }

    /// Gives all of it back.
    pub fn release(self, device: &mut dyn Device) {
        self.made.release(device);
    }

    /// A builder of programs that use this memory.
    pub fn builder(&self, config: &Model) -> Builder<'_> {
        let scratch = Scratch::new(self.scratch, self.step.row_capacity);
        Builder::new(scratch, config.dim).with_zeros(self.zeros.into())
    }

    /// The memory of each layer.
    pub fn layers(&self, file: &EncoderFile) -> Vec<LayerMemory> {
        layers(file, self.divisors)
    }

    /// Places for the vectors of texts.
    pub fn places(&self) -> TextPlaces {
        TextPlaces {
            pooled: self.pooled.into(),
            hidden: self.hidden.into(),
            scores: self.scores.into(),
        }
    }

    /// The memory, of these buffers.
    fn of(file: &EncoderFile, room: Room, buffers: &mut Buffers) -> Result<Memory, EngineError> {
        let Room { rows, texts } = room;
        let config = &file.config;
        let (dim, n_layers) = (config.dim, config.layers.len() as u32);
        let divisors = buffers.words(n_layers, DIVISORS, "RoPE divisors")?;
        let zeros = buffers.floats(&vec![0.0; dim as usize], "zeros")?;
        let scratch = Scratch::measure();
        Builder::new(scratch.clone(), dim)
            .with_zeros(zeros.into())
            .layers(&file.weights, &layers(file, divisors));
        let memory = Memory {
            made: Made::default(),
            step: buffers.step(rows, texts)?,
            scratch: buffers.bytes(scratch.row_bytes() * rows as usize, "scratch")?,
            pooled: buffers.words(texts, dim, "pooled")?,
            hidden: buffers.words(texts, dim, "pooled and projected")?,
            scores: buffers.words(texts, config.n_labels(), "scores")?,
            divisors,
            zeros,
        };
        for (attention, at) in config.attention().zip(0..) {
            let values = builder::divisors(attention, &[]);
            let offset = at * size_of::<f32>() * DIVISORS as usize;
            let bytes = bytemuck::cast_slice(&values);
            buffers.device.write(divisors, offset, bytes)?;
        }
        Ok(memory)
    }
}

/// The memory of each layer, with the divisors of all of them.
fn layers(file: &EncoderFile, divisors: Buffer) -> Vec<LayerMemory> {
    let stride = size_of::<f32>() * DIVISORS as usize;
    let layers = 0..file.config.layers.len();
    let memory = layers.map(|at| LayerMemory {
        mixer: MixerMemory::Attention(AttentionMemory {
            divisors: Slice {
                buffer: divisors,
                offset: at * stride,
            },
            keys: SeenKeys::Text {
                distances: file.distance_bias,
                turns: None,
            },
        }),
        cross: None,
        router: None,
    });
    memory.collect()
}
