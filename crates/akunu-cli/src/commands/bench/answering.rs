//! One answer of `bench --texts`: what was said, how fast, and in how much time of the processors.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use akunu::{ChatOptions, Lookup, Model, ReplyStats, Sampling, Speculation};
#[cfg(unix)]
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

/// How answers are asked for. Each has a model of its own: what an earlier one has said would otherwise be guessed from.
pub struct Asking<'a> {
    /// Opens the model.
    pub open: &'a dyn Fn() -> Result<Model, Failure>,
    /// Answers of each text.
    pub runs: u32,
    /// Tokens of an answer, at most.
    pub max_tokens: u32,
    pub interrupt: &'a Interrupt,
}

/// An answer.
pub struct Answered {
    pub text: String,
    pub stats: ReplyStats,
    /// Seconds of all processors from the first token to the end, where the system tells.
    cpu: Option<f64>,
}

impl Asking<'_> {
    /// Options for an answer of the best tokens, with or without guesses.
    pub fn options(&self, model: &Model, lookup: Lookup) -> ChatOptions {
        ChatOptions {
            sampling: Sampling::greedy(),
            max_tokens: Some(self.max_tokens as usize),
            cancel: self.interrupt.flag().clone(),
            speculation: Speculation {
                lookup,
                ..Speculation::default()
            },
            ..model.chat_options()
        }
    }

    /// The answer of a model to a question.
    pub fn answer(
        &self,
        model: &Model,
        question: &str,
        options: ChatOptions,
    ) -> Result<Answered, Failure> {
        let mut chat = model.chat_with(options)?;
        let mut reply = chat.ask(question)?;
        let mut begin = None;
        for piece in reply.by_ref() {
            piece?;
            begin = begin.or_else(cpu_seconds);
        }
        let end = cpu_seconds();
        let text = reply.text().to_string();
        self.interrupt.check()?;
        Ok(Answered {
            text,
            stats: reply.finish(),
            cpu: begin.zip(end).map(|(begin, end)| end - begin),
        })
    }
}

/// Seconds that all threads of this process have run, where the system tells.
#[cfg(unix)]
fn cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let times = [usage.user_time(), usage.system_time()];
    Some(
        times
            .map(|time| time.num_microseconds() as f64 / 1e6)
            .iter()
            .sum(),
    )
}

#[cfg(not(unix))]
fn cpu_seconds() -> Option<f64> {
    None
}

/// Tokens a second after the first one: the median.
pub fn speed(answers: &[Answered]) -> f64 {
    let rest = |answer: &Answered| answer.stats.rest.as_secs_f64();
    median(answers.iter().map(|answer| rate(answer, rest(answer)))).unwrap_or(0.0)
}

/// The same for each second of a processor; `None` where the system does not tell, and for answers too short to say.
pub fn cpu_speed(answers: &[Answered]) -> Option<f64> {
    let rates = answers.iter().map(|answer| {
        let seconds = answer.cpu.filter(|seconds| *seconds > 0.0)?;
        Some(rate(answer, seconds))
    });
    median(rates.collect::<Option<Vec<f64>>>()?.into_iter())
}

fn rate(answer: &Answered, seconds: f64) -> f64 {
    answer.stats.tokens.saturating_sub(1) as f64 / seconds.max(1e-9)
}

/// The middle of some values; `None` without any.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value that a share of the values are below.
pub fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied()
}
