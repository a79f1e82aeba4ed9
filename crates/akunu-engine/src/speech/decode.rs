//! The tokens of a window, chosen one after the other.

use super::SpeechModel;
use super::rules::{SpeechRules, largest, log_sum_exp};
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

/// A window whose prompt was read.
pub struct Opened {
    window: u32,
    prompt_len: usize,
    logits: Vec<f32>,
    has_times: bool,
    /// The probability that there is no speech.
    pub no_speech: f32,
}

impl SpeechModel {
    /// The languages that may be spoken in the first window, the most probable first.
    pub fn languages(&mut self) -> Result<Vec<(String, f32)>, EngineError> {
        let start = self.tokens.start;
        let names = self.tokens.languages.clone();
        let first = self.tokens.first_language as usize;
        self.runtime.keep(0, 0);
        // The second output is as the model made it.
        let logits = self.runtime.read(0, &[start], &[0, 0])?;
        let logits = logits.last().map_or(&[][..], |logits| logits);
        let of_languages = logits.get(first..first + names.len()).unwrap_or_default();
        let total = log_sum_exp(of_languages);
        let shares = of_languages.iter().map(|logit| (logit - total).exp());
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
        let n_positions = self.config.n_text_positions as usize;
        let (tokens, start) = prompt.tokens(&self.tokens, n_positions);
        self.runtime.keep(window, 0);
        let outputs = [tokens.len() - 1, start];
        let mut logits = self.runtime.read(window, &tokens, &outputs)?;
        let at_start = logits.pop().unwrap_or_default();
        let last = logits.pop().unwrap_or_default();
        let no_speech = at_start.get(self.tokens.no_speech as usize);
        let no_speech = no_speech.map_or(0.0, |logit| (logit - log_sum_exp(&at_start)).exp());
        Ok(Opened {
            window,
            prompt_len: tokens.len(),
            logits: last,
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
        self.runtime.keep(window.window, window.prompt_len);
        let mut saying = Saying::new(window, temperature, seed);
        while let Some(token) = self.next_token(&mut saying) {
            let mut next = self.runtime.read(window.window, &[token], &[0])?;
            saying.logits = next.pop().unwrap_or_default();
        }
        Ok(saying.decoded())
    }

    /// Chooses the most probable tokens of several windows, which come in the order of their numbers, one of each at a time.
    pub fn say_all(&mut self, windows: &[Opened]) -> Result<Vec<Decoded>, EngineError> {
        for window in windows {
            self.runtime.keep(window.window, window.prompt_len);
        }
        let all = windows.iter().map(|window| Saying::new(window, 0.0, 0));
        let mut all: Vec<Saying> = all.collect();
        loop {
            let mut tokens = Vec::new();
            let mut going = Vec::new();
            for saying in all.iter_mut().filter(|saying| !saying.has_ended) {
                if let Some(token) = self.next_token(saying) {
                    tokens.push((saying.window.window, token));
                    going.push(saying);
                }
            }
            if going.is_empty() {
                break;
            }
            let logits = self.runtime.read_each(&tokens)?;
            for (saying, logits) in going.into_iter().zip(logits) {
                saying.logits = logits;
            }
        }
        Ok(all.into_iter().map(Saying::decoded).collect())
    }

    /// Chooses the next token of a window from its logits; `None` at the end.
    fn next_token(&self, saying: &mut Saying) -> Option<u32> {
        let rules = SpeechRules {
            tokens: &self.tokens,
            suppressed_first: &self.config.suppressed_first,
            has_times: saying.window.has_times,
        };
        rules.apply(&saying.said, &mut saying.logits);
        let logits = &saying.logits;
        let token = choose(logits, saying.temperature, &mut saying.chance);
        let logit = logits.get(token as usize).copied().unwrap_or_default();
        saying.logprobs += logit - log_sum_exp(logits);
        let n_positions = self.config.n_text_positions as usize;
        let most = (n_positions / 2).min(n_positions.saturating_sub(saying.window.prompt_len));
        if token != self.tokens.end {
            saying.said.push(token);
        }
        saying.has_ended = token == self.tokens.end || saying.said.len() >= most;
        (!saying.has_ended).then_some(token)
    }
}

/// A window while its tokens are chosen.
struct Saying<'a> {
    window: &'a Opened,
    /// After the last token.
    logits: Vec<f32>,
    said: Vec<u32>,
    /// The sum of the log probabilities so far.
    logprobs: f32,
    temperature: f32,
    chance: Chance,
    has_ended: bool,
}

impl<'a> Saying<'a> {
    fn new(window: &'a Opened, temperature: f32, seed: u64) -> Saying<'a> {
        Saying {
            window,
            logits: window.logits.clone(),
            said: Vec::new(),
            logprobs: 0.0,
            temperature,
            chance: Chance(seed),
            has_ended: false,
        }
    }

    fn decoded(self) -> Decoded {
        Decoded {
            mean_logprob: self.logprobs / (self.said.len() + 1) as f32,
            tokens: self.said,
            no_speech: self.window.no_speech,
            temperature: self.temperature,
        }
    }
}

/// The best token at temperature 0, otherwise one by chance.
fn choose(logits: &[f32], temperature: f32, chance: &mut Chance) -> u32 {
    let largest = largest(logits);
    let best = logits.iter().position(|&logit| logit == largest);
    let best = best.unwrap_or_default() as u32;
    if temperature <= 0.0 {
        return best;
    }
    let weight = |logit: f32| f64::from((logit - largest) / temperature).exp();
    let total: f64 = logits.iter().map(|&logit| weight(logit)).sum();
    let mut left = chance.share() * total;
    for (id, &logit) in logits.iter().enumerate() {
        left -= weight(logit);
        if left < 0.0 {
            return id as u32;
        }
    }
    best
}

/// Numbers that look random (SplitMix64).
struct Chance(u64);

impl Chance {
    /// A number from 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
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

    /// Fails when temperature 0 is not the best token, or when chance ignores the probabilities or the seed.
    #[test]
    fn tokens_are_chosen_by_their_probability() {
        let logits = [0.0, 2.0, f32::NEG_INFINITY, 1.0];
        assert_eq!(choose(&logits, 0.0, &mut Chance(1)), 1);
        let draw = |seed: u64| {
            let mut chance = Chance(seed);
            let mut counts = [0u32; 4];
            for _ in 0..4000 {
                counts[choose(&logits, 1.0, &mut chance) as usize] += 1;
            }
            counts
        };
        let counts = draw(7);
        assert_eq!(counts, draw(7));
        assert_eq!(counts[2], 0);
        // Shares of 9, 67 and 24 percent; the deviation of 4000 draws is below 1 percent.
        for (count, share) in [(counts[0], 0.09), (counts[1], 0.665), (counts[3], 0.245)] {
            assert!(
                (f64::from(count) / 4000.0 - share).abs() < 0.03,
                "{counts:?}"
            );
        }
    }
}
