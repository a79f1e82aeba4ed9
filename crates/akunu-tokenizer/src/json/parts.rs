//! Limits on the normalizer, the pre-tokenizer and the post-processor of a `tokenizer.json`.
//!
//! A step of a normalizer makes a text at most so many times longer, and steps one after the other multiply: 27 that double
//! a letter make a text of one into 128 MiB. So the product has a limit.

use super::file::File;
use crate::charsmap::Charsmap;
use serde_json::Value;

/// How many times longer a text may become. `Prepend` and `Replace` of Llama 2 make it 12 times; with NFKC and lower case
/// it would be 264.
const MAX_TIMES: usize = 1024;

/// The most steps of a normalizer or a pre-tokenizer, with sequences counted too. Those in use have up to ten.
const MAX_STEPS: usize = 64;

/// Sequences inside of sequences. Those in use have one.
const MAX_DEPTH: usize = 4;

/// The most steps of a pre-tokenizer that put a character in front of a piece, or spell it longer: with steps that cut, each
/// doubles the pieces.
const MAX_PREFIXES: usize = 4;

/// The most bytes of all regular expressions. Those in use have a few hundred.
const MAX_PATTERN_BYTES: usize = 1 << 16;

/// The most ids that a post-processor may put around a text. Those in use put two or three.
const MAX_AROUND: usize = 64;

/// What was seen of a file so far.
#[derive(Debug)]
pub(super) struct Parts {
    times: usize,
    n_steps: usize,
    n_prefixes: usize,
    n_pattern_bytes: usize,
    /// A `Replace` can put text before the first character. The package then no longer knows where the text begins, and
    /// steps that change single characters read past its end.
    begins_elsewhere: bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            times: 1,
            n_steps: 0,
            n_prefixes: 0,
            n_pattern_bytes: 0,
            begins_elsewhere: false,
        }
    }
}

impl Parts {
    /// Checks all parts; returns how many times longer the normalizer can make a text.
    pub fn check(mut self, file: &File<'_>) -> Result<usize, String> {
        if let Some(step) = &file.normalizer {
            self.normalizer(step, 0)?;
        }
        let times = self.times;
        self.n_steps = 0;
        if let Some(step) = &file.pre_tokenizer {
            self.pre_tokenizer(step, 0)?;
        }
        if let Some(step) = &file.post_processor {
            check_around(step, 0, &mut 0)?;
        }
        Ok(times)
    }

    fn normalizer(&mut self, step: &Value, depth: usize) -> Result<(), String> {
        self.count("normalizer", step, depth)?;
        self.times = self.times.saturating_mul(self.times_of(step)?);
        if self.times > MAX_TIMES {
            return Err(format!(
                "has a `normalizer` that can make a text {} times longer; at most {MAX_TIMES} times are accepted: shorten \
                 its `prepend` and `content`",
                self.times
            ));
        }
        if !matches!(kind(step), "Replace" | "Strip" | "Prepend" | "Sequence") {
            self.changes_characters(step)?;
        }
        self.begins_elsewhere |= inserts(step);
        let inner = list(step, "normalizers");
        inner
            .iter()
            .try_for_each(|step| self.normalizer(step, depth + 1))
    }

    fn pre_tokenizer(&mut self, step: &Value, depth: usize) -> Result<(), String> {
        self.count("pre_tokenizer", step, depth)?;
        if step.get("replacement").is_some() || matches!(kind(step), "ByteLevel" | "Metaspace") {
            self.n_prefixes += 1;
        }
        if self.n_prefixes > MAX_PREFIXES {
            return Err(format!(
                "has a `pre_tokenizer` with more than {MAX_PREFIXES} steps that put a space in front of pieces"
            ));
        }
        if kind(step) == "ByteLevel" {
            self.changes_characters(step)?;
        }
        if step.get("length").and_then(Value::as_u64) == Some(0) {
            return Err("has a `pre_tokenizer` with a `length` of 0".into());
        }
        let inner = list(step, "pretokenizers");
        inner
            .iter()
            .try_for_each(|step| self.pre_tokenizer(step, depth + 1))
    }

    fn changes_characters(&self, step: &Value) -> Result<(), String> {
        match self.begins_elsewhere {
            true => Err(format!(
                "has a `normalizer` with a `Replace` whose pattern matches an empty text, and a step {:?} after it, which the \
                 crate `tokenizers` cannot apply: use `Prepend`, or a pattern that matches at least one character",
                kind(step)
            )),
            false => Ok(()),
        }
    }

    /// Counts a step and its pattern.
    fn count(&mut self, part: &str, step: &Value, depth: usize) -> Result<(), String> {
        self.n_steps += 1;
        if self.n_steps > MAX_STEPS || depth > MAX_DEPTH {
            return Err(format!(
                "has a `{part}` of more than {MAX_STEPS} steps, or more than {MAX_DEPTH} sequences inside of each other"
            ));
        }
        self.n_pattern_bytes += pattern(step).map_or(0, str::len);
        match self.n_pattern_bytes > MAX_PATTERN_BYTES {
            true => Err(format!(
                "has patterns of more than {MAX_PATTERN_BYTES} bytes in its `{part}`"
            )),
            false => Ok(()),
        }
    }

    /// How many times longer a step makes a text of one byte or more, at most. The package reads steps without a type by
    /// their fields, so that all fields count.
    fn times_of(&self, step: &Value) -> Result<usize, String> {
        // The most that a single character grows in UTF-8: U+1D160, U+FDFA and U+0130.
        let by_type = match kind(step) {
            "StripAccents" | "Strip" | "Sequence" | "Replace" | "Prepend" | "Nmt"
            | "Precompiled" => 1,
            "NFC" | "NFD" => 3,
            "NFKC" | "NFKD" => 11,
            "Lowercase" | "ByteLevel" => 2,
            // BERT's, which puts spaces around a Chinese character, decomposes and makes letters small; or an unknown one.
            _ => 2 * 3 * 2,
        };
        let text = |field: &str| step.get(field).and_then(Value::as_str);
        let by_prepend = text("prepend").map_or(1, |before| before.len().saturating_add(1));
        let by_content = text("content").map_or(1, |content| match shortest_match(step) {
            // An empty match before every byte.
            0 => content.len().saturating_add(1),
            n_bytes => content.len().div_ceil(n_bytes).max(1),
        });
        let by_charsmap = match text("precompiled_charsmap") {
            Some(charsmap) => longest_replacement(charsmap).map_err(|fault| {
                format!("has a `precompiled_charsmap` in its `normalizer` that {fault}")
            })?,
            None if kind(step) == "Precompiled" => {
                return Err("has a `normalizer` without its `precompiled_charsmap`".into());
            }
            None => 1,
        };
        let factors = [by_type, by_prepend, by_content, by_charsmap];
        Ok(factors.into_iter().fold(1, usize::saturating_mul))
    }
}

fn longest_replacement(charsmap: &str) -> Result<usize, String> {
    let bytes = base64::decode(charsmap).map_err(|error| format!("is not Base64: {error}"))?;
    Ok(Charsmap::parse(&bytes)?.longest_replacement().max(1))
}

/// Whether a step can write something where it found an empty text.
fn inserts(step: &Value) -> bool {
    let content = step.get("content").and_then(Value::as_str);
    content.is_some_and(|content| !content.is_empty()) && shortest_match(step) == 0
}

/// The fewest bytes that the pattern of a step matches; 0 for one that is wrong.
fn shortest_match(step: &Value) -> usize {
    let Some(pattern) = step.get("pattern") else {
        return 0;
    };
    if let Some(text) = pattern.get("String").and_then(Value::as_str) {
        return text.len();
    }
    let pattern = pattern.get("Regex").and_then(Value::as_str);
    pattern
        .and_then(|pattern| regex_automata::util::syntax::parse(&without_lookaround(pattern)).ok())
        .and_then(|parsed| parsed.properties().minimum_len())
        .unwrap_or(0)
}

/// A pattern without its groups that only look at what is before or after a match.
fn without_lookaround(pattern: &str) -> String {
    let mut kept = String::new();
    let mut rest = pattern;
    let (mut depth, mut in_class) = (0usize, false);
    while let Some(first) = rest.chars().next() {
        let is_looking = ["(?=", "(?!", "(?<=", "(?<!"]
            .iter()
            .any(|start| rest.starts_with(start));
        let escaped = rest.chars().nth(1).filter(|_| first == '\\');
        let n_bytes = first.len_utf8() + escaped.map_or(0, char::len_utf8);
        in_class = first == '[' || in_class && first != ']';
        if first == '(' && !in_class && (is_looking || depth > 0) {
            depth += 1;
        }
        if depth == 0 {
            kept.push_str(&rest[..n_bytes]);
        }
        if first == ')' && !in_class {
            depth = depth.saturating_sub(1);
        }
        rest = &rest[n_bytes..];
    }
    kept
}

/// The pattern of a step, if it is a regular expression.
fn pattern(step: &Value) -> Option<&str> {
    step.get("pattern")?.get("Regex")?.as_str()
}

/// Checks what a post-processor puts around a text: `n_ids` ids so far.
fn check_around(step: &Value, depth: usize, n_ids: &mut usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!(
            "has a `post_processor` of more than {MAX_DEPTH} sequences inside of each other"
        ));
    }
    if step.get("sep").is_some() {
        *n_ids += 2;
    }
    let mut n_texts = 0;
    let template = list(step, "single");
    for piece in template {
        if let Some(text) = piece.get("Sequence") {
            let is_first = text.get("id").and_then(Value::as_str) == Some("A");
            n_texts += if is_first { 1 } else { 2 };
        }
        if let Some(token) = piece.get("SpecialToken") {
            let name = token.get("id").and_then(Value::as_str).unwrap_or_default();
            let named = step.get("special_tokens").and_then(|named| named.get(name));
            *n_ids += named.map(|token| list(token, "ids").len()).ok_or_else(|| {
                format!("has a post-processor with {name:?}, whose ids it does not name")
            })?;
        }
        if *n_ids > MAX_AROUND {
            break;
        }
    }
    if *n_ids > MAX_AROUND {
        return Err(format!(
            "has a `post_processor.single` with more than {MAX_AROUND} ids around the text"
        ));
    }
    if step.get("single").is_some() && n_texts != 1 {
        return Err("has a `post_processor.single` that does not write the text once".into());
    }
    let inner = list(step, "processors");
    if inner.len() > MAX_STEPS {
        return Err(format!(
            "has a `post_processor` of more than {MAX_STEPS} steps"
        ));
    }
    inner
        .iter()
        .try_for_each(|step| check_around(step, depth + 1, n_ids))
}

fn kind(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(step: &'v Value, field: &str) -> &'v [Value] {
    let list = step.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}
