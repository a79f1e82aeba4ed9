//! The answer of one sequence: what is still to be read and chosen, what was returned, and when it ends.

use std::collections::VecDeque;

use akunu_program::Choose;

use crate::error::EngineError;
use crate::grammar::{Grammar, Guide};
use crate::images::{Content, Prompt};
use crate::logprobs::TokenLogprobs;
use crate::loops::LoopWatch;
use crate::model::Model;
use crate::options::{GenerateOptions, StopReason, Token};
use crate::rule::Rule;
use crate::session::Session;
use crate::speculation::{Drafter, Speculated};
use crate::text::AnswerText;

/// An answer on its way.
pub(crate) struct Answer {
    pub options: GenerateOptions,
    /// How its tokens are chosen.
    pub rule: Rule,
    /// Tokens of the sequence before its own.
    n_prompt: usize,
    text: AnswerText,
    loops: Option<LoopWatch>,
    /// What is to be in the session before the first token is chosen; empty once it has been read.
    pub prompt: Content,
    /// Tokens that the next step reads: their keys and values are not in the pages yet. The last one was chosen, or a
    /// grammar has forced it.
    pub pending: Vec<u32>,
    /// Where it is in its grammar.
    pub guide: Option<Guide>,
    /// Guesses of what comes next.
    pub drafter: Option<Drafter>,
    /// Chosen and not yet returned.
    pub queue: VecDeque<u32>,
    /// How likely tokens were, by their number in the answer.
    scores: VecDeque<(usize, TokenLogprobs)>,
    handed_out: usize,
    stop: Option<StopReason>,
}

/// What comes next of an answer.
pub(crate) enum Next {
    /// A token.
    Token(Token),
    /// The answer has ended.
    Ended(StopReason),
    /// More must be computed first.
    Nothing,
}

impl Answer {
    /// An answer after what the session holds.
    pub fn new(session: &Session, options: GenerateOptions) -> Result<Answer, EngineError> {
        if session.tokens().is_empty() {
            return Err(EngineError::NothingToContinue);
        }
        Answer::begin(session, Content::default(), options)
    }

    /// An answer after a prompt that is still to be read.
    pub fn to_prompt(
        session: &Session,
        prompt: Prompt,
        options: GenerateOptions,
    ) -> Result<Answer, EngineError> {
        let content = session.content_of(prompt)?;
        Answer::begin(session, content, options)
    }

    /// The same after content that was checked.
    pub fn to_content(
        session: &Session,
        content: Content,
        options: GenerateOptions,
    ) -> Result<Answer, EngineError> {
        session.check_prompt(&content.tokens)?;
        Answer::begin(session, content, options)
    }

    fn begin(
        session: &Session,
        prompt: Content,
        options: GenerateOptions,
    ) -> Result<Answer, EngineError> {
        let model = session.model();
        if options
            .grammar
            .as_ref()
            .is_some_and(|grammar| !grammar.is_of(model))
        {
            let path = model.path().to_path_buf();
            return Err(EngineError::GrammarModel { path });
        }
        let held = match prompt.is_empty() {
            true => session.tokens().len(),
            false => prompt.len(),
        };
        let n_prompt = options.n_prompt.unwrap_or(held);
        Ok(Answer {
            rule: Rule::new(&options, model.tokenizer(), n_prompt)?,
            n_prompt,
            loops: options.loop_window.map(LoopWatch::new).transpose()?,
            text: AnswerText::new(model.shared_tokenizer(), &options.stop),
            guide: options.grammar.as_ref().map(Grammar::guide),
            drafter: Drafter::new(&options, session)?,
            options,
            prompt,
            pending: Vec::new(),
            queue: VecDeque::new(),
            scores: VecDeque::new(),
            handed_out: 0,
            stop: None,
        })
    }

    /// Tokens of the sequence before those of the answer.
    pub fn n_prompt(&self) -> usize {
        self.n_prompt
    }

    /// Takes note that `n_dropped` tokens of the sequence after the first `keep` are gone.
    pub fn dropped(&mut self, keep: usize, n_dropped: usize) {
        if self.n_prompt > keep {
            self.n_prompt = keep.max(self.n_prompt.saturating_sub(n_dropped));
            self.rule.words.penalty_start = self.options.sampling.rule(self.n_prompt).penalty_start;
        }
    }

    /// Which kind of choice its tokens take.
    pub fn choice(&self) -> Choose {
        self.rule.choice(&self.options)
    }

    pub fn is_running(&self) -> bool {
        self.stop.is_none()
    }

    pub fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Ends the answer.
    pub fn end(&mut self, reason: StopReason) {
        self.stop = Some(reason);
    }

    /// Tokens that are still to be chosen.
    pub fn wanted(&self) -> usize {
        self.options
            .max_tokens
            .saturating_sub(self.handed_out + self.queue.len())
    }

    /// Whether a token that was chosen ends it.
    pub fn has_end(&self, model: &Model) -> bool {
        self.queue.iter().any(|&id| self.is_end(model, id))
    }

    /// Whether a token of this model ends it.
    pub fn is_end(&self, model: &Model, id: u32) -> bool {
        !self.options.ignore_end && model.tokenizer().end_ids().binary_search(&id).is_ok()
    }

    /// Whether the host has something to say between the logits and the choice.
    pub fn is_hosted(&self) -> bool {
        !self.options.rules.is_empty() || self.guide.as_ref().is_some_and(Guide::is_running)
    }

    /// Whether nothing is known of the next token but by its logits, so that several rounds can go in one submission.
    pub fn can_chain(&self) -> bool {
        self.pending.len() == 1 && self.guide.is_none() && self.options.rules.is_empty()
    }

    /// Takes note of how likely the next tokens were that will be [`chosen`](Answer::chosen).
    pub fn scored(&mut self, scores: impl IntoIterator<Item = TokenLogprobs>) {
        let first = self.handed_out + self.queue.len();
        self.scores.extend((first..).zip(scores));
    }

    /// Takes note of tokens that were chosen, of which the last one is still to be read, and of those that the grammar
    /// forces after them: at most `room`.
    pub fn chosen(&mut self, tokens: &[u32], room: usize) -> Result<(), EngineError> {
        self.pending.clear();
        self.pending.extend(tokens.last());
        self.queue.extend(tokens);
        let most = self.wanted().min(room);
        if let Some(guide) = &mut self.guide {
            guide.take(tokens)?;
            let forced = guide.force(most)?;
            self.pending.extend(&forced);
            self.queue.extend(forced);
        }
        Ok(())
    }

    /// Where a fork with these options is in its grammar, if it has the same one.
    pub fn guide_for(&self, options: &GenerateOptions) -> Option<Guide> {
        let (ours, theirs) = (self.options.grammar.as_ref()?, options.grammar.as_ref()?);
        ours.is(theirs).then(|| self.guide.clone()).flatten()
    }

    /// How many tokens were guessed, and how many of the guesses were right.
    pub fn speculated(&self) -> Speculated {
        let drafter = self.drafter.as_ref();
        drafter.map_or_else(Speculated::default, |drafter| drafter.stats)
    }

    /// The next token, if one has been chosen; or the end.
    pub fn next(&mut self, model: &Model) -> Next {
        if let Some(reason) = self.stop {
            return Next::Ended(reason);
        }
        let reason = if self.options.cancel.is_set() {
            // Tokens that were computed ahead are rolled back: nobody wants them any more.
            Some(StopReason::Cancelled)
        } else if self.text.is_stopped() {
            Some(StopReason::StopText)
        } else if self.loops.as_ref().is_some_and(LoopWatch::has_looped) {
            Some(StopReason::Loop)
        } else if self.handed_out >= self.options.max_tokens {
            Some(StopReason::MaxTokens)
        } else if self.queue.front().is_some_and(|&id| self.is_end(model, id)) {
            Some(StopReason::EndToken)
        } else if self.queue.is_empty() && self.guide.as_ref().is_some_and(Guide::has_ended) {
            Some(StopReason::GrammarEnd)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.end(reason);
            return Next::Ended(reason);
        }
        let Some(id) = self.queue.pop_front() else {
            return Next::Nothing;
        };
        let scores = &mut self.scores;
        let is_scored = scores.front().is_some_and(|(at, _)| *at == self.handed_out);
        let logprobs = is_scored.then(|| scores.pop_front()).flatten();
        self.handed_out += 1;
        if let Some(loops) = &mut self.loops {
            loops.push(id);
        }
        Next::Token(Token {
            id,
            text: self.text.push(id),
            logprobs: logprobs.map(|(_, logprobs)| logprobs),
        })
    }

    /// The text that was held back: an incomplete character, or the beginning of a stop text that did not come.
    pub fn tail(&mut self) -> String {
        self.text.tail()
    }

    /// Leaves the session with its prompt, read or not, and the tokens that were returned, and nothing after them.
    pub fn leave(&mut self, session: &mut Session) {
        if !self.prompt.is_empty() {
            let Content { tokens, images } = std::mem::take(&mut self.prompt);
            session.sequence.tokens = tokens;
            session.sequence.images = images;
        }
        session.sequence.tokens.append(&mut self.pending);
        let len = session.sequence.tokens.len();
        session.truncate(len.saturating_sub(self.queue.len()));
        self.queue.clear();
        let sequence = &mut session.sequence;
        if let Some(drafter) = &self.drafter {
            drafter.tell(&sequence.tokens, sequence.told);
            sequence.told = sequence.tokens.len();
        }
    }
}
