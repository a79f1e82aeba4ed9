//! The values of sampling by name: their ranges, how they are set, and how they are shown.

use akunu::Sampling;

/// A value of sampling.
struct Value {
    /// Its name in a conversation; the option has dashes instead of underlines.
    name: &'static str,
    /// What it must be, in words.
    wanted: &'static str,
    holds: fn(f64) -> bool,
    /// Where it lies.
    field: fn(&mut Sampling) -> Field<'_>,
}

enum Field<'a> {
    Number(&'a mut f32),
    Whole(&'a mut u32),
}

const NOT_NEGATIVE: (&str, fn(f64) -> bool) = ("a number 0 or more", |x| x >= 0.0);
const POSITIVE: (&str, fn(f64) -> bool) = ("a number above 0", |x| x > 0.0);
const SHARE: (&str, fn(f64) -> bool) = ("a number from 0 to 1", |x| (0.0..=1.0).contains(&x));
const SUM: (&str, fn(f64) -> bool) = ("a number above 0 and at most 1", |x| x > 0.0 && x <= 1.0);
const ANY: (&str, fn(f64) -> bool) = ("a number", |_| true);
const COUNT: (&str, fn(f64) -> bool) = ("a whole number, 0 or more", is_count);
const FROM_ONE: (&str, fn(f64) -> bool) = ("a number 1 or more", |x| x >= 1.0);
const WHOLE_FROM_ONE: (&str, fn(f64) -> bool) =
    ("a whole number, 1 or more", |x| is_count(x) && x >= 1.0);

fn is_count(x: f64) -> bool {
    x.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&x)
}

const fn number(
    name: &'static str,
    (wanted, holds): (&'static str, fn(f64) -> bool),
    field: fn(&mut Sampling) -> Field<'_>,
) -> Value {
    Value {
        name,
        wanted,
        holds,
        field,
    }
}

/// All but the seed, which has more digits.
const VALUES: [Value; 20] = [
    number("temp", NOT_NEGATIVE, |s| Field::Number(&mut s.temperature)),
    number("top_k", COUNT, |s| Field::Whole(&mut s.top_k)),
    number("top_p", SUM, |s| Field::Number(&mut s.top_p)),
    number("min_p", SHARE, |s| Field::Number(&mut s.min_p)),
    number("repeat_penalty", POSITIVE, |s| {
        Field::Number(&mut s.repetition_penalty)
    }),
    number("repeat_last_n", COUNT, |s| {
        Field::Whole(&mut s.penalty_window)
    }),
    number("frequency_penalty", ANY, |s| {
        Field::Number(&mut s.frequency_penalty)
    }),
    number("presence_penalty", ANY, |s| {
        Field::Number(&mut s.presence_penalty)
    }),
    number("dry_multiplier", NOT_NEGATIVE, |s| {
        Field::Number(&mut s.dry_multiplier)
    }),
    number("dry_base", FROM_ONE, |s| Field::Number(&mut s.dry_base)),
    number("dry_allowed_length", WHOLE_FROM_ONE, |s| {
        Field::Whole(&mut s.dry_allowed_length)
    }),
    number("dry_last_n", COUNT, |s| Field::Whole(&mut s.dry_window)),
    number("top_n_sigma", NOT_NEGATIVE, |s| {
        Field::Number(&mut s.top_n_sigma)
    }),
    number("typical", SUM, |s| Field::Number(&mut s.typical_p)),
    number("xtc_probability", SHARE, |s| {
        Field::Number(&mut s.xtc_probability)
    }),
    number("xtc_threshold", SHARE, |s| {
        Field::Number(&mut s.xtc_threshold)
    }),
    number("dynatemp_range", NOT_NEGATIVE, |s| {
        Field::Number(&mut s.dynamic_range)
    }),
    number("dynatemp_exp", POSITIVE, |s| {
        Field::Number(&mut s.dynamic_exponent)
    }),
    number("mirostat_tau", NOT_NEGATIVE, |s| {
        Field::Number(&mut s.mirostat_tau)
    }),
    number("mirostat_eta", SHARE, |s| {
        Field::Number(&mut s.mirostat_eta)
    }),
];

/// The names that [`set`] knows, those first that are always shown.
pub const NAMES: [&str; 21] = {
    let mut names = ["seed"; 21];
    let mut at = 0;
    while at < VALUES.len() {
        names[at] = VALUES[at].name;
        at += 1;
    }
    names
};

/// Values that are shown even if nobody has changed them.
const SHOWN: usize = 5;

/// A value of this name, if it is in its range. An error says in words what it must be.
pub fn parse(name: &str, text: &str) -> Result<f64, String> {
    let Some(value) = VALUES.iter().find(|value| value.name == name) else {
        return Err(format!(
            "there is no such value; there are {}",
            NAMES.join(", ")
        ));
    };
    let found = text.parse().ok();
    found
        .filter(|x: &f64| x.is_finite() && (value.holds)(*x))
        .ok_or_else(|| format!("it must be {}", value.wanted))
}

/// Sets a value that was [parsed](parse).
pub fn assign(sampling: &mut Sampling, name: &str, found: f64) {
    if let Some(value) = VALUES.iter().find(|value| value.name == name) {
        match (value.field)(sampling) {
            Field::Number(number) => *number = found as f32,
            Field::Whole(number) => *number = found as u32,
        }
    }
}

/// Sets one value by the name that it has in a conversation. An error says in words what is wrong.
pub fn set(sampling: &mut Sampling, name: &str, text: &str) -> Result<(), String> {
    if name == "seed" {
        let seed = text.parse();
        sampling.seed = seed.map_err(|_| "it must be a whole number, 0 or more".to_string())?;
    } else {
        assign(sampling, name, parse(name, text)?);
    }
    Ok(())
}

/// The values that matter most, and all that are not as they are without being set.
pub fn in_words(sampling: &Sampling) -> String {
    let (mut sampling, mut plain) = (*sampling, Sampling::greedy());
    let mut words = Vec::new();
    for (at, value) in VALUES.iter().enumerate() {
        let text = |field: Field| match field {
            Field::Number(number) => number.to_string(),
            Field::Whole(number) => number.to_string(),
        };
        let (found, usual) = (
            text((value.field)(&mut sampling)),
            text((value.field)(&mut plain)),
        );
        if at < SHOWN || found != usual {
            words.push(format!("{} {found}", value.name));
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
            let said = parse("top_p", wrong);
            assert_eq!(
                said,
                Err("it must be a number above 0 and at most 1".into())
            );
        }
        assert_eq!(parse("min_p", "0"), Ok(0.0));
        assert!(parse("temp", "-0.1").is_err() && parse("repeat_penalty", "0").is_err());
        assert!(parse("top_k", "2.5").is_err() && parse("top_k", "-1").is_err());
        assert_eq!(parse("top_k", "100000"), Ok(100_000.0));
    }

    /// Fails if two names have one field, or a value is set and not shown.
    #[test]
    fn every_name_can_be_set_and_is_shown() {
        for name in NAMES {
            let mut sampling = Sampling::greedy();
            let value = if name == "repeat_last_n" { "9" } else { "1" };
            let value = if name == "dry_base" { "3" } else { value };
            assert_eq!(set(&mut sampling, name, value), Ok(()), "{name}");
            let words = in_words(&sampling);
            let usual = ["typical", "dynatemp_exp"].contains(&name);
            assert!(
                usual || words.contains(&format!("{name} {value}")),
                "{words}"
            );
            assert!(set(&mut sampling, name, "x").is_err(), "{name}");
        }
        let unknown = set(&mut Sampling::greedy(), "heat", "1").expect_err("no such name");
        assert!(unknown.contains("repeat_penalty"), "{unknown}");
    }
}
