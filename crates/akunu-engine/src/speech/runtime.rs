//! A speech model on its device: windows are heard, prompts are read.
//!
//! There is room for several windows. Each has its own keys and values; a step reads the prompt of one window, or one token
//! of each of several, for which the weights are read once ([`chain`](super::chain)).

use std::collections::HashMap;

use akunu_program::{Choose, Counts, Device, DeviceError, PlanId, Program, RowTable, Slice};
use akunu_types::params::Row;
use half::f16;

use super::align::AlignmentHead;
use super::memory::Memory;
use super::rules::SpeechRules;
use super::weights::BoundSpeech;
use crate::error::EngineError;

/// The device, and all that lies on it.
pub(super) struct Runtime {
    model: BoundSpeech,
    rules: SpeechRules,
    pub(super) memory: Memory,
    pub(super) device: Box<dyn Device>,
    audio_rows: RowTable,
    pub(super) text_rows: RowTable,
    /// The program of the encoder for each window.
    encoders: HashMap<u32, PlanId>,
    /// The programs of the decoder, for numbers of rows that are rounded up to powers of two.
    decoders: HashMap<(u32, Kind), PlanId>,
    /// Tokens of each window whose keys and values are there.
    n_read: Vec<u32>,
}

/// What a program of the decoder does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Reads some tokens of one window, in a row.
    Prompt,
    /// Reads one token of each of several windows and chooses the next ones: a round of a chain.
    Chain(Choose),
}

/// The rows of the decoder's tokens, with all pages of each window.
fn text_rows(memory: &Memory) -> RowTable {
    let mut rows = RowTable::new(memory.text_step, &[memory.pages]);
    let stride = memory.pages.table_stride;
    for window in 0..memory.n_windows {
        for page in 0..stride {
            rows.set_page(0, window, page, Some(window * stride + page));
        }
    }
    rows
}

impl Runtime {
    pub fn new(
        model: BoundSpeech,
        rules: SpeechRules,
        mut device: Box<dyn Device>,
    ) -> Result<Runtime, EngineError> {
        let memory = Memory::allocate(&model, 1, &rules, device.as_mut())?;
        Ok(Runtime {
            audio_rows: RowTable::new(memory.audio_step, &[]),
            text_rows: text_rows(&memory),
            model,
            rules,
            memory,
            device,
            encoders: HashMap::new(),
            decoders: HashMap::new(),
            n_read: vec![0],
        })
    }

    /// Makes room for as many windows. What was heard before is forgotten where there was room for fewer.
    pub fn make_room(&mut self, n_windows: u32) -> Result<(), EngineError> {
        if n_windows <= self.memory.n_windows {
            return Ok(());
        }
        let device = self.device.as_mut();
        let memory = Memory::allocate(&self.model, n_windows, &self.rules, device)?;
        let plans = self.encoders.drain().map(|(_, plan)| plan);
        let plans = plans.chain(self.decoders.drain().map(|(_, plan)| plan));
        plans.for_each(|plan| device.unload(plan));
        std::mem::replace(&mut self.memory, memory).release(device);
        self.audio_rows = RowTable::new(self.memory.audio_step, &[]);
        self.text_rows = text_rows(&self.memory);
        self.n_read = vec![0; n_windows as usize];
        Ok(())
    }

    /// Hears a window: `spectrogram` is (2 * n_audio_positions, n_mels).
    pub fn listen(&mut self, window: u32, spectrogram: &[f32]) -> Result<(), EngineError> {
        let encoder = &self.model.encoder;
        let (n, frame) = (encoder.n_positions, 4 * encoder.n_mels as usize);
        debug_assert_eq!(4 * spectrogram.len(), 2 * n as usize * frame);
        let bytes = bytemuck::cast_slice(spectrogram);
        let to = self.memory.signal.spectrogram;
        self.device.write(to, frame, bytes)?;
        let plan = self.encoder(window)?;
        self.audio_rows.clear_rows();
        for position in 0..n {
            self.audio_rows.push_run(Row::of_text(0, position, n), 0);
        }
        let step = self.audio_rows.check_texts().map_err(DeviceError::from)?;
        self.device.run(plan, Some(&step))?;
        self.keep(window, 0);
        Ok(())
    }

    /// Forgets the tokens of a window from number `n_tokens` on.
    pub fn keep(&mut self, window: u32, n_tokens: usize) {
        let n_read = &mut self.n_read[window as usize];
        *n_read = (*n_read).min(n_tokens as u32);
    }

    /// Reads further tokens of a window. Returns the logits after one of them, as the model made them; none if none are
    /// wanted.
    pub fn read(
        &mut self,
        window: u32,
        tokens: &[u32],
        output: Option<usize>,
    ) -> Result<Vec<f32>, EngineError> {
        let (n, n_read) = (tokens.len() as u32, self.n_read[window as usize]);
        self.check_room(n_read + n)?;
        let plan = self.decoder(n, Kind::Prompt)?;
        let table = &mut self.text_rows;
        table.clear_rows();
        for (&token, position) in tokens.iter().zip(n_read..) {
            let row = Row::at(window, position);
            if n == 1 {
                table.push_silent(row, token);
            } else {
                table.push_run(row, token);
            }
        }
        table.set_outputs(output.map(|at| at as u32));
        self.run(plan, 1, false)?;
        self.n_read[window as usize] += n;
        match output {
            Some(_) => self.logits(),
            None => Ok(Vec::new()),
        }
    }

    fn check_room(&self, needed: u32) -> Result<(), EngineError> {
        let context = self.model.decoder.context_length;
        if needed <= context {
            return Ok(());
        }
        let needed = needed as usize;
        Err(EngineError::ContextFull { needed, context })
    }

    /// Runs a program with the rows of the table, as many times, which may move them on.
    pub(super) fn run(
        &mut self,
        plan: PlanId,
        steps: u32,
        is_advanced: bool,
    ) -> Result<(), EngineError> {
        let table = &mut self.text_rows;
        let step = table.check(steps).map_err(DeviceError::from)?;
        let ran = self.device.run(plan, Some(&step));
        match ran {
            Ok(()) => table.submitted(steps, is_advanced),
            Err(_) => table.distrust(),
        }
        Ok(ran?)
    }

    fn logits(&self) -> Result<Vec<f32>, EngineError> {
        let mut logits = vec![0f32; self.model.decoder.vocab_size as usize];
        let bytes = bytemuck::cast_slice_mut(&mut logits);
        self.device.read(self.memory.logits, 0, bytes)?;
        Ok(logits)
    }

    /// The queries and keys of the heads that say when a token of a window is spoken, for all `n_tokens` of the last
    /// [`Runtime::read`].
    pub fn alignment_heads(
        &self,
        window: u32,
        heads: &[(u32, u32)],
        n_tokens: usize,
    ) -> Result<Vec<AlignmentHead>, EngineError> {
        let mut found = Vec::new();
        for &(layer, head) in heads {
            let Some(cross) = self.memory.cross().nth(layer as usize) else {
                continue;
            };
            let n_keys = cross.n_keys as usize;
            if head < self.model.n_heads() {
                found.push(AlignmentHead {
                    queries: self.head_rows::<f32>(cross.q, head, 0, n_tokens)?,
                    keys: self.head_rows::<f16>(cross.k, head, window as usize * n_keys, n_keys)?,
                    head_dim: self.model.decoder.max_head_dim() as usize,
                });
            }
        }
        Ok(found)
    }

    /// One head of some rows of a buffer, (rows, dim), whose numbers are of type `T`.
    fn head_rows<T: bytemuck::Pod + Into<f32>>(
        &self,
        buffer: akunu_program::Buffer,
        head: u32,
        first: usize,
        n: usize,
    ) -> Result<Vec<f32>, EngineError> {
        let decoder = &self.model.decoder;
        let (dim, head_dim) = (decoder.dim as usize, decoder.max_head_dim() as usize);
        let mut rows = vec![T::zeroed(); n * dim];
        let bytes = bytemuck::cast_slice_mut(&mut rows);
        self.device
            .read(buffer, size_of::<T>() * first * dim, bytes)?;
        let heads = rows.chunks_exact(dim);
        let heads = heads.flat_map(|row| &row[head as usize * head_dim..][..head_dim]);
        Ok(heads.map(|&number| number.into()).collect())
    }

    fn encoder(&mut self, window: u32) -> Result<PlanId, EngineError> {
        if let Some(&plan) = self.encoders.get(&window) {
            return Ok(plan);
        }
        let plan = self.device.load(&self.encoder_program(window))?;
        self.encoders.insert(window, plan);
        Ok(plan)
    }

    /// The program for as many rows.
    pub(super) fn decoder(&mut self, rows: u32, kind: Kind) -> Result<PlanId, EngineError> {
        let most = match kind {
            Kind::Prompt => self.model.decoder.context_length,
            Kind::Chain(_) => self.memory.n_windows,
        };
        let rows = rows.next_power_of_two().min(most);
        if let Some(&plan) = self.decoders.get(&(rows, kind)) {
            return Ok(plan);
        }
        let plan = self.device.load(&self.decoder_program(rows, kind))?;
        self.decoders.insert((rows, kind), plan);
        Ok(plan)
    }

    /// What hearing a window does.
    pub fn encoder_program(&self, window: u32) -> Program {
        let (model, memory) = (&self.model, &self.memory);
        let mut builder = memory.audio_builder(model);
        builder.listen(model, memory.signal, &memory.of_window(model, window));
        Program {
            ops: builder.ops(),
            step: Some(self.memory.audio_step),
            room: Counts {
                singles: 0,
                run: self.model.encoder.n_positions,
                outputs: 0,
            },
        }
    }

    /// What reading up to `rows` tokens does.
    pub fn decoder_program(&self, rows: u32, kind: Kind) -> Program {
        let (model, memory) = (&self.model.decoder, &self.memory);
        let mut builder = memory.text_builder(&self.model);
        builder.layers(model, &memory.layers);
        let [h, x] = [memory.output, memory.normalised_output].map(Slice::from);
        builder.hidden(model, [h, x]);
        builder.logits(model, x, memory.logits.into(), None);
        let outputs = match kind {
            Kind::Prompt => 1,
            Kind::Chain(how) => {
                let tokens = self.rules.tokens;
                builder.say(how, memory.spoken(), tokens, model.vocab_size);
                rows
            }
        };
        let is_run = kind == Kind::Prompt && rows > 1;
        let (singles, run) = if is_run { (0, rows) } else { (rows, 0) };
        Program {
            ops: builder.ops(),
            step: Some(self.memory.text_step),
            room: Counts {
                singles,
                run,
                outputs,
            },
        }
    }
}
