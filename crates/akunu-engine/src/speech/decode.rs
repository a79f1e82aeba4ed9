//! The prompt of a window, and the tokens that are said of it.

use akunu_program::{Choose, LogScale};
use akunu_types::params::SamplingRule;

use super::SpeechModel;
use super::chain::{Chosen, NextToken};
use super::tokens::SpeechTokens;
use crate::error::EngineError;

/// What a model is asked to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeechTask {
    /// What is spoken.
    #[default]
    Transcribe,
    /// The same in English.
    Translate,
}

/// What is said to the model before a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpeechPrompt {
    /// What was written before, or what a user says about the recording.
    pub previous: Vec<u32>,
    /// The token of the language, in a model that knows several.
    pub language: Option<u32>,
    /// What to write.
    pub task: SpeechTask,
    /// Whether to write times.
    pub has_times: bool,
}

impl SpeechPrompt {
    /// The tokens, and the number of `<|startoftranscript|>` among them. Of what was written before, the end is kept, up
    /// to half of the positions.
    pub fn tokens(&self, tokens: &SpeechTokens, n_positions: usize) -> (Vec<u32>, usize) {
        let mut prompt = Vec::new();
        if !self.previous.is_empty() {
            let n_kept = (n_positions / 2).saturating_sub(1);
            let first = self.previous.len().saturating_sub(n_kept);
            prompt.push(tokens.previous);
            prompt.extend_from_slice(&self.previous[first..]);
        }
        let start = prompt.len();
        prompt.push(tokens.start);
        if tokens.is_multilingual() {
            prompt.push(self.language.unwrap_or(tokens.first_language));
            prompt.push(match self.task {
                SpeechTask::Transcribe => tokens.transcribe,
                SpeechTask::Translate => tokens.translate,
            });
        }
        if !self.has_times {
            prompt.push(tokens.no_times);
        }
        (prompt, start)
    }
}

/// The tokens of a window, and how sure the model was.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// What was said, without the end.
    pub tokens: Vec<u32>,
    /// The mean of the log probabilities of all tokens, the end included.
    pub mean_logprob: f32,
    /// The probability that there is no speech.
    pub no_speech: f32,
    /// The temperature with which they were chosen.
    pub temperature: f32,
}

/// A window whose prompt was read, but for its last token.
pub struct Opened {
    window: u32,
    prompt_len: usize,
    last_token: u32,
    /// Tokens that may be said, at most.
    most: usize,
    has_times: bool,
    /// The probability that there is no speech.
    pub no_speech: f32,
}

impl Opened {
    /// How its tokens are chosen.
    fn rule(&self, temperature: f32, seed: u64) -> SamplingRule {
        SamplingRule {
            temperature,
            seed_lo: seed as u32,
            seed_hi: (seed >> 32) as u32,
            n_scores: 1,
            transcript_start: self.prompt_len as u32,
            has_times: u32::from(self.has_times),
            ..SamplingRule::PLAIN
        }
    }
}

impl SpeechModel {
    /// The languages that may be spoken in the first window, the most probable first.
    pub fn languages(&mut self) -> Result<Vec<(String, f32)>, EngineError> {
        let start = self.tokens.start;
        let names = self.tokens.languages.clone();
        let first = self.tokens.first_language as usize;
        self.runtime.keep(0, 0);
        let logits = self.runtime.read(0, &[start], Some(0))?;
        let of_languages = logits.get(first..first + names.len()).unwrap_or_default();
        let scale = LogScale::of(of_languages);
        let shares = of_languages
            .iter()
            .map(|&logit| scale.log_probability(logit).exp());
        let mut languages: Vec<(String, f32)> = names.into_iter().zip(shares).collect();
        languages.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(languages)
    }

    /// Reads the prompt of the first window.
    pub fn open(&mut self, prompt: &SpeechPrompt) -> Result<Opened, EngineError> {
        self.open_window(0, prompt)
    }

    /// Reads the prompt of a window that was heard ([`SpeechModel::listen_to`]).
    pub fn open_window(
        &mut self,
        window: u32,
        prompt: &SpeechPrompt,
    ) -> Result<Opened, EngineError> {
        let n_positions = self.config.decoder.context_length as usize;
        let (tokens, start) = prompt.tokens(&self.tokens, n_positions);
        let prompt_len = tokens.len();
        // The last token is read with the first one that is chosen.
        let n_read = (prompt_len - 1).max(start + 1);
        self.runtime.keep(window, 0);
        let at_start = self.runtime.read(window, &tokens[..n_read], Some(start))?;
        let no_speech = at_start.get(self.tokens.no_speech as usize);
        let scale = LogScale::of(&at_start);
        let no_speech = no_speech.map_or(0.0, |&logit| scale.log_probability(logit).exp());
        Ok(Opened {
            window,
            prompt_len,
            last_token: tokens[prompt_len - 1],
            most: (n_positions / 2).min(n_positions.saturating_sub(prompt_len)),
            has_times: prompt.has_times,
            no_speech,
        })
    }

    /// Chooses the tokens of a window: the most probable ones at temperature 0, otherwise by chance, which `seed` fixes.
    pub fn say(
        &mut self,
        window: &Opened,
        temperature: f32,
        seed: u64,
    ) -> Result<Decoded, EngineError> {
        let mut said = self.say_each(std::slice::from_ref(window), temperature, seed)?;
        match said.pop() {
            Some(decoded) => Ok(decoded),
            None => unreachable!("every window has said something or nothing"),
        }
    }

    /// Chooses the most probable tokens of several windows, which come in the order of their numbers, one of each at a time.
    pub fn say_all(&mut self, windows: &[Opened]) -> Result<Vec<Decoded>, EngineError> {
        self.say_each(windows, 0.0, 0)
    }

    fn say_each(
        &mut self,
        windows: &[Opened],
        temperature: f32,
        seed: u64,
    ) -> Result<Vec<Decoded>, EngineError> {
        let how = if temperature > 0.0 {
            Choose::ByRule
        } else {
            Choose::Best
        };
        for opened in windows {
            self.runtime.keep(opened.window, opened.prompt_len - 1);
            let rule = opened.rule(temperature, seed);
            self.runtime.set_rule(opened.window, &rule)?;
        }
        let mut all: Vec<Saying> = windows.iter().map(Saying::new).collect();
        let mut n_rows = 0;
        loop {
            let going = all.iter_mut().filter(|saying| !saying.has_ended);
            let mut going: Vec<&mut Saying> = going.collect();
            let Some(most) = going.iter().map(|saying| saying.room()).min() else {
                break;
            };
            // Rows that the device has moved on itself need not be told again.
            if going.len() != n_rows {
                let next: Vec<NextToken> = going.iter().map(|saying| saying.next()).collect();
                self.runtime.begin_chains(&next);
                n_rows = next.len();
            }
            let chosen = self.runtime.chain(how, most as u32)?;
            for (saying, chosen) in going.iter_mut().zip(chosen) {
                saying.take(&chosen, self.tokens.end);
            }
        }
        let decoded = all.into_iter().map(|saying| saying.decoded(temperature));
        Ok(decoded.collect())
    }
}

/// A window while its tokens are chosen.
struct Saying<'a> {
    window: &'a Opened,
    said: Vec<u32>,
    /// The sum of the log probabilities so far.
    logprobs: f32,
    has_ended: bool,
}

impl<'a> Saying<'a> {
    fn new(window: &'a Opened) -> Saying<'a> {
        Saying {
            window,
            said: Vec::new(),
            logprobs: 0.0,
            has_ended: false,
        }
    }

    /// The token that is read next.
    fn next(&self) -> NextToken {
        NextToken {
            window: self.window.window,
            position: (self.window.prompt_len - 1 + self.said.len()) as u32,
            token: self.said.last().copied().unwrap_or(self.window.last_token),
        }
    }

    /// Tokens that may still be said, at least one.
    fn room(&self) -> usize {
        self.window.most.saturating_sub(self.said.len()).max(1)
    }

    /// Takes what was chosen, up to the end.
    fn take(&mut self, chosen: &[Chosen], end: u32) {
        for chosen in chosen {
            self.logprobs += chosen.logprob;
            if chosen.token != end {
                self.said.push(chosen.token);
            }
            if chosen.token == end || self.said.len() >= self.window.most {
                self.has_ended = true;
                break;
            }
        }
    }

    fn decoded(self, temperature: f32) -> Decoded {
        Decoded {
            mean_logprob: self.logprobs / (self.said.len() + 1) as f32,
            tokens: self.said,
            no_speech: self.window.no_speech,
            temperature,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::tokens;
    use super::*;

    /// Fails when the parts of a prompt stand in another order, or when too much of what was said before is kept.
    #[test]
    fn prompts_are_written_as_the_model_learned_them() {
        let tokens = tokens();
        let mut prompt = SpeechPrompt {
            language: Some(13),
            task: SpeechTask::Translate,
            ..SpeechPrompt::default()
        };
        assert_eq!(prompt.tokens(&tokens, 8), (vec![11, 13, 14, 18], 0));
        prompt.has_times = true;
        prompt.previous = vec![1, 2, 3, 4, 5];
        assert_eq!(
            prompt.tokens(&tokens, 8),
            (vec![16, 3, 4, 5, 11, 13, 14], 4)
        );
        let english = SpeechTokens {
            languages: Vec::new(),
            ..tokens
        };
        prompt.previous.clear();
        assert_eq!(prompt.tokens(&english, 8), (vec![11], 0));
    }
}
