//! One sequence in a step.

use crate::answer::Answer;
use crate::error::EngineError;
use crate::options::{Overflow, StopReason};
use crate::runtime::{Noted, OutputAt, Runtime, StepMasks};
use crate::session::{Session, Shifted};
use crate::speculation::Proposal;

/// Tokens that a sequence reads in a step beside others; more of them are read like a prompt.
pub(super) const MAX_NEXT: usize = 32;

/// A sequence that takes part.
pub(crate) struct Part<'a> {
    pub session: &'a mut Session,
    pub answer: &'a mut Answer,
    /// Guesses that this step checks.
    pub guess: Option<Proposal>,
    /// Those of them that were right, one after the other.
    pub right: Vec<usize>,
    /// Tokens that it knew before and read in this step.
    pub n_read: usize,
    /// What became of it in this step.
    pub outcome: Outcome,
}

/// What a step did for a sequence.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    /// Nothing: it waits for others, or has ended.
    #[default]
    None,
    /// A piece of its prompt was read.
    Read,
    /// Its first token was chosen from logits that were there: it takes part from the next step on.
    Began,
    /// Tokens were chosen, the last of them from these logits.
    Chosen(OutputAt),
    /// It failed by itself.
    Failed(EngineError),
}

impl<'a> Part<'a> {
    /// A sequence at the beginning of a step.
    pub fn new(session: &'a mut Session, answer: &'a mut Answer) -> Part<'a> {
        Part {
            session,
            answer,
            guess: None,
            right: Vec::new(),
            n_read: 0,
            outcome: Outcome::None,
        }
    }

    pub fn is_running(&self) -> bool {
        self.answer.is_running() && !matches!(self.outcome, Outcome::Failed(_))
    }

    /// Whether it has tokens to go on from.
    pub fn is_single(&self) -> bool {
        let has_next = !self.answer.pending.is_empty();
        self.is_running() && has_next && matches!(self.outcome, Outcome::None)
    }

    /// Whether it has a prompt to read.
    pub fn is_reader(&self) -> bool {
        self.is_running() && self.answer.pending.is_empty() && self.unread() > 0
    }

    /// The number of guesses of this step.
    pub fn n_guesses(&self) -> usize {
        self.guess.as_ref().map_or(0, |guess| guess.tree.len())
    }

    /// Rows of a single.
    pub fn n_rows(&self) -> usize {
        self.answer.pending.len() + self.n_guesses()
    }

    /// Whether a chain can go on behind `n` tokens that are being chosen.
    pub fn can_chain_after(&self, n: usize) -> bool {
        let has_room = self.session.context() as usize > self.session.tokens().len() + n;
        has_room && self.answer.can_chain()
    }

    /// Whether it wants another token after the next `n`, and nothing has to be read from the device before that one is computed.
    pub fn goes_on_after(&self, n: usize) -> bool {
        let has_mu = self.answer.rule.words.mirostat_tau > 0.0;
        let is_wanted = self.answer.wanted() > n && !self.answer.options.cancel.is_set();
        self.is_running() && is_wanted && !has_mu && self.can_chain_after(n)
    }

    /// Positions of the context that nothing is known for yet.
    pub fn room(&self) -> usize {
        let taken = self.session.sequence.cached + self.answer.pending.len();
        (self.session.context() as usize).saturating_sub(taken)
    }

    /// Tokens of its prompt that are still to be read.
    pub fn unread(&self) -> usize {
        self.answer
            .prompt
            .len()
            .saturating_sub(self.session.sequence.cached)
    }

    /// Tokens of its prompt for a step with room for this many; 0 if an image comes next that has to be read as a whole, and does
    /// not fit.
    pub fn piece(&self, room: usize) -> usize {
        let most = self.unread().min(room).min(self.session.chunk());
        let sequence = &self.session.sequence;
        match sequence.has_whole_images {
            true => sequence.images.whole_images(sequence.cached, most),
            false => most,
        }
    }

    /// Tokens of its prompt for a step without other sequences.
    pub fn lone_piece(&self) -> usize {
        let most = self.unread().min(self.session.chunk());
        self.session.sequence.whole_images(most)
    }

    /// Makes room for a step, or ends the answer.
    pub fn prepare(&mut self) {
        if !self.is_running() {
            return;
        }
        if self.answer.options.cancel.is_set() {
            return self.answer.end(StopReason::Cancelled);
        }
        if self.answer.wanted() == 0 && self.answer.queue.is_empty() {
            return self.answer.end(StopReason::MaxTokens);
        }
        let begun = self.begin();
        let ready = match self.outcome {
            Outcome::Began => begun,
            _ => begun.and_then(|()| self.make_room()),
        };
        if let Err(error) = ready {
            self.outcome = Outcome::Failed(error);
        }
    }

    /// The first step of an answer: what was read before gives the first token, or its last token is read again.
    fn begin(&mut self) -> Result<(), EngineError> {
        if !self.answer.pending.is_empty() {
            return Ok(());
        }
        if !self.answer.prompt.is_empty() {
            if self.session.sequence.cached == 0 {
                self.session.reuse(&self.answer.prompt);
            }
            return Ok(());
        }
        let model = self.session.model().clone();
        let mut runtime = model.runtime();
        let sequence = &mut self.session.sequence;
        runtime.set_rule(sequence, &self.answer.rule)?;
        if runtime.has_logits(sequence) {
            let mut masks = StepMasks::new(1, model.config().vocab_size);
            self.put_masks(0, &mut masks)?;
            self.apply_rules(&mut runtime, 0)?;
            let how = self.answer.choice();
            let token = runtime.choose(&mut self.session.sequence, how, &masks)?;
            self.note_outputs(&runtime, 0..1)?;
            self.outcome = Outcome::Began;
            return self.answer.chosen(&[token], self.room().saturating_sub(1));
        }
        drop(runtime);
        match self.session.take_last() {
            Ok(last) => self.answer.pending = vec![last],
            Err(content) => self.answer.prompt = content,
        }
        Ok(())
    }

    /// Makes room in a full context, or ends the answer. What a grammar has forced, and is too long for a step, becomes
    /// a prompt.
    fn make_room(&mut self) -> Result<(), EngineError> {
        let pending = &mut self.answer.pending;
        if pending.len() > MAX_NEXT {
            let mut content = self.session.sequence.content();
            content.tokens.append(pending);
            self.answer.prompt = content;
            return Ok(());
        }
        let needed = self.session.tokens().len() + pending.len();
        if pending.is_empty() || needed <= self.session.context() as usize {
            return Ok(());
        }
        let (shifted, keep) = match self.answer.options.overflow {
            Overflow::Stop => (Shifted::Nothing, 0),
            Overflow::Shift { keep } => (self.session.shift(keep)?, keep),
        };
        match shifted {
            Shifted::Moved { n_dropped } => self.answer.dropped(keep, n_dropped),
            Shifted::MustRead {
                n_dropped,
                mut content,
            } => {
                self.answer.dropped(keep, n_dropped);
                content.tokens.append(&mut self.answer.pending);
                self.session.reuse(&content);
                self.answer.prompt = content;
            }
            Shifted::Nothing if self.answer.queue.is_empty() => {
                self.answer.end(StopReason::ContextFull);
            }
            Shifted::Nothing => {}
        }
        Ok(())
    }

    /// The masks of its outputs, from `first` on, where its grammar has begun.
    pub fn put_masks(&mut self, first: usize, masks: &mut StepMasks) -> Result<(), EngineError> {
        let Some(guide) = self
            .answer
            .guide
            .as_mut()
            .filter(|guide| guide.is_running())
        else {
            return Ok(());
        };
        let Some(Proposal { tree, .. }) = &self.guess else {
            return guide.masks(&[], |bits| masks.put(first, bits));
        };
        let mut is_put = vec![false; 1 + tree.len()];
        for path in tree.branches() {
            let mut outputs = [0].into_iter().chain(path.iter().map(|node| 1 + node));
            guide.masks(&tree.tokens_of(&path), |bits| {
                let output = outputs.next().unwrap_or(0);
                if !std::mem::replace(&mut is_put[output], true) {
                    masks.put(first + output, bits);
                }
            })?;
        }
        Ok(())
    }

    /// Applies people's own rules to the logits of an output after all that is read. There are no guesses then.
    pub fn apply_rules(&self, runtime: &mut Runtime, output: usize) -> Result<(), EngineError> {
        let rules = &self.answer.options.rules;
        if rules.is_empty() {
            return Ok(());
        }
        let read = match self.answer.prompt.is_empty() {
            true => &self.session.sequence.tokens,
            false => &self.answer.prompt.tokens,
        };
        let tokens = [&read[..], &self.answer.pending].concat();
        runtime.change_logits(output, |logits| rules.apply(&tokens, logits))
    }

    /// Cuts guesses where the grammar, or the end of the answer, would not let them be chosen one after another.
    pub fn cut_guesses(&mut self) -> Result<(), EngineError> {
        let Some(mut guess) = self.guess.take() else {
            return Ok(());
        };
        let (answer, model) = (&mut *self.answer, self.session.model());
        let tokens: Vec<u32> = guess.tree.tokens().collect();
        guess
            .tree
            .retain(|node| !answer.is_end(model, tokens[node]));
        if let Some(guide) = answer.guide.as_mut() {
            let mut allowed = vec![false; guess.tree.len()];
            for path in guess.tree.branches() {
                let n = guide.count_allowed(&guess.tree.tokens_of(&path))?;
                path[..n].iter().for_each(|&node| allowed[node] = true);
            }
            guess.tree.retain(|node| allowed[node]);
        }
        self.guess = (!guess.tree.is_empty()).then_some(guess);
        Ok(())
    }

    /// Takes note of what else the choices from outputs of the last step have left: how likely their tokens were, and
    /// where mirostat is.
    pub fn note_outputs(
        &mut self,
        runtime: &Runtime,
        outputs: impl IntoIterator<Item = usize>,
    ) -> Result<(), EngineError> {
        let mut all = Noted::default();
        for output in outputs {
            let noted = runtime.read_noted(&self.session.sequence, output)?;
            all.scores.extend(noted.scores);
            all.mu = noted.mu;
        }
        self.note(all);
        Ok(())
    }

    /// The same of a chain.
    pub fn note(&mut self, noted: Noted) {
        self.answer.scored(noted.scores);
        if let Some(mu) = noted.mu {
            self.answer.rule.mu = mu;
            self.session.sequence.rule.mu = mu;
        }
    }

    /// Its pending tokens were read, and these were chosen, one after another; all but the last were read too.
    pub fn take(&mut self, runtime: &mut Runtime, chosen: &[u32], at: OutputAt) {
        let sequence = &mut self.session.sequence;
        self.n_read = self.answer.pending.len();
        runtime.stored(sequence, &self.answer.pending);
        runtime.stored(sequence, &chosen[..chosen.len() - 1]);
        self.chose(chosen, at);
    }

    /// These were chosen after all that was read, and the last of them is not read yet.
    pub fn chose(&mut self, chosen: &[u32], at: OutputAt) {
        let sequence = &mut self.session.sequence;
        sequence.known = sequence.cached + 1;
        let room = self.session.context() as usize - self.session.sequence.cached;
        self.outcome = match self.answer.chosen(chosen, room.saturating_sub(1)) {
            Ok(()) => Outcome::Chosen(at),
            Err(error) => Outcome::Failed(error),
        };
    }
}
