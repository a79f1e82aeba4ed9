//! What /set changes: how answers are made from now on.

use crate::limit::{self, limit};
use crate::sampling;
use akunu::{ChatOptions, SamplingOptions};

const MAX_TOKENS: &str = "max_tokens";

/// The names of all values.
pub fn names() -> impl Iterator<Item = &'static str> {
    sampling::names().chain([MAX_TOKENS])
}

/// The sampling values that were set, at the start or since, and those that they are laid over. They are kept apart so that
/// `/set temp 0` drops the penalties that a model suggests, and those alone, and `/set temp 0.7` brings them back.
pub struct Settings {
    suggested: SamplingOptions,
    set: SamplingOptions,
}

impl Settings {
    /// Values that were set at the start, over what the model suggests.
    pub fn new(suggested: &SamplingOptions, set: SamplingOptions) -> Settings {
        let suggested = *suggested;
        Settings { suggested, set }
    }
}

/// Sets a value, as in `temp 0.7`. Returns the values as text, or what is wrong.
pub fn set(
    settings: &mut Settings,
    options: &mut ChatOptions,
    text: &str,
) -> Result<String, String> {
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
        options.max_tokens = Some(n.ok_or_else(wrong)?.0);
    } else if !names().any(|known| known == name) {
        let known = Vec::from_iter(names()).join(", ");
        return Err(format!(
            "/set {name} {value}: there is no such value; there are {known}"
        ));
    } else {
        // The seed of the conversation goes on, also where /regen has moved it.
        settings.set.seed = Some(options.sampling.seed);
        let set = sampling::set(&mut settings.set, &name, value);
        set.map_err(|why| format!("/set {name} {value}: {why}"))?;
        options.sampling = settings.set.over(akunu::chat_sampling(&settings.suggested));
    }
    Ok(in_words(options))
}

/// All values.
pub fn in_words(options: &ChatOptions) -> String {
    let values = sampling::in_words(&options.sampling);
    match options.max_tokens {
        Some(n) => format!("{values}, {MAX_TOKENS} {}", limit::in_words(n)),
        None => format!("{values}, {MAX_TOKENS} as many as the context holds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_shown_and_refused() {
        let suggested = SamplingOptions {
            repetition_penalty: Some(1.2),
            ..SamplingOptions::default()
        };
        let mut settings = Settings::new(&suggested, SamplingOptions::default());
        let mut options = ChatOptions {
            sampling: akunu::chat_sampling(&suggested),
            ..ChatOptions::default()
        };
        let mut set =
            |options: &mut ChatOptions, text: &str| super::set(&mut settings, options, text);
        let seed = options.sampling.seed;
        let said = set(&mut options, "temp 0").expect("a temperature");
        assert!(said.contains("repeat_penalty 1, "), "{said}");
        set(&mut options, "repeat_penalty 1.3").expect("a penalty");
        let said = set(&mut options, "temp 0.5").expect("a temperature");
        assert!(said.starts_with("temp 0.5, top_k 40,"), "{said}");
        assert!(said.contains("repeat_penalty 1.3, "), "{said}");
        let said = set(&mut options, "temp 0").expect("a temperature");
        assert!(
            said.contains("repeat_penalty 1.3, "),
            "what was asked for stays: {said}"
        );
        assert_eq!(options.sampling.seed, seed);
        set(&mut options, "max-tokens 7").expect("a number");
        assert_eq!(options.max_tokens, Some(7));
        let said = set(&mut options, "max_tokens -1").expect("no limit");
        assert!(said.ends_with("max_tokens -1"), "{said}");
        assert_eq!(options.max_tokens, Some(usize::MAX));
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
