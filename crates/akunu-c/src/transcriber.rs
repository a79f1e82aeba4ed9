//! What is said in audio files.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use akunu::CancelFlag;

use crate::border::{self, AkunuOnSegment, SegmentListener};
use crate::handles::{self, Thing};
use crate::options::{self, AkunuOptions, Values};
use crate::status::{AkunuStatus, Failure, call};
use crate::stream::only;

/// A Whisper model that transcribes speech. It takes one call at a time; only akunu_transcriber_cancel may be called
/// meanwhile.
pub struct AkunuTranscriber(());

struct Transcriber {
    own: Mutex<akunu::Transcriber>,
    cancel: CancelFlag,
}

impl Thing for Transcriber {
    type Opaque = AkunuTranscriber;
    const NAME: &'static str = "transcriber";
}

impl Transcriber {
    fn hear(&self, file: &str, values: Values, listener: &SegmentListener) -> Result<(), Failure> {
        let mut own = only(&self.own, Transcriber::NAME)?;
        self.cancel.reset();
        let mut transcription = own.transcribe(file, &values.transcription())?;
        while let Some(segment) = transcription.next() {
            let segment = segment?;
            if self.cancel.is_set() {
                let text = format!("{file}: cancelled after {:.1} s", segment.start);
                return Err(Failure::new(AkunuStatus::Cancelled, text));
            }
            if !listener.hear(&segment, transcription.language().unwrap_or_default()) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Opens a folder with a Whisper model of CTranslate2 or Hugging Face; akunu_transcriber_free frees it. The options may be
/// null; it uses device and threads.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_transcriber_open(
    path: *const c_char,
    options: *const AkunuOptions,
    out: *mut *mut AkunuTranscriber,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let path = border::text(path, "path")?;
        let device = options::read(options)?.device();
        let opened = device.and_then(|device| akunu::Transcriber::open_on(&path, device));
        let own = opened?;
        let transcriber = Transcriber {
            own: Mutex::new(own),
            cancel: CancelFlag::default(),
        };
        border::write(out, handles::give(transcriber), "out")
    })
}

/// Frees a transcriber, after the running call has ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_transcriber_free(transcriber: *mut AkunuTranscriber) -> AkunuStatus {
    call(|| handles::take::<Transcriber>(transcriber))
}

/// Transcribes an audio file (wav, flac, mp3, ogg, m4a or mp4), and passes its segments to `on_segment`, with `context`, in
/// this thread. The options may be null; it uses language, prompt, translate, words and batch. Without a language it is
/// detected.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_transcribe(
    transcriber: *mut AkunuTranscriber,
    file: *const c_char,
    options: *const AkunuOptions,
    on_segment: AkunuOnSegment,
    context: *mut c_void,
) -> AkunuStatus {
    let listener = SegmentListener {
        on_segment,
        context,
    };
    call(|| {
        let transcriber = handles::get::<Transcriber>(transcriber)?;
        let file = border::text(file, "file")?;
        transcriber.hear(&file, options::read(options)?, &listener)
    })
}

/// Ends the running call of this transcriber at the next segment; it may be called from any thread. That call returns
/// AKUNU_STATUS_CANCELLED. Without a call it does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_transcriber_cancel(transcriber: *mut AkunuTranscriber) -> AkunuStatus {
    call(|| {
        handles::get::<Transcriber>(transcriber)?.cancel.cancel();
        Ok(())
    })
}
