//! Which style a model was trained on: the one in which the call can be read that its template writes.

use akunu::Tokenizer;
use serde_json::json;

use super::grammar::control;
use super::scan::{Scanned, scan};
use super::style::Style;
use super::styles::STYLES;
use super::tool::{Tool, ToolCall};

/// A name that no tool has.
pub(crate) const PROBE: &str = "akunu_probe";

/// The style of a prompt in which a template has written tools, and a call of [`PROBE`] with `{"a": 1}`. A template that writes no
/// calls may tell the model how to: then all marks of the style are there. If it does not, the vocabulary may have a control token
/// with which calls begin. What is written in another way is not known here.
pub(crate) fn of_text(written: &str, tokenizer: &Tokenizer) -> Option<&'static Style> {
    let has_call = |style: &&'static Style| {
        let mut places = written.match_indices(style.trigger());
        places.any(|(at, _)| is_probe(style, &written[at..]))
    };
    let has_token =
        |style: &&'static Style| style.has_mark() && control(tokenizer, style.trigger()).is_some();
    let told = || {
        let marked = STYLES.iter().filter(|style| style.has_mark());
        let told = marked.filter_map(|style| Some((n_told(style, written)?, style)));
        // Of styles with equally many marks the first.
        told.rev().max_by_key(|(n, _)| *n).map(|(_, style)| style)
    };
    let by_call = STYLES.iter().find(has_call);
    if by_call.is_some() || written.contains(PROBE) {
        return by_call;
    }
    told().or_else(|| STYLES.iter().find(has_token))
}

/// Bytes of all marks of a style, if they are in a text.
fn n_told(style: &Style, text: &str) -> Option<usize> {
    let literals = style.literals();
    let has_all = literals.iter().all(|one| text.contains(one.trim()));
    has_all.then(|| literals.iter().map(|one| one.trim().len()).sum())
}

/// Whether a text begins with a call of the probe, in this very style.
fn is_probe(style: &Style, text: &str) -> bool {
    let probe = Tool {
        name: PROBE.into(),
        description: None,
        parameters: json!({"properties": {"a": {"type": "integer"}}}),
        strict: false,
    };
    let is_call = |call: &ToolCall| call.is_whole && call.arguments == "{\"a\":1}";
    let calls = match scan(style, text, &[probe]) {
        Scanned::Whole(calls, _) | Scanned::More(calls) => calls,
        Scanned::Other(_) => return false,
    };
    let field = style.arguments_field().map(|field| format!("\"{field}\""));
    let is_named = field.is_none_or(|field| text.contains(&field));
    is_named && calls.first().is_some_and(is_call)
}
