//! An encoder on its device: texts become rows, rows become steps, steps become vectors.

use std::collections::HashMap;
use std::sync::Arc;

use akunu_arch::Pooling;
use akunu_program::{Counts, Device, PlanId, Program, RowTable};
use akunu_types::params::Row;

use super::file::EncoderFile;
use super::memory::{Memory, Room};
use super::text::EncoderText;
use crate::error::EngineError;

/// Rows of a step, about: enough to keep the products busy, and few enough that what a layer hands to the next stays in
/// the caches. A longer text is a step by itself.
const STEP_ROWS: usize = 512;
/// Texts of a step, at most.
const STEP_TEXTS: usize = 256;
/// The smallest room that a program is made for.
const MIN_ROWS: usize = 32;

/// The result for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// Its vector.
    Vector,
    /// The scores of the classifier.
    Scores,
}

/// What an encoder's lock holds.
pub(super) struct Runtime {
    file: Arc<EncoderFile>,
    device: Box<dyn Device>,
    memory: Option<(Room, Memory)>,
    /// A program for each number of rows, rounded up to a power of two.
    programs: HashMap<(u32, Wanted), PlanId>,
}

impl Runtime {
    pub fn new(file: Arc<EncoderFile>, device: Box<dyn Device>) -> Result<Runtime, EngineError> {
        Ok(Runtime {
            file,
            device,
            memory: None,
            programs: HashMap::new(),
        })
    }

    pub fn describe(&self) -> (&'static str, String) {
        (self.device.name(), self.device.description())
    }

    /// What comes of each text.
    pub fn run(
        &mut self,
        texts: &[EncoderText],
        wanted: Wanted,
    ) -> Result<Vec<Vec<f32>>, EngineError> {
        texts.iter().try_for_each(|text| self.check(text))?;
        let mut results = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (step, later) = rest.split_at(n_in_step(rest));
            self.step(step, wanted, &mut results)?;
            rest = later;
        }
        Ok(results)
    }

    /// The program of a step, for tests and traces.
    pub fn program(&mut self, rows: u32, texts: u32) -> Result<Program, EngineError> {
        self.make_room(Room { rows, texts })?;
        self.write_program(rows, Wanted::Vector)
    }

    /// Refuses a text that the model cannot read, before anything runs.
    fn check(&self, text: &EncoderText) -> Result<(), EngineError> {
        let (n, max) = (text.tokens.len(), self.file.max_tokens);
        if n == 0 {
            return Err(EngineError::EmptyText);
        }
        if n > max {
            return Err(EngineError::TextTooLong { found: n, max });
        }
        let vocab_size = self.file.config.vocab_size;
        match text.tokens.iter().find(|&&id| id >= vocab_size) {
            Some(&id) => Err(EngineError::UnknownToken { id, vocab_size }),
            None => Ok(()),
        }
    }

    /// Runs some texts together and appends what comes of each.
    fn step(
        &mut self,
        texts: &[EncoderText],
        wanted: Wanted,
        results: &mut Vec<Vec<f32>>,
    ) -> Result<(), EngineError> {
        let n_rows: usize = texts.iter().map(|text| text.tokens.len()).sum();
        let rows = n_rows.next_power_of_two().max(MIN_ROWS) as u32;
        self.make_room(Room {
            rows,
            texts: STEP_TEXTS as u32,
        })?;
        let plan = self.plan(rows, wanted)?;
        let memory = self.memory();
        let mut table = RowTable::new(memory.step, &[]);
        let pooling = match wanted {
            Wanted::Vector => self.file.pooling,
            Wanted::Scores => self.file.scored_vector(),
        };
        for (text, sequence) in texts.iter().zip(0..) {
            push(&mut table, text, sequence, pooling);
        }
        let config = &self.file.config;
        let (buffer, width) = match wanted {
            Wanted::Vector => (memory.pooled, config.dim),
            Wanted::Scores => (memory.scores, config.n_labels()),
        };
        let checked = table
            .check_texts()
            .map_err(akunu_program::DeviceError::from)?;
        self.device.run(plan, Some(&checked))?;
        let mut numbers = vec![0f32; texts.len() * width as usize];
        self.device
            .read(buffer, 0, bytemuck::cast_slice_mut(&mut numbers))?;
        results.extend(numbers.chunks_exact(width as usize).map(<[f32]>::to_vec));
        Ok(())
    }

    /// Memory for so many rows and texts. What there was for fewer goes, and the programs that name it.
    fn make_room(&mut self, wanted: Room) -> Result<(), EngineError> {
        let has = self
            .memory
            .as_ref()
            .map_or(Room { rows: 0, texts: 0 }, |(room, _)| *room);
        if wanted.rows <= has.rows && wanted.texts <= has.texts {
            return Ok(());
        }
        for (_, plan) in self.programs.drain() {
            self.device.unload(plan);
        }
        if let Some((_, memory)) = self.memory.take() {
            memory.release(self.device.as_mut());
        }
        let room = Room {
            rows: wanted.rows.max(has.rows),
            texts: wanted.texts.max(has.texts),
        };
        let memory = Memory::allocate(&self.file, room, self.device.as_mut())?;
        self.memory = Some((room, memory));
        Ok(())
    }

    fn memory(&self) -> &Memory {
        match &self.memory {
            Some((_, memory)) => memory,
            None => unreachable!("a step makes room first"),
        }
    }

    fn plan(&mut self, rows: u32, wanted: Wanted) -> Result<PlanId, EngineError> {
        if let Some(&plan) = self.programs.get(&(rows, wanted)) {
            return Ok(plan);
        }
        let program = self.write_program(rows, wanted)?;
        let plan = self.device.load(&program)?;
        self.programs.insert((rows, wanted), plan);
        Ok(plan)
    }

    fn write_program(&self, rows: u32, wanted: Wanted) -> Result<Program, EngineError> {
        let memory = self.memory();
        let (file, places) = (&self.file, memory.places());
        let mut builder = memory.builder(&file.config);
        builder.layers(&file.weights, &memory.layers(file));
        match wanted {
            Wanted::Vector => builder.pool(&file.weights, file.pooling, places.pooled),
            Wanted::Scores => builder.scores(&file.weights, places),
        }
        Ok(Program {
            ops: builder.ops(),
            step: Some(memory.step),
            room: Counts {
                singles: rows,
                run: 0,
                outputs: rows.min(memory.step.n_sequences),
            },
        })
    }
}

/// How many of these texts are a step: as many as fit, and at least one.
fn n_in_step(texts: &[EncoderText]) -> usize {
    let mut n_rows = 0;
    let fits = texts.iter().take(STEP_TEXTS).take_while(|text| {
        n_rows += text.tokens.len();
        n_rows <= STEP_ROWS
    });
    fits.count().max(1)
}

/// The rows of a text, and the one that stands for it.
fn push(table: &mut RowTable, text: &EncoderText, sequence: u32, pooling: Pooling) {
    let length = text.tokens.len() as u32;
    let first = table.rows().len() as u32;
    for (&token, position) in text.tokens.iter().zip(0..) {
        let row = Row::of_text(sequence, position, length);
        let row = if (position as usize) < text.n_first {
            row
        } else {
            row.second()
        };
        table.push_silent(row, token);
    }
    table.push_output(match pooling {
        Pooling::Mean | Pooling::First => first,
        Pooling::Last => first + length - 1,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n_tokens: usize) -> EncoderText {
        EncoderText {
            tokens: vec![7; n_tokens],
            n_first: n_tokens,
        }
    }

    /// Steps that are too large would need memory without bound; an endless loop would follow from a step of no text.
    #[test]
    fn a_step_is_as_many_texts_as_fit_and_at_least_one() {
        assert_eq!(n_in_step(&[text(STEP_ROWS + 1), text(1)]), 1);
        assert_eq!(n_in_step(&[text(STEP_ROWS - 1), text(1), text(1)]), 2);
        assert_eq!(n_in_step(&vec![text(1); 2 * STEP_TEXTS]), STEP_TEXTS);
    }
}
