//! Text of several lines, between three quotation marks:
//!
//! ```text
//! > """What does this do?
//! fn main() {}
//! """
//! ```
//!
//! It is a question as it stands, even if it begins with a slash.

const MARK: &str = "\"\"\"";

/// Whether a text has begun with the marks and not ended with them yet.
pub fn is_open(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix(MARK);
    rest.is_some_and(|rest| !rest.contains(MARK))
}

/// What stands between the marks, and after them; `None` for a text that does not begin with them.
pub fn inside(text: &str) -> Option<String> {
    let rest = text.trim_start().strip_prefix(MARK)?;
    let whole = match rest.split_once(MARK) {
        Some((inner, after)) => format!("{inner}{after}"),
        None => rest.to_string(),
    };
    Some(whole.trim_matches('\n').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_together_until_the_marks_come_again() {
        assert!(is_open("\"\"\"one"));
        assert!(is_open("\"\"\"\n/two\n"));
        assert!(!is_open("\"\"\"one\n\"\"\""));
        assert!(!is_open("say \"\"\"one"), "not at the beginning");
        assert_eq!(inside("\"\"\"\n/a\nb\n\"\"\"").as_deref(), Some("/a\nb"));
        assert_eq!(inside("\"\"\"a\"\"\" b").as_deref(), Some("a b"));
        assert_eq!(inside("\"\"\"never ended").as_deref(), Some("never ended"));
        assert_eq!(inside("plain"), None);
    }
}
