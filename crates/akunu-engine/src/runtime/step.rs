//! Steps: rows are put together, checked and submitted.

use akunu_program::{Choose, DeviceError, Program, Ticket};
use akunu_types::params::Row;

use super::host::StepMasks;
use super::kind::Kind;
use super::sizes::cache_bytes;
use super::state::{Runtime, Seat};
use super::states::RUN_STATES;
use crate::adapter::Adapters;
use crate::builder::{Keys, shift};
use crate::cancel::CancelFlag;
use crate::error::EngineError;
use crate::guesses::Tree;
use crate::rule::Rule;
use crate::sequence::Sequence;

/// An output of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputAt {
    /// Submissions with outputs up to this one.
    submission: u64,
    output: usize,
}

impl OutputAt {
    /// An output of the same submission, `n` after this one.
    pub fn after(self, n: usize) -> OutputAt {
        OutputAt {
            output: self.output + n,
            ..self
        }
    }
}

impl Runtime {
    /// Whether the sequence still has its seat.
    pub(super) fn is_seated(&self, sequence: &Sequence) -> bool {
        let seat = self.seats.get(sequence.seat as usize);
        seat.is_some_and(|seat| seat.owner == sequence.id)
    }

    /// Gives the sequence a seat in this step: its own, a free one, or that of whoever was idle longest.
    pub(super) fn sit_down(&mut self, sequence: &mut Sequence) -> Result<(), EngineError> {
        if !self.is_seated(sequence) {
            let idle = |(_, seat): &(usize, &Seat)| seat.owner == 0 || seat.last_used < self.step;
            let seats = self.seats.iter().enumerate().filter(idle);
            let Some((at, _)) = seats.min_by_key(|(_, seat)| (seat.owner != 0, seat.last_used))
            else {
                unreachable!("a step begins with as many seats as it has sequences");
            };
            self.clear_seat(at);
            sequence.seat = at as u32;
            self.seats[at].owner = sequence.id;
            for (kind, pages) in sequence.pages.iter().enumerate() {
                for (index, page) in pages.iter().enumerate().filter(|(_, page)| page.is_some()) {
                    self.table
                        .set_page(kind, sequence.seat, index as u32, *page);
                }
            }
            self.write_history(sequence.seat, 0, &sequence.tokens)?;
            sequence.known = sequence.tokens.len();
            self.write_rule(sequence)?;
            self.write_factors(sequence)?;
        }
        self.seats[sequence.seat as usize].last_used = self.step;
        self.active_adapters |= sequence.adapters().bits();
        self.is_scored |= sequence.rule.words.n_scores > 0;
        Ok(())
    }

    fn clear_seat(&mut self, seat: usize) {
        self.seats[seat].owner = 0;
        for (kind, map) in self.memory.maps.iter().enumerate() {
            for index in 0..map.table_stride {
                if self.table.page(kind, seat as u32, index).is_some() {
                    self.table.set_page(kind, seat as u32, index, None);
                }
            }
        }
    }

    /// Leaves the seat, so that another sequence finds it at once.
    pub fn leave_seat(&mut self, sequence: &mut Sequence) {
        if self.is_seated(sequence) {
            self.clear_seat(sequence.seat as usize);
        }
    }

    /// How the tokens of a sequence are chosen from now on.
    pub fn set_rule(&mut self, sequence: &mut Sequence, rule: &Rule) -> Result<(), EngineError> {
        if sequence.rule != *rule {
            sequence.rule = rule.clone();
            if self.is_seated(sequence) {
                self.write_rule(sequence)?;
            }
        }
        Ok(())
    }

    /// Which adapters a sequence has from now on. What was computed with others is forgotten.
    pub fn set_adapters(&mut self, sequence: &mut Sequence, adapters: &Adapters) {
        if sequence.adapters() != adapters {
            self.truncate(sequence, 0);
            self.leave_seat(sequence);
            sequence.set_adapters(adapters.clone());
        }
    }

    /// Writes tokens to the history, as far as it keeps them.
    pub(super) fn write_history(
        &mut self,
        seat: u32,
        first: usize,
        tokens: &[u32],
    ) -> Result<(), EngineError> {
        let stride = self.memory.step.history_stride as usize;
        let skipped = tokens.len().saturating_sub(stride);
        let (mut first, mut tokens) = (first + skipped, &tokens[skipped..]);
        while !tokens.is_empty() {
            let at = first % stride;
            let n = tokens.len().min(stride - at);
            let offset = 4 * (seat as usize * stride + at);
            let bytes = bytemuck::cast_slice(&tokens[..n]);
            self.device.write(self.memory.step.history, offset, bytes)?;
            (first, tokens) = (first + n, &tokens[n..]);
        }
        Ok(())
    }

    /// Begins a step of some sequences, without rows.
    pub fn begin(&mut self, n_sequences: usize) -> Result<(), EngineError> {
        self.keep_chains();
        if n_sequences > self.seats.len() {
            let seats = n_sequences.next_power_of_two() as u32;
            self.resize(seats, self.memory.step.row_capacity)?;
        }
        self.step += 1;
        self.is_scored = false;
        self.active_adapters = 0;
        self.has_images = false;
        self.table.clear_rows();
        Ok(())
    }

    /// The number of the last step that was begun.
    pub fn last_step(&self) -> u64 {
        self.step
    }

    /// Where the logits of an output of the last submission are, until the next one.
    pub fn output(&self, output: usize) -> OutputAt {
        OutputAt {
            submission: self.n_with_outputs,
            output,
        }
    }

    /// The logits of an output, unless others have been written in their place.
    pub fn logits_at(&self, at: OutputAt) -> Result<Option<Vec<f32>>, EngineError> {
        if at.submission != self.n_with_outputs {
            return Ok(None);
        }
        let mut logits = vec![0f32; self.vocab_size() as usize];
        self.read_logits(at.output, &mut logits)?;
        Ok(Some(logits))
    }

    /// Adds the next tokens of a sequence, after all that is cached, and guesses of what follows them; the logits of the
    /// last token and of all guesses are wanted. Returns the first of those outputs.
    pub fn push_next(
        &mut self,
        sequence: &mut Sequence,
        pending: &[u32],
        guesses: Option<&Tree>,
    ) -> Result<usize, EngineError> {
        self.sit_down(sequence)?;
        let first = sequence.cached;
        let tokens: Vec<u32> = (pending.iter().copied())
            .chain(guesses.into_iter().flat_map(Tree::tokens))
            .collect();
        let end = first + tokens.len();
        // What the device chose itself it has noted itself.
        let known = sequence.known.clamp(first, end);
        if known < end {
            self.write_history(sequence.seat, known, &tokens[known - first..])?;
            // Guesses among them may be wrong.
            sequence.known = sequence.known.max(first + 1);
        }
        let states = self.next_states(sequence, pending.len(), guesses)?;
        let first_output = self.n_outputs();
        let offset = self.position_offset(sequence, first);
        for (at, &token) in tokens.iter().enumerate() {
            let slot = (first + at) as u32;
            let guess = at.checked_sub(pending.len());
            let hidden = guess.zip(guesses).map_or(0, |(at, tree)| tree.hidden(at));
            let [from, to] = states[at];
            let row = Row::in_tree(sequence.seat, slot, hidden).with_states(from, to);
            let row = row.earlier(offset).alone();
            if at + 1 < pending.len() {
                self.table.push_silent(row, token);
            } else {
                self.table.push_single(row, token);
            }
        }
        Ok(first_output)
    }

    /// Moves the guesses that were right to where their text has them, behind the pending tokens of the last step. `chosen`
    /// are the tokens that follow those.
    pub fn keep_branch(
        &mut self,
        sequence: &mut Sequence,
        n_pending: usize,
        path: &[usize],
        chosen: &[u32],
    ) -> Result<(), EngineError> {
        self.keep_right_states(sequence, path);
        let base = sequence.cached + n_pending;
        let nodes: Vec<(usize, usize)> = path.iter().copied().enumerate().collect();
        let mut has_moved = false;
        for run in nodes.chunk_by(|a, b| a.1 + 1 == b.1) {
            let (to, from) = run[0];
            if from > to {
                let moved = [base + to, from - to, run.len()].map(|n| n as u32);
                self.move_down(sequence.seat, moved, Keys::AsTheyAre)?;
                has_moved = true;
            }
        }
        if has_moved {
            // The rows of a branch have noted their tokens elsewhere.
            self.write_history(sequence.seat, base, chosen)?;
        }
        Ok(())
    }

    /// Adds tokens of a prompt, after all that is cached.
    pub fn push_run(&mut self, sequence: &mut Sequence, tokens: &[u32]) -> Result<(), EngineError> {
        self.sit_down(sequence)?;
        let first = sequence.cached;
        self.write_history(sequence.seat, first, tokens)?;
        sequence.known = first + tokens.len();
        let states = self.run_states(sequence, tokens.len())?;
        let first_row = self.table.rows().len();
        for (slot, &token) in (first..).zip(tokens) {
            let [from, to] = states.of(slot, slot == first);
            let row = self.row_at(sequence, slot).with_states(from, to);
            self.table.push_run(row, token);
        }
        self.write_images(sequence, first..first + tokens.len(), first_row)
    }

    /// Outputs of the rows that are there.
    pub fn n_outputs(&self) -> usize {
        self.table.counts().outputs as usize
    }

    /// Wants the logits of the row that was added last.
    pub fn want_last(&mut self) {
        let last = self.table.rows().len() as u32 - 1;
        self.table.push_output(last);
    }

    /// Wants the logits of these rows, and of no others.
    pub fn want_outputs(&mut self, rows: impl IntoIterator<Item = u32>) {
        self.table.set_outputs(rows);
    }

    /// Checks the rows and starts a program with them, `steps` times.
    pub fn submit(&mut self, kind: Kind, steps: u32) -> Result<Ticket, EngineError> {
        let counts = self.table.counts();
        let is_scored = self.is_scored && kind.may_be_scored();
        let device = self.device.as_mut();
        let has_grown = self
            .memory
            .grow_outputs(&self.model, counts.outputs, device)?;
        if has_grown | (is_scored && self.memory.want_scores(&self.model, device)?) {
            self.programs.unload_all(self.device.as_mut());
        }
        let plan = self.program(kind, counts)?;
        if counts.outputs > 0 {
            self.logits_of = None;
            self.n_with_outputs += 1;
        }
        let step = match kind.uses_pages() {
            true => self.table.check(steps),
            false => self.table.check_outputs(),
        };
        let step = step.map_err(DeviceError::from)?;
        match self.device.submit(plan, Some(&step)) {
            Ok(ticket) => {
                self.table.submitted(steps, kind.advances());
                Ok(ticket)
            }
            Err(error) => {
                self.table.distrust();
                Err(error.into())
            }
        }
    }

    /// Waits for a submission.
    pub fn wait(&mut self, ticket: Ticket) -> Result<(), EngineError> {
        self.device
            .wait(ticket)
            .inspect_err(|_| self.table.distrust())?;
        self.check_routers()
    }

    /// Refuses a step in which a router had logits that are not finite.
    fn check_routers(&mut self) -> Result<(), EngineError> {
        if !self.model.has_experts {
            return Ok(());
        }
        let (fault, mut layer) = (self.memory.fault, [0u32]);
        self.device
            .read(fault, 0, bytemuck::cast_slice_mut(&mut layer))?;
        let Some(layer) = layer[0].checked_sub(1) else {
            return Ok(());
        };
        self.device.write(fault, 0, &[0; 4])?;
        self.table.distrust();
        Err(EngineError::Router {
            path: self.model.path.clone(),
            layer,
        })
    }

    /// Starts a program and waits for it.
    pub fn run(&mut self, kind: Kind) -> Result<(), EngineError> {
        let ticket = self.submit(kind, 1)?;
        self.wait(ticket)
    }

    /// What runs from now on ends with [`DeviceError::Stopped`] as soon as this flag is set, on a device that can stop.
    pub fn stop_when(&mut self, cancel: Option<&CancelFlag>) {
        self.device.stop_when(cancel.map(CancelFlag::shared));
    }

    /// Runs a piece of a prompt through the layers, and keeps its logits if they are wanted. With `cancel` it ends early; the
    /// sequence is then as before, as after every other error.
    pub fn read_prompt(
        &mut self,
        sequence: &mut Sequence,
        tokens: &[u32],
        kind: Kind,
        cancel: &CancelFlag,
    ) -> Result<(), EngineError> {
        self.reserve(sequence, sequence.cached + tokens.len())?;
        self.reserve_states(sequence, RUN_STATES)?;
        self.begin(1)?;
        self.push_run(sequence, tokens)?;
        if matches!(kind, Kind::Logits | Kind::Hidden) {
            self.want_last();
        }
        self.stop_when(Some(cancel));
        let ran = self.run(kind);
        self.stop_when(None);
        if ran.is_err() {
            // The history of its seat has tokens that were not read.
            self.leave_seat(sequence);
        }
        ran?;
        self.stored(sequence, tokens);
        if kind == Kind::Logits {
            self.check_last_state(sequence)?;
            self.logits_of = Some((sequence.id, sequence.tokens.len()));
        }
        Ok(())
    }

    /// Whether the logits after the last token of this sequence are there.
    pub fn has_logits(&self, sequence: &Sequence) -> bool {
        self.logits_of == Some((sequence.id, sequence.tokens.len()))
    }

    /// Chooses the token after the last one from the logits that are there, as far as masks allow. A penalty changes them.
    pub fn choose(
        &mut self,
        sequence: &mut Sequence,
        how: Choose,
        masks: &StepMasks,
    ) -> Result<u32, EngineError> {
        let last = sequence.tokens[sequence.tokens.len() - 1];
        self.begin(1)?;
        self.sit_down(sequence)?;
        let row = Row::at(sequence.seat, sequence.tokens.len() as u32 - 1);
        self.table.push_single(row, last);
        self.choose_masked(how, masks)?;
        sequence.known = sequence.tokens.len() + 1;
        let mut chosen = [0];
        self.read_tokens(&mut chosen)?;
        Ok(chosen[0])
    }

    /// What the last step chose for its outputs.
    pub fn read_tokens(&self, into: &mut [u32]) -> Result<(), EngineError> {
        let bytes = bytemuck::cast_slice_mut(into);
        Ok(self.device.read(self.memory.step.tokens, 0, bytes)?)
    }

    /// The logits of an output of the last step.
    pub fn read_logits(&self, output: usize, into: &mut [f32]) -> Result<(), EngineError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        let row = 4 * self.model.config.vocab_size as usize;
        Ok(self
            .device
            .read(self.memory.outputs.logits, output * row, bytes)?)
    }

    /// The normalised residual stream of the first output of the last step.
    pub fn read_hidden(&self) -> Result<Vec<f32>, EngineError> {
        let mut hidden = vec![0f32; self.model.config.dim as usize];
        let bytes = bytemuck::cast_slice_mut(&mut hidden);
        self.device.read(self.memory.outputs.x, 0, bytes)?;
        Ok(hidden)
    }

    /// Drops `shift` tokens of a sequence after the first `keep`; those after them move down. All its pages are there.
    pub fn shift(
        &mut self,
        sequence: &mut Sequence,
        keep: usize,
        shift: usize,
    ) -> Result<(), EngineError> {
        let cached = sequence.cached;
        // Every page that changes becomes the sequence's own.
        sequence.cached = keep;
        let reserved = self.reserve(sequence, cached);
        sequence.cached = cached;
        reserved?;
        self.begin(1)?;
        self.sit_down(sequence)?;
        let moved = [keep, shift, cached - keep - shift].map(|n| n as u32);
        let mut tokens = sequence.tokens.clone();
        tokens.drain(keep..keep + shift);
        // A shift that fails halfway leaves pages that fit neither the old tokens nor the new ones.
        let old = std::mem::take(&mut sequence.tokens);
        sequence.replace(old, keep, keep.min(sequence.pure));
        self.move_down(sequence.seat, moved, Keys::Turned)?;
        sequence.replace(tokens, cached - shift, keep.min(sequence.pure));
        self.drop_pages_after(sequence);
        self.write_history(sequence.seat, 0, &sequence.tokens)?;
        sequence.known = sequence.tokens.len();
        Ok(())
    }

    /// Moves `len` slots of a seat's sequence from `keep + dropped` on down to `keep`, in every layer.
    fn move_down(
        &mut self,
        seat: u32,
        [keep, dropped, len]: [u32; 3],
        keys: Keys,
    ) -> Result<(), EngineError> {
        let slots = [seat, keep, dropped, len];
        let program = Program {
            ops: shift(
                &self.model.weights,
                &self.memory.layers_and_mtp(&self.model.config),
                slots,
                keys,
            ),
            step: Some(self.memory.step),
            ..Program::default()
        };
        let plan = self.device.load(&program)?;
        let step = self
            .table
            .check_sequence(seat, keep..keep + dropped + len)
            .map_err(DeviceError::from);
        let ran = step.and_then(|step| self.device.run(plan, Some(&step)));
        self.device.unload(plan);
        match ran {
            Ok(()) => self.table.submitted(1, false),
            Err(_) => self.table.distrust(),
        }
        Ok(ran?)
    }

    /// The bytes of a layer's keys (0) or values (1) in one page of a sequence, (n_kv_heads, page, head_dim).
    pub fn read_page(
        &self,
        sequence: &Sequence,
        layer: usize,
        which: usize,
        index: usize,
    ) -> Result<Vec<u8>, EngineError> {
        let (slice, bytes) = self.page_place(sequence, layer, which, index);
        let mut page = vec![0; bytes];
        self.device.read(slice.buffer, slice.offset, &mut page)?;
        Ok(page)
    }

    /// Writes what [`Runtime::read_page`] reads.
    pub fn write_page(
        &mut self,
        sequence: &Sequence,
        layer: usize,
        which: usize,
        index: usize,
        page: &[u8],
    ) -> Result<(), EngineError> {
        let (slice, _) = self.page_place(sequence, layer, which, index);
        Ok(self.device.write(slice.buffer, slice.offset, page)?)
    }

    fn page_place(
        &self,
        sequence: &Sequence,
        layer: usize,
        which: usize,
        index: usize,
    ) -> (akunu_program::Slice, usize) {
        let Some(attention) = self.model.config.cached_attention().nth(layer) else {
            unreachable!("there are as many caches as layers with attention");
        };
        let mut kinds = self.memory.maps.iter();
        let kind = kinds.position(|map| map.window == attention.window);
        let pages = &sequence.pages[kind.unwrap_or(0)];
        let page = pages[index].unwrap_or(0) as usize;
        let cache = self.memory.caches[layer];
        let bytes = cache_bytes(attention, self.model.kv, 1);
        let slice = akunu_program::Slice {
            buffer: [cache.k, cache.v][which],
            offset: page * bytes,
        };
        (slice, bytes)
    }
}
