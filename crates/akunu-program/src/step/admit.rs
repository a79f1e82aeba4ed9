//! Whether a step may run with a loaded program.

use super::error::RowError;
use super::room::Room;
use super::table::Checked;
use super::{Count, Counts};

impl Room {
    /// How many rows a run has, and how often it runs; refuses a step that is not for this plan.
    pub fn admit(&self, step: Option<&Checked>) -> Result<(Counts, u32), RowError> {
        let (Some(step), Some(memory)) = (step, &self.step) else {
            return match (step, &self.step) {
                (None, None) => Ok((self.counts, 1)),
                _ => Err(RowError::Foreign),
            };
        };
        let covered = step.covers(self);
        if step.memory() != memory || !covered {
            return Err(RowError::Foreign);
        }
        let counts = step.counts();
        let kinds = [
            ("singles", Count::Singles),
            ("rows of a run", Count::Run),
            ("outputs", Count::Outputs),
        ];
        for (what, count) in kinds {
            let (found, room) = (counts.of(count), self.counts.of(count));
            if found > room {
                return Err(RowError::Room { what, found, room });
            }
        }
        let steps = step.steps();
        if steps > 1 && !self.advances {
            return Err(RowError::Still { steps });
        }
        if self.advances {
            step.have_own_sequences()?;
        }
        Ok((counts, steps))
    }
}
