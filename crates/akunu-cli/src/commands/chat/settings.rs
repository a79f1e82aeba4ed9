//! What /set changes: how answers are made from now on.

use crate::limit::{self, limit};
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
        let n = limit(value).ok().filter(|limit| limit.0 > 0);
        let wrong = || {
            format!("/set {name} {value}: it must be a whole number above 0, or -1 for no limit")
        };
        options.max_tokens = n.ok_or_else(wrong)?.0;
    } else if !names().any(|known| known == name) {
        let known = Vec::from_iter(names()).join(", ");
        return Err(format!(
            "/set {name} {value}: there is no such value; there are {known}"
        ));
    } else {
        let set = sampling::set(&mut options.sampling, &name, value);
        set.map_err(|why| format!("/set {name} {value}: {why}"))?;
    }
    Ok(in_words(options))
}

/// All values.
pub fn in_words(options: &ChatOptions) -> String {
    let values = sampling::in_words(&options.sampling);
    let max_tokens = limit::in_words(options.max_tokens);
    format!("{values}, {MAX_TOKENS} {max_tokens}")
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
        let said = set(&mut options, "max_tokens -1").expect("no limit");
        assert!(said.ends_with("max_tokens -1"), "{said}");
        assert_eq!(options.max_tokens, usize::MAX);
        set(&mut options, "seed -1").expect("a random seed");
        for (wrong, why) in [
            ("temp", "wants a value"),
            ("temp hot", "0 or more"),
            ("max_tokens 0", "above 0"),
            ("heat 1", "no such value"),
            ("heat 1", "seed, max_tokens"),
            ("top_k 9999999999", "from 0 to 4294967295"),
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
