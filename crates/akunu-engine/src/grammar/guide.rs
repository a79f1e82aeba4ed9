//! An answer's way through a grammar.
//!
//! ```text
//! waiting   the text after which the grammar begins has not come; every token is allowed
//! running   a mask says which tokens may come next; some are forced
//! ended     nothing may follow: the answer is complete
//! ```

use std::sync::Arc;

use llguidance::Matcher;

use super::table::TokenTable;
use crate::error::EngineError;

/// Where an answer is in its grammar.
#[derive(Clone)]
pub(crate) struct Guide {
    table: Arc<TokenTable>,
    matcher: Matcher,
    state: State,
}

#[derive(Clone)]
enum State {
    Waiting {
        /// What it waits for.
        text: Vec<u8>,
        /// The last bytes of the answer, one fewer than `text` has.
        seen: Vec<u8>,
    },
    Running,
    Ended,
}

impl Guide {
    pub(super) fn new(table: Arc<TokenTable>, matcher: Matcher, after: Option<&str>) -> Guide {
        let state = match after {
            Some(text) => State::Waiting {
                text: text.as_bytes().to_vec(),
                seen: Vec::new(),
            },
            None => State::Running,
        };
        Guide {
            table,
            matcher,
            state,
        }
    }

    /// Whether the next token is subject to a mask.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// Whether nothing may follow.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Goes on by tokens that were chosen.
    pub fn take(&mut self, tokens: &[u32]) -> Result<(), EngineError> {
        for &token in tokens {
            self.take_one(token)?;
        }
        Ok(())
    }

    fn take_one(&mut self, token: u32) -> Result<(), EngineError> {
        match &mut self.state {
            State::Ended => {}
            State::Waiting { text, seen } => {
                seen.extend_from_slice(self.table.token_bytes(token));
                let has_come = seen.windows(text.len()).any(|window| window == text);
                seen.drain(..(seen.len() + 1).saturating_sub(text.len()));
                if has_come {
                    self.state = State::Running;
                }
            }
            State::Running => {
                let taken = self.matcher.consume_token(token);
                taken.map_err(|error| failed(&error.to_string()))?;
                if self.matcher.is_stopped() {
                    self.state = State::Ended;
                }
            }
        }
        Ok(())
    }

    /// Goes on by tokens up to the first that is not allowed; returns how many.
    pub fn take_allowed(&mut self, tokens: &[u32]) -> Result<usize, EngineError> {
        for (n, &token) in tokens.iter().enumerate() {
            match self.state {
                State::Ended => return Ok(n),
                State::Waiting { .. } => self.take_one(token)?,
                State::Running => {
                    let taken = self.matcher.try_consume_tokens(&[token]);
                    if taken.map_err(|error| failed(&error.to_string()))? == 0 {
                        return Ok(n);
                    }
                    if self.matcher.is_stopped() {
                        self.state = State::Ended;
                    }
                }
            }
        }
        Ok(tokens.len())
    }

    /// Whether nothing needs to follow.
    pub fn is_complete(&mut self) -> Result<bool, EngineError> {
        match self.state {
            State::Ended => Ok(true),
            State::Waiting { .. } => Ok(false),
            State::Running => {
                let accepting = self.matcher.is_accepting();
                accepting.map_err(|error| failed(&error.to_string()))
            }
        }
    }

    /// Tokens that must come next, at most this many; the guide advances by them.
    pub fn force(&mut self, most: usize) -> Result<Vec<u32>, EngineError> {
        if !self.is_running() || most == 0 {
            return Ok(Vec::new());
        }
        let mut tokens = self.matcher.compute_ff_tokens();
        tokens.truncate(most);
        self.take(&tokens)?;
        Ok(tokens)
    }

    /// How many of these tokens could come next, one after another, each of them by a choice: none that is forced, and
    /// nothing after an end.
    pub fn count_allowed(&mut self, tokens: &[u32]) -> Result<usize, EngineError> {
        match self.state {
            State::Ended => return Ok(0),
            State::Waiting { .. } => return self.count_before_begin(tokens),
            State::Running => {}
        }
        let (mut n, mut taken) = (0, 0);
        for &token in tokens {
            let before = self.matcher.try_consume_tokens(&[token]);
            if before.map_err(|error| failed(&error.to_string()))? == 0 {
                break;
            }
            taken += 1;
            // The row of a guess chooses the token after it, and after the end there is none.
            if self.matcher.is_stopped() {
                break;
            }
            n += 1;
            if !self.matcher.compute_ff_tokens().is_empty() {
                break;
            }
        }
        self.go_back(taken)?;
        Ok(n)
    }

    /// How many of these tokens come before the one with which the grammar begins.
    fn count_before_begin(&self, tokens: &[u32]) -> Result<usize, EngineError> {
        let mut guide = self.clone();
        for (n, &token) in tokens.iter().enumerate() {
            guide.take_one(token)?;
            if guide.is_running() {
                return Ok(n);
            }
        }
        Ok(tokens.len())
    }

    /// Calls `put` with the mask of the next token, and with those after each of `tokens`, which are allowed.
    pub fn masks(
        &mut self,
        tokens: &[u32],
        mut put: impl FnMut(&[u32]),
    ) -> Result<(), EngineError> {
        let mut mask = |matcher: &mut Matcher| match matcher.compute_mask_or_eos() {
            Ok(mask) => {
                put(mask.as_slice());
                Ok(())
            }
            Err(error) => Err(failed(&error.to_string())),
        };
        mask(&mut self.matcher)?;
        for &token in tokens {
            let taken = self.matcher.consume_token(token);
            taken.map_err(|error| failed(&error.to_string()))?;
            mask(&mut self.matcher)?;
        }
        self.go_back(tokens.len())
    }

    fn go_back(&mut self, n: usize) -> Result<(), EngineError> {
        let gone = self.matcher.rollback(n);
        gone.map_err(|error| failed(&error.to_string()))
    }
}

/// A grammar that grew beyond its limits on the way.
fn failed(message: &str) -> EngineError {
    EngineError::GrammarStopped {
        why: super::error::one_line(message),
    }
}
