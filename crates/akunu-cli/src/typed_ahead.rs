//! What is typed while a program is busy: kept for later, and not shown in between.
//!
//! A terminal usually echoes keys at once, into the middle of an answer, and edits whole lines by
//! itself. While a conversation lasts, both are switched off:
//!
//! ```text
//! loading, answering   no echo; keys wait in the terminal's queue; Ctrl-C is a signal
//! at the prompt        rustyline's own mode, in which it reads that queue first
//! ```
//!
//! Carriage returns stay what they are, as in rustyline's mode, so that it makes no difference in which
//! of the two a key was pressed.

use crate::interrupt;

#[cfg(unix)]
mod terminal {
    use nix::sys::termios::{
        InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
    };
    use std::io;
    use std::sync::{Mutex, PoisonError};

    /// The terminal as it was before.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub fn silence() {
        let Ok(before) = tcgetattr(io::stdin()) else {
            return;
        };
        let mut quiet = before.clone();
        let local = LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::IEXTEN;
        quiet.local_flags.remove(local);
        // Ctrl-C would empty the queue of keys otherwise.
        quiet.local_flags.insert(LocalFlags::NOFLSH);
        quiet.input_flags.remove(InputFlags::ICRNL);
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        // A terminal that refuses shows what is typed, and works otherwise.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &quiet);
    }

    pub fn restore() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
        }
    }
}

#[cfg(not(unix))]
mod terminal {
    pub fn silence() {}

    pub fn restore() {}
}

/// A terminal that keeps what is typed; it is as before when this is dropped.
pub struct TypedAhead(());

impl TypedAhead {
    /// Keeps keys from now on. Standard input must be a terminal, or nothing happens.
    pub fn keep() -> TypedAhead {
        interrupt::take_signals();
        terminal::silence();
        TypedAhead(())
    }
}

impl Drop for TypedAhead {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Makes the terminal as it was before, when this was not done yet: before the process ends.
pub fn restore_terminal() {
    terminal::restore();
}
