//! The commands that the documentation tells people to type, so that a program can hold them against its own arguments and
//! run them.
//!
//! Commands are lines of ```` ```sh ```` blocks, lines of ```` ```text ```` blocks that begin with `$`, and texts in single
//! backticks. What begins with a program's name, behind a pipe or
//! an assignment of a variable as well, is a command of it up to the next pipe, redirection or comment:
//!
//! ```text
//! cat notes.txt | akunu-cli chat "Summarise this:" > out.txt   # a comment
//!                           └──────────────────────┘
//! ```

use std::path::{Path, PathBuf};

/// A command of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    /// The file and the line, for people.
    pub place: String,
    /// The arguments, without the program's name. Brackets around what may be left out are gone.
    pub arguments: Vec<String>,
    /// Whether it is a line to be typed as it is, and not a mention within a sentence or a beginning that ends in `…`.
    pub is_line: bool,
    /// The whole line for a shell, with pipes and redirections.
    pub line: String,
    /// What the page shows that the command prints; empty when it shows nothing.
    pub prints: Vec<String>,
}

impl Documented {
    /// Whether some argument is to be replaced by whoever types it: `FILE`, or `N`, but not `Q4_0`.
    #[must_use]
    pub fn has_placeholder(&self) -> bool {
        let is_placeholder = |word: &String| {
            let mut letters = word.chars().filter(|c| c.is_alphabetic()).peekable();
            let has_digit = word.contains(|c: char| c.is_ascii_digit());
            letters.peek().is_some() && letters.all(char::is_uppercase) && !has_digit
        };
        self.arguments.iter().any(is_placeholder)
    }
}

/// All commands of a program that is called by these words, such as `["cargo", "xtask"]`, or as `cargo run -p NAME -- …`.
///
/// # Panics
/// When the documentation cannot be read.
#[must_use]
pub fn documented(name: &[&str]) -> Vec<Documented> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![
        root.join("README.md"),
        root.join("CONTRIBUTING.md"),
        root.join("python/README.md"),
    ];
    files.extend(list(&root.join("docs")));
    let crates = list(&root.join("crates")).into_iter();
    files.extend(crates.map(|folder| folder.join("README.md")));
    files.retain(|file| file.extension().is_some_and(|end| end == "md") && file.exists());
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("the documentation can be read");
        let place = file.strip_prefix(&root).unwrap_or(file);
        of_text(&place.display().to_string(), &text, name)
    };
    files.iter().flat_map(read).collect()
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

fn of_text(file: &str, text: &str, name: &[&str]) -> Vec<Documented> {
    let mut found = Vec::new();
    let mut fence = None;
    let mut line = String::new();
    // The command whose output is being read.
    let mut shown: Option<usize> = None;
    for (number, part) in text.lines().enumerate() {
        let place = format!("{file}:{}", number + 1);
        if let Some(language) = part.trim_start().strip_prefix("```") {
            fence = fence.is_none().then(|| language.trim().to_string());
            shown = None;
            continue;
        }
        match fence.as_deref() {
            Some("sh") => {
                line.push_str(part);
                if line.ends_with('\\') {
                    line.pop();
                    continue;
                }
                found.extend(of_line(&place, &std::mem::take(&mut line), name, true));
            }
            Some("text") => match (part.strip_prefix("$ "), &mut shown) {
                (Some(typed), shown) => {
                    let before = found.len();
                    found.extend(of_line(&place, typed, name, true));
                    *shown = (found.len() > before).then_some(before);
                }
                (None, Some(at)) => found[*at].prints.push(part.to_string()),
                (None, None) => {}
            },
            Some(_) => {}
            None => {
                let mentions = part.split('`').skip(1).step_by(2);
                found.extend(mentions.flat_map(|text| of_line(&place, text, name, false)));
            }
        }
    }
    found
}

fn of_line(place: &str, line: &str, name: &[&str], is_line: bool) -> Vec<Documented> {
    let words = words(line);
    let commands = words.split(|word| word == "|" || word == "&&");
    let documented = |arguments| Documented {
        place: place.to_string(),
        arguments,
        is_line: is_line && !line.contains(" …"),
        line: without_brackets(line),
        prints: Vec::new(),
    };
    commands
        .filter_map(|command| arguments(command, name))
        .map(documented)
        .collect()
}

/// The arguments of a command, if it is one of the program.
fn arguments(command: &[String], name: &[&str]) -> Option<Vec<String>> {
    let is_variable = |word: &&String| word.contains('=') && !word.starts_with('-');
    let n_variables = command.iter().take_while(is_variable).count();
    let mut words = command[n_variables..].to_vec();
    let is_end = |word: &String| ["<", ">", ";", "&"].contains(&word.as_str());
    words.truncate(words.iter().position(is_end).unwrap_or(words.len()));
    if words.starts_with(&["cargo".to_string(), "run".to_string()]) {
        let value = |flag: &str| words.iter().position(|word| word == flag).map(|at| at + 1);
        let program = words.get(value("-p")?)?.clone();
        let rest = words.split_off(value("--")?);
        words = [vec![program], rest].concat();
    }
    let (first, rest) = words.split_at_checked(name.len())?;
    (first == name).then(|| rest.to_vec())
}

/// The line without the brackets around what may be left out, and without `…`; those within quotes stay.
fn without_brackets(line: &str) -> String {
    let mut quote = None;
    let is_kept = |c: &char| match (quote, c) {
        (Some(open), _) => {
            quote = (*c != open).then_some(open);
            true
        }
        (None, '"' | '\'') => {
            quote = Some(*c);
            true
        }
        (None, _) => !['[', ']', '…'].contains(c),
    };
    line.chars().filter(is_kept).collect()
}

/// The words of a shell's line up to a comment, with quotes taken off, and those of optional arguments without their
/// brackets.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, '[' | ']' | '…') => {}
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a command is overlooked, or takes along what is none of its arguments.
    #[test]
    fn commands_are_found_in_blocks_and_sentences() {
        let text = "Say `prog run -x` or `other run`.\n\n```sh\n\
                    cat a.txt | A=1 prog run \"two words\" [-n N] FILE… > out   # prog comment\n\
                    prog long \\\n  --flag\ncargo run -p prog --features y -- go …\n```\n\n```rust\nprog no;\n```\n";
        let found = of_text("page.md", text, &["prog"]);
        let arguments: Vec<Vec<&str>> = found
            .iter()
            .map(|command| command.arguments.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(
            arguments,
            [
                &["run", "-x"][..],
                &["run", "two words", "-n", "N", "FILE"],
                &["long", "--flag"],
                &["go"],
            ]
        );
        assert_eq!((&*found[0].place, found[0].is_line), ("page.md:1", false));
        assert!(found[1].is_line && found[2].is_line && !found[3].is_line);
        assert!(found[1].has_placeholder() && !found[2].has_placeholder());
        assert_eq!(
            found[1].line,
            "cat a.txt | A=1 prog run \"two words\" -n N FILE > out   # prog comment"
        );
    }

    /// Breaks when what a page shows is taken from another command, or from another block.
    #[test]
    fn what_a_command_prints_belongs_to_it() {
        let text = "```text\n$ prog a '[x]'\none\ntwo\n$ other\nthree\n$ prog b\n```\n\n```text\nfour\n```\n";
        let found = of_text("page.md", text, &["prog"]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].prints, ["one", "two"]);
        assert_eq!(found[0].line, "prog a '[x]'");
        assert!(found[0].is_line && found[1].prints.is_empty());
    }
}
