//! Images in conversations: a vision tower, what it makes of pictures, and their places in a prompt.
//!
//! ```text
//! picture ─Processor─▶ tiles ─tower─▶ features ┐
//! messages ─template─▶ placeholders ──Wording──┴▶ tokens, and spans of them that the features take
//! ```

mod prompt;
mod vision;

pub(crate) use prompt::{message, prompt, shown};
pub use vision::{Image, Vision};
