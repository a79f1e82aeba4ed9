//! What became of the cases of kernels, and what failed by cause and file.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::error::{CaseError, Cause};

/// A case that failed.
#[derive(Clone, Debug)]
pub struct CaseFailure {
    /// The case's label.
    pub label: String,
    /// What kind of failure it is.
    pub cause: Cause,
    /// The error.
    pub error: String,
}

impl CaseFailure {
    pub(super) fn new(label: &str, error: &CaseError) -> CaseFailure {
        CaseFailure {
            label: label.to_owned(),
            cause: error.cause(),
            error: error.to_string(),
        }
    }
}

impl fmt::Display for CaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.label, self.error)
    }
}

/// What became of the cases of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The kernel's name.
    pub kernel: String,
    /// Its file below `kernels/`.
    pub file: String,
    /// How many cases it has.
    pub cases: usize,
    /// The largest error of the cases that passed.
    pub worst: f64,
    /// The cases that failed.
    pub failures: Vec<CaseFailure>,
}

/// What failed, a paragraph for each cause and file with its first error; empty if all passed. One fault in a file fails all of
/// its kernels and cases in the same way.
pub fn failures_by_cause(outcomes: &[Outcome]) -> String {
    let mut groups: BTreeMap<(Cause, &str), Vec<(&Outcome, &CaseFailure)>> = BTreeMap::new();
    for outcome in outcomes {
        for failure in &outcome.failures {
            let key = (failure.cause, outcome.file.as_str());
            groups.entry(key).or_default().push((outcome, failure));
        }
    }
    let mut text = String::new();
    for ((cause, file), failed) in groups {
        let mut kernels: Vec<&str> = failed.iter().map(|(of, _)| of.kernel.as_str()).collect();
        kernels.dedup();
        let (first, failure) = failed[0];
        let _ = writeln!(
            text,
            "{file} {}: {} cases of {} kernels\n    {}, {failure}",
            cause.words(),
            failed.len(),
            kernels.len(),
            first.kernel,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kernel: &str, file: &str, failures: &[(Cause, &str)]) -> Outcome {
        let failures = failures.iter().map(|&(cause, label)| CaseFailure {
            label: label.to_owned(),
            cause,
            error: format!("{label} went wrong"),
        });
        Outcome {
            kernel: kernel.to_owned(),
            file: file.to_owned(),
            cases: 2,
            failures: failures.collect(),
            ..Default::default()
        }
    }

    /// Breaks when a fault of one file is as many paragraphs as it has kernels, or a small error hides a crash.
    #[test]
    fn failures_of_a_file_are_one_paragraph_for_each_cause() {
        let outcomes = [
            outcome("copy", "common/copy.metal", &[]),
            outcome("a_q4", "m/a.metal", &[(Cause::Different, "tail")]),
            outcome("b_q4", "m/b.metal", &[(Cause::NotCompiled, "one")]),
            outcome(
                "b_q8",
                "m/b.metal",
                &[(Cause::NotCompiled, "one"), (Cause::NotCompiled, "two")],
            ),
        ];
        assert_eq!(
            failures_by_cause(&outcomes),
            "m/b.metal does not compile: 3 cases of 2 kernels\n    b_q4, one: one went wrong\n\
             m/a.metal differs from its twin: 1 cases of 1 kernels\n    a_q4, tail: tail went wrong\n"
        );
        assert_eq!(failures_by_cause(&outcomes[..1]), "");
    }
}
