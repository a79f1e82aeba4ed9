//! The buffers of a vision tower.

use akunu_program::{Buffer, Device, Slice, StepMemory};

use crate::buffers::{Buffers, Made};
use crate::builder::{Builder, Scratch, Sight};
use crate::error::EngineError;
use crate::weights::BoundTower;

/// Everything that the programs of a tower read and write, besides the weights.
pub(super) struct Memory {
    /// All buffers, for [`Memory::release`].
    made: Made,
    /// Capacity in squares of patches.
    pub squares: u32,
    pub step: StepMemory,
    /// Scratch memory for the rows of a step.
    scratch: Buffer,
    /// (rows, numbers of a patch).
    pub patches: Buffer,
    /// (rows, dim).
    pub positions: Buffer,
    /// (rows, head_dim), if patches turn.
    pub turns: Option<Buffer>,
    /// (squares, out_dim).
    pub features: Buffer,
    /// The same of each projector of a layer.
    pub deep: Vec<Buffer>,
}

impl Memory {
    /// Memory for an image of so many squares of patches.
    pub fn allocate(
        tower: &BoundTower,
        squares: u32,
        device: &mut dyn Device,
    ) -> Result<Memory, EngineError> {
        let (mut memory, made) =
            Buffers::make(device, |buffers| Memory::of(tower, squares, buffers))?;
        memory.made = made;
        Ok(memory)
    }

    /// Releases all buffers.
    pub fn release(self, device: &mut dyn Device) {
        self.made.release(device);
    }

    /// A builder of programs that use this memory.
    pub fn builder(&self, tower: &BoundTower) -> Builder<'_> {
        Builder::new(
            Scratch::new(self.scratch, self.step.row_capacity),
            tower.dim,
        )
    }

    /// The places that a program reads and writes.
    pub fn sight(&self) -> Sight {
        Sight {
            patches: self.patches.into(),
            positions: self.positions.into(),
            n_rows: self.step.row_capacity,
            turns: self.turns.map(Slice::from),
            features: self.features.into(),
            deep: self.deep.iter().map(|&buffer| buffer.into()).collect(),
        }
    }

    /// The memory, of these buffers.
    fn of(tower: &BoundTower, squares: u32, buffers: &mut Buffers) -> Result<Memory, EngineError> {
        let rows = squares * tower.input.merge * tower.input.merge;
        let patch_numbers = tower.patches.weight.matrix.cols;
        let mut features = || buffers.words(squares, tower.out_dim, "features of an image");
        let deep = tower.deep.iter().map(|_| features());
        let deep = deep.collect::<Result<_, _>>()?;
        let features = features()?;
        let turns = tower
            .turn
            .map(|turn| buffers.words(rows, turn.head_dim, "turns of patches"))
            .transpose()?;
        let mut memory = Memory {
            made: Made::default(),
            squares,
            step: buffers.step(rows, 1)?,
            scratch: features,
            patches: buffers.words(rows, patch_numbers, "patches of an image")?,
            positions: buffers.words(rows, tower.dim, "positions of patches")?,
            turns,
            features,
            deep,
        };
        let scratch = Scratch::measure();
        Builder::new(scratch.clone(), tower.dim).see(tower, &memory.sight());
        memory.scratch = buffers.bytes(scratch.row_bytes() * rows as usize, "scratch")?;
        Ok(memory)
    }
}
