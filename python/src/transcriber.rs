//! What is said in audio files.

use std::path::PathBuf;

use akunu::{AudioReader, CancelFlag, CpuOptions, Device, TranscribeOptions};
use pyo3::prelude::*;

use crate::failure::{Busy, raise};
use crate::lent::Home;
use crate::stream::Stream;

/// Start, end and text of a word.
type Word = (f64, f64, String);
/// Start, end and text of a segment, its words, and the language that is spoken.
type Segment = (f64, f64, String, Vec<Word>, Option<String>);

/// A Whisper. The thread of a transcription has it while that is under way.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Transcriber {
    own: Home<akunu::Transcriber>,
}

/// The language, the prompt, whether to translate, whether words have times, and how many windows are decoded together.
type Wanted = (Option<String>, Option<String>, bool, bool, usize);

/// Segments, as a thread finds them.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Transcription(Stream<Segment, ()>);

#[pymethods]
impl Transcriber {
    /// Opens a folder.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        threads: Option<usize>,
    ) -> PyResult<Transcriber> {
        let cpu = CpuOptions {
            threads,
            ..CpuOptions::default()
        };
        let open = || akunu::Transcriber::open_on(&path, Device::named(device, cpu)?);
        let own = py.detach(open).map_err(raise)?;
        Ok(Transcriber {
            own: Home::new(own),
        })
    }

    /// Listens to a file in a thread of its own, once it is clear that it is a recording.
    fn transcribe(&self, py: Python<'_>, path: PathBuf, wanted: Wanted) -> PyResult<Transcription> {
        let (language, prompt, translate, words, batch) = wanted;
        let options = TranscribeOptions {
            language,
            prompt,
            translate,
            words,
            batch,
            ..TranscribeOptions::default()
        };
        let opened = py.detach(|| AudioReader::open(&path));
        opened.map_err(raise)?;
        let cancel = CancelFlag::default();
        let lent = py.detach(|| self.own.lend(cancel.clone()));
        let mut lent = lent.ok_or_else(|| {
            Busy::new_err("a transcription is still under way: read it to its end, or cancel it")
        })?;
        let stream = Stream::start(cancel, move |tell| {
            let Some(transcriber) = lent.get() else {
                return Ok(());
            };
            let mut transcription = transcriber.transcribe(&path, &options)?;
            while let Some(segment) = transcription.next() {
                let segment = told(segment?, transcription.language());
                // The segment after the one that is read is found meanwhile.
                if !tell.is_wanted() {
                    break;
                }
                tell.piece(segment);
            }
            // Whoever hears the end can begin again at once.
            drop(lent);
            Ok(())
        })?;
        Ok(Transcription(stream))
    }
}

fn told(segment: akunu::Segment, language: Option<&str>) -> Segment {
    let words = segment.words.into_iter();
    let words = words
        .map(|word| (word.start, word.end, word.text))
        .collect();
    let language = language.map(str::to_string);
    (segment.start, segment.end, segment.text, words, language)
}

#[pymethods]
impl Transcription {
    /// The next segment, or `None` at the end.
    fn next_segment(&self, py: Python<'_>) -> PyResult<Option<Segment>> {
        self.0.next(py)
    }

    /// Ends it, from any thread.
    fn cancel(&self) {
        self.0.cancel();
    }
}
