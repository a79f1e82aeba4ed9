//! A session: tokens in, text out.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::Mutex;

use akunu::{CancelFlag, GenerateOptions, Model, SessionOptions};

use crate::border::{self, AkunuOnText, Listener, Room};
use crate::handles::{self, Thing};
use crate::model::AkunuModel;
use crate::options::{self, AkunuOptions, Values};
use crate::status::{AkunuStatus, Failure, call};
use crate::stream::{AkunuStop, only, stop_of};

/// A text that a model continues. It takes one call at a time; only akunu_session_cancel may be called meanwhile.
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
        let watch = &mut |_| ControlFlow::Continue(());
        let fed = session.feed_until(ids, &self.cancel, watch);
        fed.map(drop).map_err(Failure::from)
    }

    fn generate(&self, values: Values, listener: &Listener) -> Result<AkunuStop, Failure> {
        let mut session = only(&self.own, Session::NAME)?;
        self.cancel.reset();
        let default = GenerateOptions::default();
        let model = Model::from(session.model().clone());
        let mut generation = session.generate(GenerateOptions {
            max_tokens: values.max_tokens.unwrap_or(default.max_tokens),
            sampling: values.sampling.over(default.sampling),
            loop_window: values.loop_window(default.loop_window),
            grammar: values.grammar(&model)?,
            speculation: values.speculation(&model)?,
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

/// Makes a session; akunu_session_free frees it. The options may be null; it uses context and lora.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_new(
    model: *const AkunuModel,
    options: *const AkunuOptions,
    out: *mut *mut AkunuSession,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let model = handles::get::<Model>(model)?;
        let values = options::read(options)?;
        let mut session = model.session(SessionOptions {
            context: values.context,
            ..SessionOptions::default()
        })?;
        session.set_adapters(&values.adapters(&model)?)?;
        let session = Session {
            own: Mutex::new(session),
            cancel: CancelFlag::default(),
        };
        border::write(out, handles::give(session), "out")
    })
}

/// Frees a session, after the running call has ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_free(session: *mut AkunuSession) -> AkunuStatus {
    call(|| handles::take::<Session>(session))
}

/// Appends tokens to those of the session, and reads them.
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

/// Continues the text, and passes it to `on_text` piece by piece, with `context`, in this thread. The options may be null; it
/// uses max_tokens, stop and those of sampling. Without options it always takes the best token, until the model ends the
/// text. Why it ended is stored in `stop`, unless that is null.
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

/// Stores the tokens of the session, given and generated. `length` always gets their number; with `to` null and `capacity` 0
/// only that is stored.
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

/// Ends the running call of this session; it may be called from any thread and from the callback. Without a call it does
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_session_cancel(session: *mut AkunuSession) -> AkunuStatus {
    call(|| {
        handles::get::<Session>(session)?.cancel.cancel();
        Ok(())
    })
}
