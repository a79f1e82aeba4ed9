//! A speech model on its device: windows are heard, tokens are read.

use std::collections::HashMap;

use akunu_arch::SpeechConfig;
use akunu_kernels::{Counts, Device, DeviceError, PlanId, Program, RowTable};
use akunu_types::params::Row;
use half::f16;

use super::align::AlignmentHead;
use super::graph::Graph;
use super::memory::{MAX_OUTPUTS, Memory};
use super::weights::SpeechWeights;
use crate::error::EngineError;

/// The device, and all that lies on it.
pub(super) struct Runtime {
    config: SpeechConfig,
    weights: SpeechWeights,
    memory: Memory,
    device: Box<dyn Device>,
    audio_rows: RowTable,
    text_rows: RowTable,
    encoder: Option<PlanId>,
    /// A program of the decoder for each number of rows, rounded up to a power of two.
    decoders: HashMap<u32, PlanId>,
    /// Tokens of the window whose keys and values are there.
    n_read: u32,
}

impl Runtime {
    pub fn new(
        config: SpeechConfig,
        weights: SpeechWeights,
        never_said: &[u32],
        mut device: Box<dyn Device>,
    ) -> Result<Runtime, EngineError> {
        let memory = Memory::allocate(&config, never_said, device.as_mut())?;
        let mut text_rows = RowTable::new(memory.text_step, &[memory.pages]);
        for page in 0..memory.pages.n_pages {
            text_rows.set_page(0, 0, page, Some(page));
        }
        Ok(Runtime {
            audio_rows: RowTable::new(memory.audio_step, &[]),
            text_rows,
            config,
            weights,
            memory,
            device,
            encoder: None,
            decoders: HashMap::new(),
            n_read: 0,
        })
    }

    /// Hears a window: `spectrogram` is (2 * n_audio_positions, n_mels).
    pub fn listen(&mut self, spectrogram: &[f32]) -> Result<(), EngineError> {
        let n = self.config.n_audio_positions;
        let frame = 4 * self.config.n_mels as usize;
        debug_assert_eq!(4 * spectrogram.len(), 2 * n as usize * frame);
        let bytes = bytemuck::cast_slice(spectrogram);
        self.device.write(self.memory.spectrogram, frame, bytes)?;
        let plan = self.encoder()?;
        self.audio_rows.clear_rows();
        for position in 0..n {
            self.audio_rows.push_run(Row::of_text(0, position, n), 0);
        }
        let step = self.audio_rows.check_texts().map_err(DeviceError::from)?;
        self.device.run(plan, Some(&step))?;
        self.n_read = 0;
        Ok(())
    }

    /// Forgets the tokens from number `n_tokens` on.
    pub fn keep(&mut self, n_tokens: usize) {
        self.n_read = self.n_read.min(n_tokens as u32);
    }

    /// Reads further tokens of the window. Returns the logits after each of `outputs`, counted among these tokens: those
    /// of the first without the tokens that are never said, those of the second as the model made them.
    pub fn read(
        &mut self,
        tokens: &[u32],
        outputs: &[usize],
    ) -> Result<Vec<Vec<f32>>, EngineError> {
        let (n, room) = (tokens.len() as u32, self.config.n_text_positions);
        if self.n_read + n > room || outputs.len() > MAX_OUTPUTS as usize {
            return Err(EngineError::ContextFull {
                needed: (self.n_read + n) as usize,
                context: room,
            });
        }
        let plan = self.decoder(n)?;
        let table = &mut self.text_rows;
        table.clear_rows();
        for (&token, position) in tokens.iter().zip(self.n_read..) {
            let row = Row::at(0, position);
            if n == 1 {
                table.push_silent(row, token);
            } else {
                table.push_run(row, token);
            }
        }
        table.set_outputs(outputs.iter().map(|&at| at as u32));
        let step = table.check(1).map_err(DeviceError::from)?;
        let ran = self.device.run(plan, Some(&step));
        match ran {
            Ok(()) => table.submitted(1, false),
            Err(_) => table.distrust(),
        }
        ran?;
        self.n_read += n;
        (0..outputs.len()).map(|at| self.logits(at)).collect()
    }

    fn logits(&self, output: usize) -> Result<Vec<f32>, EngineError> {
        let mut logits = vec![0f32; self.config.vocab_size as usize];
        let offset = 4 * output * logits.len();
        let bytes = bytemuck::cast_slice_mut(&mut logits);
        self.device.read(self.memory.logits, offset, bytes)?;
        Ok(logits)
    }

    /// The queries and keys of the heads that say when a token is spoken, for the tokens of the last [`Runtime::read`]
    /// from number `first` on.
    pub fn alignment_heads(
        &self,
        heads: &[(u32, u32)],
        first: usize,
        n_tokens: usize,
    ) -> Result<Vec<AlignmentHead>, EngineError> {
        let n_keys = self.config.n_audio_positions as usize;
        let mut found = Vec::new();
        for &(layer, head) in heads {
            let Some(cross) = self.memory.cross.get(layer as usize) else {
                continue;
            };
            if head < self.config.n_heads {
                found.push(AlignmentHead {
                    queries: self.head_rows::<f32>(cross.q, head, first, n_tokens)?,
                    keys: self.head_rows::<f16>(cross.k, head, 0, n_keys)?,
                    head_dim: self.config.head_dim() as usize,
                });
            }
        }
        Ok(found)
    }

    /// One head of some rows of a buffer, (rows, dim), whose numbers are of type `T`.
    fn head_rows<T: bytemuck::Pod + Into<f32>>(
        &self,
        buffer: akunu_kernels::Buffer,
        head: u32,
        first: usize,
        n: usize,
    ) -> Result<Vec<f32>, EngineError> {
        let (dim, head_dim) = (self.config.dim as usize, self.config.head_dim() as usize);
        let mut rows = vec![T::zeroed(); n * dim];
        let bytes = bytemuck::cast_slice_mut(&mut rows);
        self.device
            .read(buffer, size_of::<T>() * first * dim, bytes)?;
        let heads = rows.chunks_exact(dim);
        let heads = heads.flat_map(|row| &row[head as usize * head_dim..][..head_dim]);
        Ok(heads.map(|&number| number.into()).collect())
    }

    fn encoder(&mut self) -> Result<PlanId, EngineError> {
        if let Some(plan) = self.encoder {
            return Ok(plan);
        }
        let plan = self.device.load(&self.encoder_program())?;
        self.encoder = Some(plan);
        Ok(plan)
    }

    fn decoder(&mut self, rows: u32) -> Result<PlanId, EngineError> {
        let rows = rows.next_power_of_two().min(self.config.n_text_positions);
        if let Some(&plan) = self.decoders.get(&rows) {
            return Ok(plan);
        }
        let plan = self.device.load(&self.decoder_program(rows))?;
        self.decoders.insert(rows, plan);
        Ok(plan)
    }

    fn graph(&self) -> Graph<'_> {
        Graph {
            config: &self.config,
            weights: &self.weights,
            memory: &self.memory,
        }
    }

    /// What hearing a window does.
    pub fn encoder_program(&self) -> Program {
        Program {
            ops: self.graph().encoder(),
            step: Some(self.memory.audio_step),
            room: Counts {
                singles: 0,
                run: self.config.n_audio_positions,
                outputs: 0,
            },
        }
    }

    /// What reading up to `rows` tokens does.
    pub fn decoder_program(&self, rows: u32) -> Program {
        let room = if rows == 1 { (1, 0) } else { (0, rows) };
        Program {
            ops: self.graph().decoder(),
            step: Some(self.memory.text_step),
            room: Counts {
                singles: room.0,
                run: room.1,
                outputs: MAX_OUTPUTS,
            },
        }
    }
}
