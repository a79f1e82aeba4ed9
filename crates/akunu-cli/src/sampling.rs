//! The options that say how tokens are chosen, and what holds without them.
//!
//! `generate` takes the most likely token, so that a script gets the same text twice. `chat` draws, as the model's authors or
//! its files recommend, with a seed that `/stats` shows.

mod lists;
mod values;

pub use self::lists::{ListArgs, logprobs};
pub use self::values::{in_words, names, set};

use self::values::parse;
use crate::terminal::note;
use akunu::{Sampling, SamplingOptions};
use clap::Args;

/// How tokens are chosen.
#[derive(Args, Default)]
pub struct SamplingArgs {
    /// 0 always takes the most likely token; higher is more varied [default: 0; in chat what the model's
    /// files suggest, or 0.1]
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("temp", text))]
    temp: Option<f32>,
    /// Choose among this many of the most likely tokens; 0 chooses among all [default: 40; in chat what the
    /// model's files suggest, or 40]
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = |text: &str| parse::<u32>("top_k", text))]
    top_k: Option<u32>,
    /// Choose among the most likely tokens whose probabilities sum to this; 1 leaves none out [default: 0.95; in
    /// chat what the model's files suggest, or 0.9]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("top_p", text))]
    top_p: Option<f32>,
    /// Leave out tokens less likely than this share of the most likely one [default: 0.05; in chat what
    /// the model's files suggest, or 0.05]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("min_p", text))]
    min_p: Option<f32>,
    /// Above 1 makes tokens less likely that the answer has already [default: 1; in chat what the model's files
    /// suggest, or 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("repeat_penalty", text))]
    repeat_penalty: Option<f32>,
    /// The same seed gives the same answer; -1 draws a new one and prints it [default: 0; in chat a random one,
    /// which /stats and --json show]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<Seed>,
    #[command(flatten)]
    more: MoreArgs,
}

/// The rarer ones.
#[derive(Args, Default)]
#[command(next_help_heading = "More about how tokens are chosen")]
struct MoreArgs {
    /// Leave out tokens whose logit is more than this many standard deviations below the best; 0: none
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("top_n_sigma", text))]
    top_n_sigma: Option<f32>,
    /// Choose among the tokens whose surprise is nearest to the expected one, until they sum to this; 1: all
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("typical", text))]
    typical: Option<f32>,
    /// How often all likely tokens except the least likely of them are left out (XTC); 0: never
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("xtc_probability", text))]
    xtc_probability: Option<f32>,
    /// The probability from which a token counts as likely for XTC [default: 0.1]
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("xtc_threshold", text))]
    xtc_threshold: Option<f32>,
    /// The temperature moves by up to this much up and down, with the entropy of the candidates
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("dynatemp_range", text))]
    dynatemp_range: Option<f32>,
    /// The exponent of the entropy that moves the temperature [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("dynatemp_exp", text))]
    dynatemp_exp: Option<f32>,
    /// Mirostat 2 instead of all cuts, aiming at a surprise of this many bits; 0: off
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("mirostat_tau", text))]
    mirostat_tau: Option<f32>,
    /// How fast mirostat corrects itself [default: 0.1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("mirostat_eta", text))]
    mirostat_eta: Option<f32>,
    /// Subtracted from the logit of a token for each time that the answer has it
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("frequency_penalty", text))]
    frequency_penalty: Option<f32>,
    /// Subtracted once from the logit of a token that the answer has
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("presence_penalty", text))]
    presence_penalty: Option<f32>,
    /// How many of the last tokens the repeat, frequency and presence penalties consider; 0: all [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| parse::<u32>("repeat_last_n", text))]
    repeat_last_n: Option<u32>,
    /// Let these three penalties and DRY count the prompt too, as llama.cpp does
    #[arg(long, value_name = "0|1", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = switch)]
    penalise_prompt: Option<bool>,
    /// Penalty of a token that would make a repetition longer (DRY); 0: none [default: 0; in chat 0.8]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("dry_multiplier", text))]
    dry_multiplier: Option<f32>,
    /// Factor of the DRY penalty for each token of the repetition [default: 1.75]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = |text: &str| parse::<f32>("dry_base", text))]
    dry_base: Option<f32>,
    /// Repetitions of at least this many tokens are penalised by DRY [default: 2; in chat 16]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| parse::<u32>("dry_allowed_length", text))]
    dry_allowed_length: Option<u32>,
    /// How many of the last tokens DRY searches for repetitions; 0: all [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| parse::<u32>("dry_last_n", text))]
    dry_last_n: Option<u32>,
}

/// Where draws begin.
#[derive(Clone, Copy)]
struct Seed {
    value: u64,
    is_random: bool,
}

/// What `generate` does.
const PLAIN: Sampling = Sampling {
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    ..Sampling::greedy()
};

impl SamplingArgs {
    /// For a text that is the same every time, unless told otherwise.
    pub fn sampling(&self) -> Sampling {
        self.over(PLAIN)
    }

    /// For a conversation with a model that suggests this.
    pub fn for_chat(&self, suggested: &SamplingOptions) -> Sampling {
        self.over(akunu::chat_sampling(suggested))
    }

    /// `other`, but for the options that were given. A random seed is told.
    fn over(&self, other: Sampling) -> Sampling {
        if let Some(seed) = self.seed.filter(|seed| seed.is_random) {
            note(&format!("seed {}", seed.value));
        }
        self.options().over(other)
    }

    /// The options that were given.
    pub fn options(&self) -> SamplingOptions {
        let more = &self.more;
        SamplingOptions {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repeat_penalty,
            penalty_window: more.repeat_last_n,
            penalise_prompt: more.penalise_prompt,
            frequency_penalty: more.frequency_penalty,
            presence_penalty: more.presence_penalty,
            dry_multiplier: more.dry_multiplier,
            dry_base: more.dry_base,
            dry_allowed_length: more.dry_allowed_length,
            dry_window: more.dry_last_n,
            top_n_sigma: more.top_n_sigma,
            typical_p: more.typical,
            xtc_probability: more.xtc_probability,
            xtc_threshold: more.xtc_threshold,
            dynamic_range: more.dynatemp_range,
            dynamic_exponent: more.dynatemp_exp,
            mirostat_tau: more.mirostat_tau,
            mirostat_eta: more.mirostat_eta,
            seed: self.seed.map(|seed| seed.value),
            // Instead of `..SamplingOptions::default()`: an option without a flag does not compile.
            _more: (),
        }
    }
}

/// Whether something is on.
fn switch(text: &str) -> Result<bool, String> {
    Ok(parse::<u32>("penalise_prompt", text)? == 1)
}

/// The given seed, or for -1 a random one.
fn seed(text: &str) -> Result<Seed, String> {
    Ok(Seed {
        value: values::seed(text)?,
        is_random: text == "-1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// Options come first, then what the model suggests, then what holds for every conversation.
    #[test]
    fn a_conversation_draws_as_the_model_suggests_unless_told() {
        let told = SamplingArgs {
            top_k: Some(7),
            seed: Some(seed("3").unwrap()),
            ..SamplingArgs::default()
        };
        let suggested = SamplingOptions {
            top_k: Some(20),
            top_p: Some(0.8),
            ..SamplingOptions::default()
        };
        let wanted = Sampling {
            top_k: 7,
            top_p: 0.8,
            seed: 3,
            ..akunu::chat_sampling(&suggested)
        };
        assert_eq!(told.for_chat(&suggested), wanted);
        assert_eq!(told.sampling().temperature, 0.0);
    }

    /// Fails if an option is left out of what can be said in a conversation, the other way round, or if an option sets
    /// another value than its name does in a conversation.
    #[test]
    fn options_and_names_are_the_same() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            sampling: SamplingArgs,
        }
        let command = Program::command();
        let longs = command.get_arguments().filter_map(|arg| arg.get_long());
        let mut options: Vec<String> = longs.map(|long| long.replace('-', "_")).collect();
        let mut names = Vec::from_iter(names());
        options.sort_unstable();
        names.sort_unstable();
        options.retain(|name| name != "help");
        assert_eq!(options, names);
        for name in names {
            let option = format!("--{}", name.replace('_', "-"));
            let given = Program::try_parse_from(["program", &format!("{option}=1")]);
            let given = given.unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut said = SamplingOptions::default();
            set(&mut said, name, "1").expect("in range");
            let said = said.over(Sampling::greedy());
            assert_eq!(given.sampling.over(Sampling::greedy()), said, "{name}");
        }
    }
}
