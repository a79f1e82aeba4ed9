//! How steps ended, and the table at the end of `cargo xtask test`.
//!
//! A step that needs what this machine lacks is skipped, and the table says what would make it run. CI
//! is strict: there a skipped step is a failure, or nobody would notice that it never ran.

use akunu_repo::Failure;
use std::time::Duration;

/// Whether steps may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipping {
    /// On a person's machine.
    Allowed,
    /// In CI.
    Fails,
}

impl Skipping {
    /// `is_strict` is `--strict`; `ci` is the environment's `CI`, which every CI sets to `true`.
    pub fn choose(is_strict: bool, ci: Option<&str>) -> Skipping {
        if is_strict || matches!(ci, Some("true" | "1")) {
            return Skipping::Fails;
        }
        Skipping::Allowed
    }
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Passed,
    /// It did not run, and why.
    Skipped(String),
    /// What is wrong.
    Failed(String),
}

impl Verdict {
    /// What a step's result means.
    pub fn of(result: Result<(), Failure>, skipping: Skipping) -> Verdict {
        match (result, skipping) {
            (Ok(()), _) => Verdict::Passed,
            (Err(lacking @ Failure::Unavailable { .. }), Skipping::Allowed) => {
                Verdict::Skipped(lacking.to_string())
            }
            (Err(failure), _) => Verdict::Failed(failure.to_string()),
        }
    }

    /// One word for the table.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "ok",
            Verdict::Skipped(_) => "skipped",
            Verdict::Failed(_) => "FAILED",
        }
    }

    /// Why it is not well.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Passed => None,
            Verdict::Skipped(why) | Verdict::Failed(why) => Some(why),
        }
    }
}

/// A step that has ended.
pub struct Outcome {
    /// The step.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub verdict: Verdict,
}

/// Prints the table; an error when a step failed.
pub fn summarise(outcomes: &[Outcome], total: Duration) -> Result<(), Failure> {
    print!("{}", table(outcomes, total));
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Failed(_)))
        .map(|outcome| outcome.name)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let (n, names) = (failed.len(), failed.join(", "));
    Err(Failure::Found(format!(
        "{n} of {} steps failed: {names}",
        outcomes.len()
    )))
}

/// One line a step, and below it the first line of the reason where it is not well.
fn table(outcomes: &[Outcome], total: Duration) -> String {
    let mut text = "summary\n".to_owned();
    for outcome in outcomes {
        let (name, word) = (outcome.name, outcome.verdict.word());
        text += &format!("  {name:<9} {word:<7} {:>8}\n", seconds(outcome.took));
        if let Some(reason) = outcome.verdict.reason() {
            text += &format!(
                "            {}\n",
                reason.lines().next().unwrap_or_default()
            );
        }
    }
    text + &format!("  {:<9} {:<7} {:>8}\n", "all", "", seconds(total))
}

/// A duration as the table shows it.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking() -> Result<(), Failure> {
        Err(Failure::Unavailable {
            why: "rustc 1.95 or newer is wanted, none was found".to_owned(),
            fix: "apt-get install rustc-web".to_owned(),
        })
    }

    fn outcome(name: &'static str, verdict: Verdict) -> Outcome {
        Outcome {
            name,
            took: Duration::ZERO,
            verdict,
        }
    }

    #[test]
    fn ci_and_strict_allow_no_skipping() {
        for (is_strict, ci, expected) in [
            (false, None, Skipping::Allowed),
            (false, Some(""), Skipping::Allowed),
            (false, Some("false"), Skipping::Allowed),
            (false, Some("true"), Skipping::Fails),
            (false, Some("1"), Skipping::Fails),
            (true, None, Skipping::Fails),
        ] {
            assert_eq!(
                Skipping::choose(is_strict, ci),
                expected,
                "{is_strict} {ci:?}"
            );
        }
    }

    /// Breaks when a real failure is skipped, or when CI passes over a step that did not run.
    #[test]
    fn only_what_the_machine_lacks_is_skipped_and_only_outside_ci() {
        let found = || Err(Failure::Found("a bug".to_owned()));
        for (result, skipping, word) in [
            (Ok(()), Skipping::Fails, "ok"),
            (lacking(), Skipping::Allowed, "skipped"),
            (lacking(), Skipping::Fails, "FAILED"),
            (found(), Skipping::Allowed, "FAILED"),
        ] {
            assert_eq!(Verdict::of(result, skipping).word(), word);
        }
    }

    #[test]
    fn a_skipped_step_is_listed_with_the_command_that_would_make_it_run() {
        let skipped = Verdict::of(lacking(), Skipping::Allowed);
        let text = table(&[outcome("macos", skipped)], Duration::ZERO);
        assert!(
            text.contains("macos     skipped") && text.contains("apt-get install rustc-web"),
            "{text}"
        );
    }

    /// Fails if a failing step is forgotten by the exit code, or a skipped one counts as failed.
    #[test]
    fn one_failure_fails_the_whole() {
        let passed = || outcome("a", Verdict::Passed);
        let skipped = || outcome("b", Verdict::Skipped("why".to_owned()));
        let failed = outcome("c", Verdict::Failed("why".to_owned()));
        assert!(summarise(&[passed(), skipped()], Duration::ZERO).is_ok());
        let failed = summarise(&[passed(), skipped(), failed], Duration::ZERO);
        let failed = failed.expect_err("c failed").to_string();
        assert_eq!(failed, "1 of 3 steps failed: c");
    }
}
