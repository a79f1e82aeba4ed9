//! What /set changes: how answers are made from now on.

use crate::sampling;
use akunu::ChatOptions;

const MAX_TOKENS: &str = "max_tokens";

/// The names of all values.
pub fn names() -> impl Iterator<Item = &'static str> {
    sampling::names().chain([MAX_TOKENS])
}

/// Sets a value, as in `temp 0.7`. Returns the values as text, or what is wrong.
pub fn set(options: &mut ChatOptions, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(in_words(options));
    }
    let (name, value) = text.split_once([' ', '=']).unwrap_or((text, ""));
    let (name, value) = (name.replace('-', "_"), value.trim());
    if value.is_empty() {
        return Err(format!("/set {name} wants a value after it"));
    }
    if name == MAX_TOKENS {
        let n = value.parse().ok().filter(|n: &usize| *n > 0);
        let wrong = || format!("/set {name} {value}: it must be a whole number above 0");
        options.max_tokens = n.ok_or_else(wrong)?;
    } else {
        let set = sampling::set(&mut options.sampling, &name, value);
        set.map_err(|why| format!("/set {name} {value}: {why}"))?;
    }
    Ok(in_words(options))
}

/// All values.
pub fn in_words(options: &ChatOptions) -> String {
    let values = sampling::in_words(&options.sampling);
    format!("{values}, {MAX_TOKENS} {}", options.max_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu::Sampling;

    #[test]
    fn values_are_set_shown_and_refused() {
        let mut options = ChatOptions {
            sampling: Sampling::greedy(),
            ..ChatOptions::default()
        };
        let said = set(&mut options, "temp 0.5").expect("a temperature");
        assert!(said.starts_with("temp 0.5, top_k 0,"), "{said}");
        set(&mut options, "max-tokens 7").expect("a number");
        assert_eq!(options.max_tokens, 7);
        for (wrong, why) in [
            ("temp", "wants a value"),
            ("temp hot", "0 or more"),
            ("max_tokens 0", "above 0"),
            ("heat 1", "no such value"),
        ] {
            let said = set(&mut options, wrong).expect_err(wrong);
            assert!(said.contains(why), "{said}");
        }
        let shown = set(&mut options, "dry-multiplier 0.8").expect("a number");
        for name in [
            "temp",
            "top_k",
            "repeat_penalty",
            "dry_multiplier",
            "seed",
            "max_tokens",
        ] {
            assert!(shown.contains(&format!("{name} ")), "{name}: {shown}");
        }
        assert!(
            !shown.contains("xtc"),
            "what nobody has set is not shown: {shown}"
        );
    }
}
