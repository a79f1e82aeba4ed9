//! The commands of a conversation: lines that begin with a slash.

use super::conversation::Conversation;
use crate::failure::Failure;
use crate::terminal::note;
use std::path::PathBuf;

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub enum Slash {
    Help,
    Reset,
    System(String),
    Stats,
    Save(PathBuf),
    Load(PathBuf),
    Quit,
}

/// Name, what follows it, and what it does.
const COMMANDS: [(&str, &str, &str); 7] = [
    ("/help", "", "this list"),
    ("/reset", "", "forget the conversation"),
    (
        "/system",
        "TEXT",
        "begin anew, with this told to the model before",
    ),
    ("/stats", "", "context used and speed"),
    ("/save", "FILE", "write the conversation to a file"),
    ("/load", "FILE", "go on with the conversation of a file"),
    ("/quit", "", "leave, as Ctrl-D does"),
];

impl Slash {
    /// The command of a line: `None` when it is none, an error in words when it is a wrong one.
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
        if !argument.is_empty() && rest.is_empty() {
            return Some(Err(format!("{name} wants a {argument} after it")));
        }
        Some(Ok(match *name {
            "/reset" => Slash::Reset,
            "/system" => Slash::System(rest.to_string()),
            "/stats" => Slash::Stats,
            "/save" => Slash::Save(rest.into()),
            "/load" => Slash::Load(rest.into()),
            "/quit" => Slash::Quit,
            _ => Slash::Help,
        }))
    }

    /// Does it.
    pub fn run(self, talk: &mut Conversation) -> Result<(), Failure> {
        match self {
            Slash::Help => note(&help()),
            Slash::Reset => {
                talk.reset();
                note("the conversation begins anew");
            }
            Slash::System(text) => {
                talk.begin(Some(text));
                note("the conversation begins anew, with that told before");
            }
            Slash::Stats => note(&talk.stats()),
            Slash::Save(path) => talk.save(&path)?,
            Slash::Load(path) => talk.load(&path)?,
            Slash::Quit => {}
        }
        Ok(())
    }
}

fn help() -> String {
    let line = |(name, argument, what): &(&str, &str, &str)| {
        let command = format!("{name} {argument}");
        format!("  {command:<14} {what}")
    };
    let lines: Vec<String> = COMMANDS.iter().map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_commands_or_mistakes() {
        assert_eq!(Slash::parse("What is 1/2?"), None);
        assert_eq!(Slash::parse("/reset"), Some(Ok(Slash::Reset)));
        let save = Slash::Save("my talk.json".into());
        assert_eq!(Slash::parse("/save  my talk.json"), Some(Ok(save)));
        let wrong = Slash::parse("/rest").unwrap().unwrap_err();
        assert!(
            wrong.contains("/rest") && wrong.contains("/help"),
            "{wrong}"
        );
        let wrong = Slash::parse("/load").unwrap().unwrap_err();
        assert!(wrong.contains("wants a FILE"), "{wrong}");
    }

    /// A name in the list that `parse` does not know would give the help.
    #[test]
    fn every_command_of_the_help_is_understood() {
        for (name, ..) in COMMANDS.iter().filter(|(name, ..)| *name != "/help") {
            let parsed = Slash::parse(&format!("{name} x"));
            assert!(!matches!(parsed, Some(Ok(Slash::Help))), "{name}");
        }
    }
}
