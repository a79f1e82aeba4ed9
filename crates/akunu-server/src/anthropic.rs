//! Anthropic's protocol: `/v1/messages` and `/v1/messages/count_tokens`.

mod error;
mod input;
mod messages;
mod stream;

pub(crate) use self::error::MessageError;
pub(crate) use self::messages::{count_tokens, messages};
