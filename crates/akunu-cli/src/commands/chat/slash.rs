//! The commands of a conversation: lines that begin with a slash.

use super::conversation::Conversation;
use super::lines::Lines;
use super::saved;
use crate::failure::Failure;
use crate::terminal::note;
use std::io::Write;
use std::path::PathBuf;

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub enum Slash {
    Help,
    Regen,
    Continue,
    Undo,
    Reset,
    System(String),
    Set(String),
    Stats,
    Save { path: PathBuf, replace: bool },
    Load(PathBuf),
    Image(PathBuf),
    Quit,
}

/// Name, what follows it (in brackets what may be left out), and what it does.
const COMMANDS: [(&str, &str, &str); 13] = [
    ("/help", "", "this list"),
    ("/regen", "", "answer the last question again"),
    (
        "/continue",
        "",
        "go on with the last answer where it was cut",
    ),
    ("/undo", "", "forget the last question and its answer"),
    ("/reset", "", "forget the conversation"),
    ("/system", "TEXT", "start again with this system prompt"),
    (
        "/set",
        "[NAME VALUE]",
        "show or change temp, top_k, top_p, min_p, repeat_penalty, seed, max_tokens and others",
    ),
    (
        "/stats",
        "",
        "context used, speed, and how tokens are chosen",
    ),
    (
        "/save",
        "[--force] FILE",
        "write the conversation to a file",
    ),
    ("/load", "FILE", "continue the conversation of a file"),
    ("/image", "FILE", "show an image with the next question"),
    ("/quit", "", "leave, as Ctrl-D does"),
    ("/exit", "", "the same"),
];

/// What is typed besides commands.
const KEYS: &str = "  \"\"\"                  begins and ends a question of several lines\n  \
    Tab                  completes commands and file names\n  \
    Ctrl-C               stops an answer, clears a line, leaves if it is empty";

/// The names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

impl Slash {
    /// The command of a line: `None` if it is not a command, a message for people if it is a wrong one.
    pub fn parse(line: &str) -> Option<Result<Slash, String>> {
        if !line.starts_with('/') {
            return None;
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let known = COMMANDS.iter().find(|(known, ..)| *known == name);
        let Some((name, argument, _)) = known else {
            return Some(Err(format!("there is no {name}; /help lists the commands")));
        };
        let wanted = argument.rsplit_once("] ").map_or(*argument, |(_, it)| it);
        let file = rest.strip_prefix("--force ").unwrap_or(rest).trim();
        if !wanted.is_empty() && !wanted.starts_with('[') && (rest.is_empty() || file == "--force")
        {
            return Some(Err(format!("{name} wants a {wanted} after it")));
        }
        Some(Ok(match *name {
            "/regen" => Slash::Regen,
            "/continue" => Slash::Continue,
            "/undo" => Slash::Undo,
            "/reset" => Slash::Reset,
            "/system" => Slash::System(rest.to_string()),
            "/set" => Slash::Set(rest.to_string()),
            "/stats" => Slash::Stats,
            "/save" => Slash::Save {
                path: file.into(),
                replace: file.len() < rest.len(),
            },
            "/load" => Slash::Load(rest.into()),
            "/image" => Slash::Image(rest.into()),
            "/quit" | "/exit" => Slash::Quit,
            _ => Slash::Help,
        }))
    }

    /// Does what it says, but for leaving.
    pub fn run(
        self,
        talk: &mut Conversation,
        lines: &mut Lines,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self {
            Slash::Help => note(&help()),
            Slash::Regen => return talk.answer_again(out),
            Slash::Continue => return talk.resume(out),
            Slash::Undo => note(match talk.chat().undo() {
                Some(_) => "the last question and its answer are forgotten",
                None => "there is no question to take back",
            }),
            Slash::Reset => {
                talk.chat().reset();
                note("the conversation begins anew");
            }
            Slash::System(text) => {
                talk.chat().begin(Some(text));
                note("the conversation begins anew, with that told before");
            }
            Slash::Set(text) => match talk.set(&text) {
                Ok(values) => note(&values),
                Err(wrong) => note(&wrong),
            },
            Slash::Stats => note(&talk.stats()),
            Slash::Save { path, replace } => return save(talk, lines, path, replace),
            Slash::Load(path) => {
                let messages = saved::read(&path)?;
                let n = messages.len();
                talk.chat().go_on_with(messages);
                note(&format!("{n} messages loaded from {}", path.display()));
            }
            Slash::Image(path) => {
                let n_tokens = talk.show(&path)?;
                let shown = path.display();
                note(&format!(
                    "{shown} goes with the next question, as {n_tokens} tokens"
                ));
            }
            Slash::Quit => {}
        }
        Ok(())
    }
}

/// Saves the conversation; a file that exists only when that is wanted.
fn save(
    talk: &Conversation,
    lines: &mut Lines,
    path: PathBuf,
    replace: bool,
) -> Result<(), Failure> {
    let shown = path.display();
    saved::check(&path)?;
    if !replace && path.symlink_metadata().is_ok() {
        let question = format!("{shown} exists: replace it? [y/N] ");
        let ask = || lines.confirm(&question);
        match talk.interrupt().while_waiting(ask)? {
            Some(true) => {}
            Some(false) => {
                note("not saved");
                return Ok(());
            }
            None => {
                note(&format!(
                    "{shown} exists and is left as it is: /save --force {shown} replaces it"
                ));
                return Ok(());
            }
        }
    }
    saved::write(talk.messages(), &path)?;
    let n = talk.messages().len();
    note(&format!("{n} messages saved to {shown}"));
    Ok(())
}

fn help() -> String {
    let line = |(name, argument, what): &(&str, &str, &str)| {
        let command = format!("{name} {argument}");
        format!("  {command:<20} {what}")
    };
    let mut lines: Vec<String> = COMMANDS.iter().map(line).collect();
    lines.push(KEYS.to_string());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_commands_or_mistakes() {
        assert_eq!(Slash::parse("What is 1/2?"), None);
        assert_eq!(Slash::parse("/reset"), Some(Ok(Slash::Reset)));
        assert_eq!(Slash::parse("/exit"), Some(Ok(Slash::Quit)));
        let save = |replace| Slash::Save {
            path: "my talk.json".into(),
            replace,
        };
        assert_eq!(Slash::parse("/save  my talk.json"), Some(Ok(save(false))));
        let forced = Slash::parse("/save --force my talk.json");
        assert_eq!(forced, Some(Ok(save(true))));
        assert_eq!(Slash::parse("/set"), Some(Ok(Slash::Set(String::new()))));
        let wrong = |line| Slash::parse(line).unwrap().unwrap_err();
        let said = wrong("/rest");
        assert!(said.contains("/rest") && said.contains("/help"), "{said}");
        for line in ["/load", "/save", "/save --force", "/image"] {
            assert!(wrong(line).contains("wants a FILE"), "{line}");
        }
    }

    /// A name in the list that `parse` does not know would give the help.
    #[test]
    fn every_command_of_the_help_is_understood() {
        for name in names().filter(|name| *name != "/help") {
            let parsed = Slash::parse(&format!("{name} x"));
            assert!(!matches!(parsed, Some(Ok(Slash::Help))), "{name}");
        }
    }
}
