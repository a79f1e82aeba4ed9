//! A loaded speech model: one recording after the other.
//!
//! The work is done on a thread of its own, which reports each segment as it finds it. When the receiver is
//! dropped, it stops after the segment that it is at.

use std::sync::Arc;

use akunu::{Segment, TranscribeOptions, Transcriber};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use crate::error::ApiError;
use crate::stats::{Stats, Task};

/// A speech model, shared by all that ask it.
#[derive(Clone)]
pub(crate) struct Speech {
    transcriber: Arc<Mutex<Transcriber>>,
    /// Windows of a recording that are decoded together.
    batch: usize,
    stats: Arc<Stats>,
}

/// A file that somebody sent.
pub(crate) struct Recording {
    /// What the client calls it.
    pub name: String,
    pub bytes: Vec<u8>,
    /// Given back when the work has ended.
    pub place: OwnedSemaphorePermit,
}

/// What is found.
#[derive(Debug)]
pub(crate) enum Said {
    Segment(Segment),
    /// All was heard.
    Ended {
        language: String,
        seconds: f64,
    },
}

/// What is found, as it is found.
pub(crate) type Hearing = UnboundedReceiver<Result<Said, ApiError>>;

impl Speech {
    /// Refuses a batch that no recording could be decoded with.
    pub fn new(
        transcriber: Transcriber,
        batch: usize,
        stats: Arc<Stats>,
    ) -> Result<Speech, akunu::Error> {
        if !(1..=TranscribeOptions::MAX_BATCH).contains(&batch) {
            return Err(akunu::Error::WindowBatch { found: batch });
        }
        let transcriber = Arc::new(Mutex::new(transcriber));
        Ok(Speech {
            transcriber,
            batch,
            stats,
        })
    }

    /// Whether it listens to nothing.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.transcriber) == 1
    }

    /// Listens to a recording, when those that came before are done.
    pub fn hear(&self, recording: Recording, options: TranscribeOptions) -> Hearing {
        let (events, hearing) = unbounded_channel();
        let shared = Arc::clone(&self.transcriber);
        let stats = Arc::clone(&self.stats);
        let mut task = Task::new(&stats);
        let options = TranscribeOptions {
            batch: self.batch,
            ..options
        };
        tokio::spawn(async move {
            let mut transcriber = tokio::select! {
                free = shared.lock_owned() => free,
                () = events.closed() => return,
            };
            let work = move || {
                let Recording { name, bytes, place } = recording;
                task.run();
                match listen(&mut transcriber, &name, bytes, &options, &events) {
                    Ok(Some((language, seconds))) => {
                        stats.heard.inc_by(seconds);
                        task.end();
                        // Whoever has gone does not want to know.
                        let _ = events.send(Ok(Said::Ended { language, seconds }));
                    }
                    Ok(None) => {}
                    Err(error) => {
                        task.fail();
                        // As above.
                        let _ = events.send(Err(error));
                    }
                }
                drop(place);
            };
            // A panic drops the events, which the client is told of.
            let _ = tokio::task::spawn_blocking(work).await;
        });
        hearing
    }
}

/// Tells each segment as it is found, and returns the language and the seconds; `None` when nobody listens any more.
fn listen(
    transcriber: &mut Transcriber,
    name: &str,
    bytes: Vec<u8>,
    options: &TranscribeOptions,
    events: &UnboundedSender<Result<Said, ApiError>>,
) -> Result<Option<(String, f64)>, ApiError> {
    let begun = transcriber.transcribe_bytes(name, bytes, options);
    let mut hearing = begun.map_err(of_recording)?;
    for segment in hearing.by_ref() {
        let said = Said::Segment(segment.map_err(of_recording)?);
        if events.send(Ok(said)).is_err() {
            return Ok(None);
        }
    }
    let language = hearing.language().unwrap_or_default().to_string();
    Ok(Some((language, hearing.position())))
}

/// Problems with a recording or an option are reported to the client.
fn of_recording(error: akunu::Error) -> ApiError {
    let field = match error {
        akunu::Error::Audio(_) => "file",
        akunu::Error::Language { .. } => "language",
        akunu::Error::OnlyEnglish { .. } => "model",
        other => return other.into(),
    };
    ApiError::bad_field(field, error.to_string())
}
