//! Which rows of a dispatch are attended to together.
//!
//! A *prompt* is some neighbouring rows of one sequence, each of which sees at least what the one before sees: their
//! queries are multiplied with the same keys. All other rows are *singles*, each with its own keys; so are rows that are
//! to be rounded as if they were alone, and rows of trees, which do not see all of what lies before them.
//!
//! A dispatch may have several of both, in any order.

use super::few::Single;
use super::many::Prompt;
use super::problem::Problem;

/// From as many rows on a prompt pays.
const MIN_PROMPT: usize = 4;

/// The rows of a dispatch. Its memory is used again for the next one.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) prompts: Vec<Prompt>,
    pub(super) singles: Vec<Single>,
}

impl Groups {
    /// Groups the rows of a problem. Without singles, each row that is alone is a prompt of its own.
    pub(super) fn fill(&mut self, problem: &Problem, has_singles: bool) {
        self.prompts.clear();
        self.singles.clear();
        let min_prompt = if has_singles { MIN_PROMPT } else { 1 };
        let mut first = 0;
        for rows in problem.rows.chunk_by(|a, b| {
            let is_one_sequence = a.sequence == b.sequence && a.is_active() && b.is_active();
            let are_alone = a.is_alone() || b.is_alone() || a.hidden | b.hidden != 0;
            is_one_sequence && !are_alone && a.length <= b.length
        }) {
            let end = first + rows.len();
            if rows.len() >= min_prompt {
                let prompt = Prompt::after(self.prompts.last(), first..end, problem);
                self.prompts.push(prompt);
            } else {
                for row in first..end {
                    let single = Single::after(self.singles.last(), row, problem);
                    self.singles.push(single);
                }
            }
            first = end;
        }
    }
}
