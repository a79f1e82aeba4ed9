//! A conversation: its tokens, what the pages know of them, and what is computed from them.

mod embed;
mod feed;
mod file;
mod guess;
mod images;
mod observe;
mod save;
mod score;
mod shift;
mod state;

pub use self::feed::{Fed, Reading, Watch};
pub(crate) use self::shift::Shifted;
pub use self::state::{Session, SessionOptions};
