//! What a process wrote on stderr, without what belongs to its user.

/// Bytes that are kept.
const MOST: usize = 4000;

/// Something of the user, and what stands in its place.
pub type Replacement = (String, &'static str);

/// The folders and the name of the user, as the environment has them. The longest come first, so that no part of one is left.
pub fn of_this_user(workspace: &str) -> Vec<Replacement> {
    let of = |name| std::env::var(name).ok();
    let mut replacements: Vec<Replacement> = vec![(workspace.to_owned(), "<workspace>")];
    let named = [
        ("HOME", "<home>"),
        ("TMPDIR", "<temporary>"),
        ("USER", "<user>"),
        ("LOGNAME", "<user>"),
        ("HOSTNAME", "<host>"),
    ];
    for (name, place) in named {
        replacements.extend(of(name).map(|value| (value, place)));
    }
    // A short name is a part of too many words.
    replacements.retain(|(text, _)| text.len() > 2);
    replacements.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    replacements
}

/// The end of a text, without these.
pub fn end_of(text: &str, replacements: &[Replacement]) -> String {
    let mut text = text.to_owned();
    for (from, to) in replacements {
        text = text.replace(from, to);
    }
    let mut first = text.len().saturating_sub(MOST);
    while !text.is_char_boundary(first) {
        first += 1;
    }
    text[first..].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a report shows who sent it.
    #[test]
    fn folders_and_names_of_the_user_are_replaced() {
        let replacements = [
            ("/people/ada/akunu".to_owned(), "<workspace>"),
            ("/people/ada".to_owned(), "<home>"),
            ("ada".to_owned(), "<user>"),
        ];
        let said = "/people/ada/akunu/x.rs: failed, see /people/ada/log of ada";
        assert_eq!(
            end_of(said, &replacements),
            "<workspace>/x.rs: failed, see <home>/log of <user>"
        );
    }

    #[test]
    fn only_the_end_is_kept() {
        let said = "é".repeat(MOST);
        assert_eq!(end_of(&said, &[]).len(), MOST);
    }
}
