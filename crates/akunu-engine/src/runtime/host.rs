//! What the host does to logits between the layers and the choice: masks of grammars, and the caller's own rules.

use akunu_program::{Choose, Masks};

use super::kind::Kind;
use super::state::Runtime;
use crate::error::EngineError;

/// The masks of a step, for the outputs that have one.
pub(crate) struct StepMasks {
    /// (masks, n_words).
    bits: Vec<u32>,
    n_words: usize,
    /// For each output its mask.
    rows: Vec<u32>,
}

impl StepMasks {
    /// No mask, for as many outputs.
    pub fn new(n_outputs: usize, vocab_size: u32) -> StepMasks {
        StepMasks {
            bits: Vec::new(),
            n_words: vocab_size.div_ceil(32) as usize,
            rows: vec![Masks::NONE; n_outputs],
        }
    }

    /// Sets the mask of an output. Rows of the embedding beyond the end of the mask, which are no tokens, are forbidden.
    pub fn put(&mut self, output: usize, bits: &[u32]) {
        let mask = self.bits.len();
        self.rows[output] = (mask / self.n_words) as u32;
        let bits = &bits[..bits.len().min(self.n_words)];
        self.bits.extend_from_slice(bits);
        self.bits.resize(mask + self.n_words, 0);
    }
}

impl Runtime {
    /// Chooses tokens for the outputs of the last step, whose logits are there, from what the masks allow.
    pub fn choose_masked(&mut self, how: Choose, masks: &StepMasks) -> Result<(), EngineError> {
        if masks.bits.is_empty() {
            return self.run(Kind::OnlyChoice(how));
        }
        let to = self.memory.outputs.masks;
        let lists = [(to.bits, &masks.bits), (to.rows, &masks.rows)];
        for (buffer, words) in lists {
            self.device.write(buffer, 0, bytemuck::cast_slice(words))?;
        }
        self.run(Kind::MaskedChoice(how))
    }

    /// Changes the logits of an output of the last step.
    pub fn change_logits(
        &mut self,
        output: usize,
        change: impl FnOnce(&mut [f32]),
    ) -> Result<(), EngineError> {
        let mut logits = vec![0f32; self.model.config.vocab_size as usize];
        self.read_logits(output, &mut logits)?;
        change(&mut logits);
        let offset = 4 * output * logits.len();
        let bytes = bytemuck::cast_slice(&logits);
        Ok(self
            .device
            .write(self.memory.outputs.logits, offset, bytes)?)
    }
}
