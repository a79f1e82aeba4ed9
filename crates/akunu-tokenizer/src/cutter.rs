//! Cuts text into pieces by the patterns of a [`PreTokenizer`].
//!
//! Each pattern cuts every piece of the former into its matches and what lies between them.

use crate::error::TokenizerError;
use crate::pattern::Pattern;
use crate::pretokenizer::PreTokenizer;

/// The patterns of a pre-tokenizer, compiled.
#[derive(Debug)]
pub(crate) struct Cutter {
    steps: Vec<Pattern>,
}

impl Cutter {
    pub fn new(pre: &PreTokenizer) -> Result<Cutter, TokenizerError> {
        let steps = pre.patterns.iter().map(|pattern| Pattern::new(pattern));
        let steps: Result<_, String> = steps.collect();
        Ok(Cutter {
            steps: steps.map_err(|reason| TokenizerError::Backend {
                action: "built",
                reason,
            })?,
        })
    }

    /// Calls `each` with every piece of the text, in order.
    pub fn cut(&self, text: &str, each: &mut dyn FnMut(&str)) {
        cut(&self.steps, text, each);
    }
}

fn cut(steps: &[Pattern], text: &str, each: &mut dyn FnMut(&str)) {
    let Some((step, others)) = steps.split_first() else {
        return each(text);
    };
    step.segments(text, |segment| {
        if !segment.is_empty() {
            cut(others, segment, each);
        }
    });
}
