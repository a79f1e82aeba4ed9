//! `cargo measure answers`: whether a model answers well as people get it, with the defaults of `akunu-cli chat`.
//!
//! ```text
//! first   the README's question with many seeds: every answer names Paris, and no other name
//! easy    twenty easy questions, each with many seeds: how many answers are as right as the most likely one
//! greet   five greetings, for people to read
//! open    a hundred tasks without one right answer, of 400 tokens: how many end in a loop
//! ```
//!
//! The questions and what a right answer contains are in `answers/questions.json`. An answer is right if it contains one of
//! these words, as a whole word, whatever its case.

use akunu_repo::Failure;
use akunu_repo::process::ProcessError;
use serde::Deserialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const QUESTIONS: &str = include_str!("answers/questions.json");
/// Tokens of an answer to a task.
const OPEN_TOKENS: &str = "400";
/// Tokens of an answer to an easy question, for models that go on and on.
const EASY_TOKENS: &str = "200";

/// What to do.
#[derive(clap::Args)]
pub struct Args {
    /// What to ask
    #[arg(value_enum)]
    what: What,
    /// The model, as for `akunu-cli chat -m` [default: its default]
    #[arg(short, long)]
    model: Option<String>,
    /// Seeds of each question [default: 500 of first, 20 of easy, 1 of the others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Processes at once, with one thread each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: u64,
    /// The program to ask
    #[arg(long, value_name = "FILE", default_value = "target/release/akunu-cli")]
    program: PathBuf,
    /// Print every answer
    #[arg(long)]
    show: bool,
    /// Further options of `akunu-cli chat`
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    First,
    Easy,
    Greet,
    Open,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Questions {
    first: Question,
    easy: Vec<Question>,
    greetings: Vec<String>,
    open: Open,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    ask: String,
    right: Vec<String>,
    /// The names that an answer may have in it; empty: any.
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    subjects: Vec<String>,
    tasks: Vec<String>,
}

/// What `chat --json` prints of an answer.
#[derive(Deserialize)]
struct Answer {
    text: String,
    tokens: usize,
    stop: String,
}

/// Asks, judges and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let questions: Questions = serde_json::from_str(QUESTIONS)
        .map_err(|error| Failure::Found(format!("answers/questions.json: {error}")))?;
    match args.what {
        What::First => first(args, &questions.first),
        What::Easy => easy(args, &questions.easy),
        What::Greet => greet(args, &questions.greetings),
        What::Open => open(args, &questions.open),
    }
}

fn first(args: &Args, question: &Question) -> Result<(), Failure> {
    let seeds = Draws::Seeds(args.seeds.unwrap_or(500));
    let answers = ask(args, &[&question.ask], seeds, EASY_TOKENS)?;
    let wrong: Vec<&Answer> = answers
        .iter()
        .filter(|it| !question.judge(&it.text))
        .collect();
    for answer in &wrong {
        println!("wrong: {}", answer.text);
    }
    println!(
        "{} of {} answers name {} and nothing else",
        answers.len() - wrong.len(),
        answers.len(),
        question.right[0]
    );
    match wrong.len() {
        0 => Ok(()),
        n => Err(Failure::Found(format!("{n} answers are wrong"))),
    }
}

fn easy(args: &Args, questions: &[Question]) -> Result<(), Failure> {
    let texts: Vec<&str> = questions.iter().map(|question| &question.ask[..]).collect();
    let seeds = args.seeds.unwrap_or(20);
    let greedy = ask(args, &texts, Draws::MostLikely, EASY_TOKENS)?;
    let drawn = ask(args, &texts, Draws::Seeds(seeds), EASY_TOKENS)?;
    let (mut n_right, mut n_as_greedy, mut n_greedy) = (0, 0, 0);
    for (at, question) in questions.iter().enumerate() {
        let is_right = question.judge(&greedy[at].text);
        let of_this = drawn.iter().skip(at).step_by(questions.len());
        let right = of_this.filter(|it| question.judge(&it.text)).count();
        n_right += right;
        n_greedy += usize::from(is_right);
        n_as_greedy += if is_right { right } else { seeds as usize };
        let greedy = if is_right { "right" } else { "wrong" };
        println!(
            "{right:>4} of {seeds} right, most likely answer {greedy}: {}",
            question.ask
        );
    }
    let n = drawn.len();
    let percent = |n_of: usize| 100.0 * n_of as f64 / n as f64;
    println!(
        "most likely answers: {n_greedy} of {} right",
        questions.len()
    );
    println!(
        "drawn answers: {n_right} of {n} right, {:.1} %",
        percent(n_right)
    );
    println!(
        "as right as the most likely answer, or more: {n_as_greedy} of {n}, {:.1} %",
        percent(n_as_greedy)
    );
    Ok(())
}

fn greet(args: &Args, greetings: &[String]) -> Result<(), Failure> {
    let texts: Vec<&str> = greetings.iter().map(|text| &text[..]).collect();
    let answers = ask(
        args,
        &texts,
        Draws::Seeds(args.seeds.unwrap_or(1)),
        EASY_TOKENS,
    )?;
    for (text, answer) in texts.iter().cycle().zip(&answers) {
        println!("> {text}\n{}\n", answer.text);
    }
    Ok(())
}

fn open(args: &Args, open: &Open) -> Result<(), Failure> {
    let tasks = open.subjects.iter();
    let tasks: Vec<String> = tasks
        .flat_map(|subject| {
            open.tasks
                .iter()
                .map(move |task| task.replace("{}", subject))
        })
        .collect();
    let texts: Vec<&str> = tasks.iter().map(|text| &text[..]).collect();
    let seeds = Draws::Seeds(args.seeds.unwrap_or(1));
    let answers = ask(args, &texts, seeds, OPEN_TOKENS)?;
    let loops = answers
        .iter()
        .filter(|answer| ends_in_a_loop(&answer.text))
        .count();
    let stopped = answers
        .iter()
        .filter(|answer| answer.stop == "loop")
        .count();
    let tokens: usize = answers.iter().map(|answer| answer.tokens).sum();
    println!(
        "{loops} of {} answers end in a loop, {stopped} were stopped there; {tokens} tokens",
        answers.len()
    );
    Ok(())
}

/// How the answers to a text are drawn.
#[derive(Clone, Copy)]
enum Draws {
    /// Not at all: one answer, with temperature 0.
    MostLikely,
    /// As many answers, with the seeds from 1 on.
    Seeds(u64),
}

/// A text, and the commands before it.
struct Turn<'a> {
    text: &'a str,
    set: String,
}

/// The answers to all texts, with each of the seeds: first all texts with seed 1, then all with seed 2.
fn ask(args: &Args, texts: &[&str], draws: Draws, tokens: &str) -> Result<Vec<Answer>, Failure> {
    let set: Vec<String> = match draws {
        Draws::MostLikely => vec!["/set temp 0".into()],
        Draws::Seeds(n) => (1..=n).map(|seed| format!("/set seed {seed}")).collect(),
    };
    let all: Vec<Turn> = set
        .iter()
        .flat_map(|set| {
            texts.iter().map(|text| Turn {
                text,
                set: set.clone(),
            })
        })
        .collect();
    let shares: Vec<&[Turn]> = all.chunks(all.len().div_ceil(args.jobs as usize)).collect();
    let answers = std::thread::scope(|scope| {
        let asked = shares
            .into_iter()
            .map(|share| scope.spawn(|| converse(args, share, tokens)));
        let asked: Vec<_> = asked.collect();
        let joined = asked.into_iter().map(|thread| {
            let died = |_| Err(Failure::Found("a thread panicked".into()));
            thread.join().unwrap_or_else(died)
        });
        joined.collect::<Result<Vec<_>, Failure>>()
    })?;
    let answers: Vec<Answer> = answers.into_iter().flatten().collect();
    if args.show {
        for (Turn { text, set }, answer) in all.iter().zip(&answers) {
            println!(
                "--- {text} ({set}, {})
{}",
                answer.stop, answer.text
            );
        }
    }
    Ok(answers)
}

/// One process, which forgets the conversation before each question.
fn converse(args: &Args, share: &[Turn], tokens: &str) -> Result<Vec<Answer>, Failure> {
    let mut command = Command::new(&args.program);
    command.args(["chat", "--lines", "--json"]);
    command.args(args.model.iter().flat_map(|model| ["-m", model]));
    if args.jobs > 1 {
        command.args(["-t", "1"]);
    }
    command.args(["-n", tokens]).args(&args.options);
    let script: String = share
        .iter()
        .map(|Turn { text, set }| format!("/reset\n{set}\n{text}\n"))
        .collect();
    let program = args.program.display().to_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| ProcessError::NotStarted { program, source })?;
    let mut stdin = child.stdin.take();
    let said = std::thread::scope(|scope| {
        // A pipe that is full would wait for us, and we for the answers.
        scope.spawn(|| {
            stdin
                .take()
                .map(|mut stdin| stdin.write_all(script.as_bytes()))
        });
        child.wait_with_output()
    });
    let said = said.map_err(|source| Failure::io(&args.program, source))?;
    let lines = said
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let answers: Result<Vec<Answer>, _> = lines.map(serde_json::from_slice).collect();
    let answers = answers.map_err(|error| Failure::Found(format!("not an answer: {error}")))?;
    match answers.len() == share.len() {
        true => Ok(answers),
        false => Err(Failure::Found(format!(
            "{} of {} questions were answered; run {} chat by itself to see why",
            answers.len(),
            share.len(),
            args.program.display()
        ))),
    }
}

impl Question {
    fn judge(&self, text: &str) -> bool {
        let is_right = self.right.iter().any(|wanted| has_words(text, wanted));
        let is_name = |word: &&str| word.starts_with(char::is_uppercase);
        let known = |word: &str| self.names.iter().any(|name| name == word);
        is_right && (self.names.is_empty() || words(text).filter(is_name).all(known))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.filter(|word| !word.is_empty())
}

/// Whether a text has these words in it, one after the other, whatever their case.
fn has_words(text: &str, wanted: &str) -> bool {
    let lower = |text: &str| -> Vec<String> { words(text).map(str::to_lowercase).collect() };
    let (text, wanted) = (lower(text), lower(wanted));
    text.windows(wanted.len()).any(|at| at == wanted)
}

/// Whether the end of a text, at least 120 characters of it, repeats a cycle for the third time or more.
fn ends_in_a_loop(text: &str) -> bool {
    let last: Vec<char> = text.trim_end().chars().rev().collect();
    (1..=last.len() / 3).any(|cycle| {
        let pairs = last.iter().zip(&last[cycle..]);
        let run = pairs.take_while(|(a, b)| a == b).count();
        run + cycle >= (3 * cycle).max(120)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_are_well_formed() {
        let questions: Questions = serde_json::from_str(QUESTIONS).expect("valid");
        assert_eq!((questions.easy.len(), questions.greetings.len()), (20, 5));
        assert_eq!(
            questions.open.subjects.len() * questions.open.tasks.len(),
            100
        );
        assert!(questions.easy.iter().all(|it| !it.right.is_empty()));
    }

    /// The wrong ones were seen when penalties counted the question.
    #[test]
    fn an_answer_is_judged_by_whole_words_and_by_its_names() {
        let questions: Questions = serde_json::from_str(QUESTIONS).expect("valid");
        let paris = |text: &str| questions.first.judge(text);
        assert!(paris("The capital of France is Paris."));
        assert!(!paris("L'Étoile (The City) - Paris, the heart of France."));
        assert!(!paris("The capital of France is indeed Londen-Paris."));
        assert!(!paris("It is Rome."));
        let six = questions
            .easy
            .iter()
            .find(|it| it.right[0] == "6")
            .expect("there");
        assert!(six.judge("10 - 4 = 6") && !six.judge("It is 16."));
        assert!(has_words(
            "They need carbon\ndioxide (CO2).",
            "Carbon dioxide"
        ));
    }

    #[test]
    fn loops_are_found_at_the_end_only() {
        assert!(ends_in_a_loop(&"The cat sat on the mat. ".repeat(6)));
        assert!(!ends_in_a_loop(&"The cat sat on the mat. ".repeat(2)));
        let over = format!("{} And then it left.", "The cat sat on the mat. ".repeat(9));
        assert!(!ends_in_a_loop(&over));
        assert!(ends_in_a_loop(&"no ".repeat(50)));
        assert!(!ends_in_a_loop(""));
    }
}
