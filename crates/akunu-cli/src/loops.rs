//! The options about answers that only repeat themselves.

use clap::Args;

/// When an answer ends because it repeats itself.
#[derive(Args)]
pub struct LoopArgs {
    /// Let an answer go on that only repeats itself
    #[arg(long, conflicts_with = "loop_window")]
    no_loop_stop: bool,
    /// End an answer when its last N tokens, or more, repeat the same few tokens for at least the third time [default: 64 in
    /// chat, otherwise answers may repeat themselves]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    loop_window: Option<u32>,
}

impl LoopArgs {
    /// The window of an answer, `default` unless an option says otherwise.
    pub fn window(&self, default: Option<u32>) -> Option<u32> {
        match self.no_loop_stop {
            true => None,
            false => self.loop_window.or(default),
        }
    }
}
