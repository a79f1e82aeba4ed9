//! A window, tried with rising temperatures until what comes out makes sense.
//!
//! Text that repeats itself compresses well, and text that the model made up is improbable to itself: either is a
//! reason to try again with some chance. An improbable text where the model thinks that nobody speaks is silence.

use std::io::Write;

use akunu_engine::speech::{Decoded, Opened, SpeechModel};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::error::Error;

const TEMPERATURES: [f32; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// Text that compresses better repeats itself.
const MAX_COMPRESSION: f64 = 2.4;
/// Text that is less probable was made up.
const MIN_LOGPROB: f32 = -1.0;
/// Where silence is more probable, an improbable text is none.
const MAX_NO_SPEECH: f32 = 0.6;

/// The last try.
pub(super) struct Trial {
    pub decoded: Decoded,
    /// How many times smaller its text becomes when it is compressed.
    pub compression: f64,
}

impl Trial {
    /// Tries until it makes sense, or once with the temperature that is wanted. `first` is what came of the first try, where
    /// it was made with other windows.
    pub fn run(
        model: &mut SpeechModel,
        opened: &Opened,
        mut first: Option<Decoded>,
        (wanted, seed): (Option<f32>, u64),
    ) -> Result<Trial, Error> {
        let mut tried = None;
        for temperature in TEMPERATURES {
            let decoded = match first.take() {
                Some(decoded) => decoded,
                None => model.say(opened, wanted.unwrap_or(temperature), seed)?,
            };
            let text = model.tokenizer().decode(&decoded.tokens);
            let trial = Trial {
                decoded,
                compression: compression(&text),
            };
            let is_done = wanted.is_some() || trial.is_silence() || trial.makes_sense();
            tried = Some(trial);
            if is_done {
                break;
            }
        }
        match tried {
            Some(trial) => Ok(trial),
            None => unreachable!("there is a first temperature"),
        }
    }

    /// Whether nobody speaks.
    pub fn is_silence(&self) -> bool {
        self.decoded.no_speech > MAX_NO_SPEECH && self.decoded.mean_logprob < MIN_LOGPROB
    }

    fn makes_sense(&self) -> bool {
        self.compression <= MAX_COMPRESSION && self.decoded.mean_logprob >= MIN_LOGPROB
    }
}

/// How many times smaller a text becomes.
fn compression(text: &str) -> f64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let written = encoder.write_all(text.as_bytes());
    let compressed = encoder.finish().unwrap_or_default();
    debug_assert!(written.is_ok());
    text.len() as f64 / compressed.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(text: &str, mean_logprob: f32, no_speech: f32) -> Trial {
        Trial {
            compression: compression(text),
            decoded: Decoded {
                tokens: Vec::new(),
                mean_logprob,
                no_speech,
                temperature: 0.0,
            },
        }
    }

    /// Fails when text that repeats itself is accepted, or plain text refused.
    #[test]
    fn repetitions_do_not_make_sense() {
        let plain = "And so, my fellow Americans, ask not what your country can do for you.";
        assert!(trial(plain, -0.3, 0.0).makes_sense());
        assert!(!trial(&"ask not ".repeat(20), -0.3, 0.0).makes_sense());
        assert!(!trial(plain, -1.3, 0.0).makes_sense());
        assert!(trial("", -0.3, 0.0).makes_sense());
    }

    /// Fails when either sign alone is taken for silence.
    #[test]
    fn silence_is_improbable_text_where_nobody_speaks() {
        assert!(trial("", -1.3, 0.7).is_silence());
        assert!(!trial("", -0.3, 0.7).is_silence());
        assert!(!trial("", -1.3, 0.5).is_silence());
    }
}
