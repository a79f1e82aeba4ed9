//! Endpoints of our own, and of other local servers.

mod completion;
mod health;
mod props;
mod rerank;
mod template;
mod tokens;

pub(crate) use self::completion::{completion, infill};
pub(crate) use self::health::health;
pub(crate) use self::props::{props, slots};
pub(crate) use self::rerank::rerank;
pub(crate) use self::template::apply_template;
pub(crate) use self::tokens::{detokenize, tokenize};
