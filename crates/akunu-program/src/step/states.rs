//! The proof that the states of a step are in blocks of their pool, and that the blocks that a sequence writes are used by no
//! other sequence.

use akunu_types::params::Row;

use super::error::RowError;

/// The blocks of states, and who writes them in a step.
#[derive(Default)]
pub(super) struct States {
    /// For each block the check in which it was last written, and by which sequence.
    writers: Vec<(u64, u32)>,
    n_checks: u64,
}

impl States {
    /// A pool of so many blocks.
    pub fn new(n_blocks: u32) -> States {
        States {
            writers: vec![(0, 0); n_blocks as usize],
            n_checks: 0,
        }
    }

    /// How many there are.
    pub fn n_blocks(&self) -> u32 {
        self.writers.len() as u32
    }

    /// Proves that all blocks exist, and that only one sequence uses a block that is written.
    pub fn check(&mut self, rows: &[Row]) -> Result<(), RowError> {
        if self.writers.is_empty() {
            return Ok(());
        }
        self.n_checks += 1;
        let active = || (0..).zip(rows).filter(|(_, row)| row.is_active());
        for (at, row) in active() {
            let Some(block) = row.state_to() else {
                continue;
            };
            let this = (self.n_checks, row.sequence);
            let before = std::mem::replace(self.writer(at, block)?, this);
            if before.0 == self.n_checks && before != this {
                return Err(RowError::State { row: at, block });
            }
        }
        for (at, row) in active() {
            let Some(block) = row.state_from() else {
                continue;
            };
            let (check, writer) = *self.writer(at, block)?;
            if check == self.n_checks && writer != row.sequence {
                return Err(RowError::State { row: at, block });
            }
        }
        Ok(())
    }

    fn writer(&mut self, row: u32, block: u32) -> Result<&mut (u64, u32), RowError> {
        let n_blocks = self.n_blocks();
        let found = self.writers.get_mut(block as usize);
        found.ok_or(RowError::Block {
            row,
            block,
            n_blocks,
        })
    }
}
