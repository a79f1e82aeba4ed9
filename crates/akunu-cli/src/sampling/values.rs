//! The values of sampling by the names that people know from other programs: how they are set, and how they are shown.
//! Their ranges are the engine's.

use akunu::{EngineError, Sampling, SamplingOptions};
use std::str::FromStr;

/// The name in a conversation, and that of the field. An option of the command line has dashes instead of underlines.
const FIELDS: [(&str, &str); 21] = [
    ("temp", "temperature"),
    ("top_k", "top_k"),
    ("top_p", "top_p"),
    ("min_p", "min_p"),
    ("repeat_penalty", "repetition_penalty"),
    ("repeat_last_n", "penalty_window"),
    ("penalise_prompt", "penalise_prompt"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("dry_multiplier", "dry_multiplier"),
    ("dry_base", "dry_base"),
    ("dry_allowed_length", "dry_allowed_length"),
    ("dry_last_n", "dry_window"),
    ("top_n_sigma", "top_n_sigma"),
    ("typical", "typical_p"),
    ("xtc_probability", "xtc_probability"),
    ("xtc_threshold", "xtc_threshold"),
    ("dynatemp_range", "dynamic_range"),
    ("dynatemp_exp", "dynamic_exponent"),
    ("mirostat_tau", "mirostat_tau"),
    ("mirostat_eta", "mirostat_eta"),
];

/// Values that are shown even if they have not been changed.
const SHOWN: usize = 5;

/// The names that [`set`] knows, those first that are always shown.
pub fn names() -> impl Iterator<Item = &'static str> {
    let names = FIELDS.iter().map(|(name, _)| *name);
    names.chain(["seed"])
}

/// The value of an option of the command line, if it is in its range.
pub fn parse<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    set(&mut SamplingOptions::default(), name, text)?;
    // What is in its range and still no number of this type has a point or an exponent, as in 1e3.
    text.parse()
        .map_err(|_| "it must be a whole number, in digits".to_string())
}

/// A seed, or for -1 a random one.
pub fn seed(text: &str) -> Result<u64, String> {
    if text == "-1" {
        return Ok(akunu::random_seed());
    }
    let wrong = "it must be a whole number of 0 or more, or -1 for a random one";
    text.parse().map_err(|_| wrong.to_string())
}

/// Sets one value by the name that it has in a conversation; the error is a message for people.
pub fn set(options: &mut SamplingOptions, name: &str, text: &str) -> Result<(), String> {
    if name == "seed" {
        options.seed = Some(seed(text)?);
        return Ok(());
    }
    let field = FIELDS.iter().find(|(known, _)| *known == name);
    let (_, field) = field.ok_or("there is no such value")?;
    // Text that is not a number is as wrong as a number out of range.
    let set = options.set(field, text.parse().unwrap_or(f64::NAN));
    set.map_err(|error| match error {
        EngineError::Sampling { wanted, .. } => format!("it must be {wanted}"),
        other => other.to_string(),
    })
}

/// The values that matter most, and all that are not as they are without being set.
pub fn in_words(sampling: &Sampling) -> String {
    let plain = Sampling::greedy();
    let value = |of: &Sampling, field: &str| of.values().find(|(name, _)| *name == field);
    let mut words = Vec::new();
    for (at, (name, field)) in FIELDS.iter().enumerate() {
        let found = value(sampling, field);
        if at < SHOWN || found != value(&plain, field) {
            // A single has fewer digits than the same number as a double.
            let text = found.map(|(_, x)| {
                if x.fract() == 0.0 {
                    x.to_string()
                } else {
                    (x as f32).to_string()
                }
            });
            words.push(format!("{name} {}", text.unwrap_or_default()));
        }
    }
    words.push(format!("seed {}", sampling.seed));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(parse("top_p", "1"), Ok(1.0));
        for wrong in ["7", "0", "-1", "NaN", "inf", "much", ""] {
            let said = parse::<f32>("top_p", wrong);
            assert_eq!(
                said,
                Err("it must be a number above 0 and at most 1".into())
            );
        }
        assert_eq!(parse("min_p", "0"), Ok(0.0));
        assert!(parse::<f32>("temp", "-0.1").is_err());
        assert!(parse::<f32>("repeat_penalty", "0").is_err());
        for wrong in ["2.5", "-1", "1e3"] {
            assert!(parse::<u32>("top_k", wrong).is_err(), "{wrong}");
        }
        let large = parse::<u32>("top_k", "9999999999");
        let wanted = "it must be a whole number from 0 to 4294967295";
        assert_eq!(large, Err(wanted.to_string()));
        assert_eq!(parse("top_k", "100000"), Ok(100_000));
    }

    /// Fails if two names have one field, a field has no name, or a value is set and not shown.
    #[test]
    fn every_name_can_be_set_and_is_shown() {
        assert_eq!(names().count(), SamplingOptions::NAMES.len());
        for name in names() {
            let mut options = SamplingOptions::default();
            let value = if name == "repeat_last_n" { "9" } else { "1" };
            let value = if name == "dry_base" { "3" } else { value };
            assert_eq!(set(&mut options, name, value), Ok(()), "{name}");
            let words = in_words(&options.over(Sampling::greedy()));
            let usual = ["typical", "dynatemp_exp"].contains(&name);
            assert!(
                usual || words.contains(&format!("{name} {value}")),
                "{words}"
            );
            assert!(set(&mut options, name, "x").is_err(), "{name}");
        }
        let mut options = SamplingOptions::default();
        assert_eq!(set(&mut options, "temp", "0.7"), Ok(()));
        assert!(in_words(&options.over(Sampling::greedy())).starts_with("temp 0.7, "));
        assert!(set(&mut options, "heat", "1").is_err());
    }
}
