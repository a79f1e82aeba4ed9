//! Many prompts answered together.

use std::collections::BTreeMap;

use akunu_engine::{
    Batch, EngineError, GenerateOptions, Progress, SequenceId, SessionOptions, StopReason,
};

use crate::error::Error;
use crate::model::Model;

/// Prompts that are answered at once; the others follow as places become free.
const AT_ONCE: usize = 16;

/// The continuation of a prompt, from [`Model::generate_all`].
///
/// ```no_run
/// # let model = akunu::Model::open("model.gguf")?;
/// let encode = |text| model.tokenizer().encode(text, akunu::EncodeOptions::default());
/// let prompts = ["1, 2, 3,", "a, b, c,"].map(encode);
/// let options = akunu::GenerateOptions { max_tokens: 8, ..Default::default() };
/// for answered in model.generate_all(&prompts, akunu::SessionOptions::default(), &options)? {
///     println!("{} ({})", answered.text, answered.stop.name());
/// }
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub stop: StopReason,
}

impl Model {
    /// Continues each of these prompts, many of them in every step, so that the weights are read once for all. What prompts have
    /// in common at their beginning is read once. The answers come in the order of the prompts; the first error ends all.
    pub fn generate_all(
        &self,
        prompts: &[Vec<u32>],
        session: SessionOptions,
        options: &GenerateOptions,
    ) -> Result<Vec<Answered>, Error> {
        let at_once = prompts.len().clamp(1, AT_ONCE);
        let mut batch = self.batch(at_once as u32)?.with_queue(0);
        let mut answers = vec![None; prompts.len()];
        let mut running = BTreeMap::new();
        let mut next = prompts.iter().enumerate();
        loop {
            while batch.has_room()
                && let Some((at, prompt)) = next.next()
            {
                let joined = batch.join_prompt(self.session(session)?, prompt, options.clone());
                running.insert(joined.map_err(EngineError::from)?, (at, String::new()));
            }
            if !batch.is_running() {
                break;
            }
            step(&mut batch, &mut running, &mut answers)?;
        }
        let missing = || Answered {
            text: String::new(),
            stop: StopReason::Failed,
        };
        let answers = answers.into_iter();
        Ok(answers
            .map(|answer| answer.unwrap_or_else(missing))
            .collect())
    }
}

fn step(
    batch: &mut Batch,
    running: &mut BTreeMap<SequenceId, (usize, String)>,
    answers: &mut [Option<Answered>],
) -> Result<(), Error> {
    for event in batch.step() {
        let Some((at, text)) = running.get_mut(&event.sequence) else {
            continue;
        };
        match event.progress {
            Progress::Token(token) => text.push_str(&token.text),
            Progress::Ended { reason, tail } => {
                text.push_str(&tail);
                answers[*at] = Some(Answered {
                    text: std::mem::take(text),
                    stop: reason,
                });
                batch.leave(event.sequence);
            }
            Progress::Failed(error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
