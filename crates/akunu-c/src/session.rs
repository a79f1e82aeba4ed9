//! A session: tokens in, text out.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::Mutex;

use akunu::{CancelFlag, Error, GenerateOptions, Model, SessionOptions};

use crate::border::{self, AkunuOnText, Listener, Room};
use crate::handles::{self, Thing};
use crate::model::AkunuModel;
use crate::options::{self, AkunuOptions, Values};
use crate::status::{AkunuStatus, Failure, call};
use crate::stream::{AkunuStop, only, stop_of};

/// A text that a model continues. One call at a time uses it; only akunu_session_cancel may come from another thread.
pub struct AkunuSession(());

struct Session {
    own: Mutex<akunu::Session>,
    cancel: CancelFlag,
}

impl Thing for Session {
    type Opaque = AkunuSession;
    const NAME: &'static str = "session";
}

impl Session {
    fn feed(&self, ids: &[u32]) -> Result<(), Failure> {
        let mut session = only(&self.own, Session::NAME)?;
        self.cancel.reset();
        let fed = session.feed_watched(ids, &mut |_| {
            if self.cancel.is_set() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        fed.map(drop).map_err(Failure::from)
    }

    fn generate(&self, values: Values, listener: &Listener) -> Result<AkunuStop, Failure> {
        let mut session = only(&self.own, Session::NAME)?;
        self.cancel.reset();
        let default = GenerateOptions::default();
        let mut generation = session.generate(GenerateOptions {
            max_tokens: values.max_tokens.unwrap_or(default.max_tokens),
            sampling: values.sampling.over(default.sampling),
            stop: values.stop,
            cancel: self.cancel.clone(),
            ..default
        })?;
        for token in generation.by_ref() {
            let text = token?.text;
            if !text.is_empty() && !listener.hear(&text) {
                return Ok(AkunuStop::Cancelled);
            }
        }
        let tail = generation.tail();
        if !tail.is_empty() {
            listener.hear(&tail);
        }
        Ok(stop_of(generation.stop()))
    }
}

/// Makes a session; akunu_session_free ends it. Of the options, which may be null, context counts.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_new(
    model: *const AkunuModel,
    options: *const AkunuOptions,
    out: *mut *mut AkunuSession,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let model = handles::get::<Model>(model)?;
        let session = model.session(SessionOptions {
            context: options::read(options)?.context,
            ..SessionOptions::default()
        });
        let session = Session {
            own: Mutex::new(session.map_err(Error::from)?),
            cancel: CancelFlag::default(),
        };
        border::write(out, handles::give(session), "out")
    })
}

/// Ends a session, once the call under way has ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_free(session: *mut AkunuSession) -> AkunuStatus {
    call(|| handles::take::<Session>(session))
}

/// Puts tokens behind those that the session has, and reads them.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_feed(
    session: *mut AkunuSession,
    ids: *const u32,
    n_ids: usize,
) -> AkunuStatus {
    call(|| {
        let session = handles::get::<Session>(session)?;
        session.feed(&border::list(ids, n_ids, "ids")?)
    })
}

/// Goes on with the text, and hands it to `on_text` piece by piece, in this thread; `context` comes back with each. Of the
/// options, which may be null, all but device, threads, kv, context and system count; without them the best token is taken
/// always, until the model ends. Why it ended is written to `stop`, unless that is null.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_generate(
    session: *mut AkunuSession,
    options: *const AkunuOptions,
    on_text: AkunuOnText,
    context: *mut c_void,
    stop: *mut AkunuStop,
) -> AkunuStatus {
    let listener = Listener { on_text, context };
    call(|| {
        let values = options::read(options)?;
        let ended = handles::get::<Session>(session)?.generate(values, &listener)?;
        border::write_if_wanted(stop, ended, "stop")
    })
}

/// Writes the tokens of the session, given and generated. Their number is written in any case; with `to` null and
/// `capacity` 0 nothing else is.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_tokens(
    session: *const AkunuSession,
    to: *mut u32,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        let session = handles::get::<Session>(session)?;
        room.fill(only(&session.own, Session::NAME)?.tokens())
    })
}

/// Forgets all but the first `length` tokens.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_truncate(session: *mut AkunuSession, length: usize) -> AkunuStatus {
    call(|| {
        let session = handles::get::<Session>(session)?;
        only(&session.own, Session::NAME)?.truncate(length);
        Ok(())
    })
}

/// Ends the call that is under way with this session, from any thread, the callback's among them. Without such a call it
/// does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_cancel(session: *mut AkunuSession) -> AkunuStatus {
    call(|| {
        handles::get::<Session>(session)?.cancel.cancel();
        Ok(())
    })
}
