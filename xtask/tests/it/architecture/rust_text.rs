//! Rust source without its comments and strings: enough of a lexer to look for keywords.

/// The code alone; comments, strings and characters become a space, line breaks stay.
pub fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest)
            .or_else(|| raw_string(rest, &code))
            .or_else(|| quoted(rest));
        let n = skipped.unwrap_or(first.len_utf8());
        if skipped.is_some() {
            code.push(' ');
            code.extend(rest[..n].chars().filter(|c| *c == '\n'));
        } else {
            code.push(first);
        }
        rest = &rest[n..];
    }
    code
}

/// The length of the comment that starts here, if one does.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    Some(at)
}

/// The length of the raw string (`r"…"`, `r#"…"#`) that starts here, if one does. `before` tells an
/// `r` that begins a string from one that ends a word.
fn raw_string(text: &str, before: &str) -> Option<usize> {
    let in_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let after_r = text
        .strip_prefix('r')
        .filter(|_| !in_word || before.ends_with(['b', 'c']))?;
    let n_hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let body = after_r[n_hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(n_hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(1 + n_hashes + 1 + length)
}

/// The length of the string or character that starts here, if one does. A lifetime is neither.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ if quote == '\'' && !text[1..].starts_with('\\') && at > 1 => return None,
            _ => {}
        }
    }
    (quote == '"').then_some(text.len())
}

/// Whether the word stands in the code by itself, not as a part of a longer name.
pub fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|part| part == word)
}

#[test]
fn comments_and_strings_vanish_and_code_stays() {
    let cases = [
        ("a // word\nb", "a  \nb"),
        ("a /* x /* word */ y */ b", "a   b"),
        ("f(\"word \\\" word\") b", "f( ) b"),
        ("f(r#\"word \" word\"#) b", "f( ) b"),
        ("f(br\"word\\\") b", "f(b ) b"),
        (
            "for<'a> fn(&'a str, 'x', '\\'', '\"') b",
            "for<'a> fn(&'a str,  ,  ,  ) b",
        ),
        ("var\"s\"", "var "),
    ];
    for (source, code) in cases {
        assert_eq!(code_only(source), code, "{source}");
    }
}

#[test]
fn words_are_whole() {
    assert!(has_word("x { unsafe { y } }", "unsafe"));
    assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
}
