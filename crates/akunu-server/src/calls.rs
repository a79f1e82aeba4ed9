//! Calls of tools in the ways that models write them.
//!
//! [`styles`] is the table of these ways, each as data. The reader of answers ([`scan`]) and the grammars that enforce calls
//! ([`grammar`]) both follow from it, and a model's own style is the one in which the call can be read that its template writes
//! ([`detect`]).

mod cursor;
mod detect;
mod grammar;
mod lark_value;
mod object;
mod scan;
mod schema;
mod style;
mod styles;
mod tagged;
mod tool;
mod value;
mod written;

pub(crate) use self::cursor::overlap;
pub(crate) use self::detect::{PROBE, of_text};
pub(crate) use self::grammar::{Answering, grammar};
pub(crate) use self::scan::{Scanned, scan};
pub(crate) use self::schema::{allows, without_unique};
pub(crate) use self::style::{Place, Style};
pub(crate) use self::styles::{SILENT, STYLES, THOUGHTS, TOLD, marks};
pub(crate) use self::tool::{Tool, ToolCall, resolved};

#[cfg(test)]
mod tests;
