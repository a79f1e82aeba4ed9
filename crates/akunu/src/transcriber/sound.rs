//! The windows of a recording, of which only the current one is in memory.

use akunu_audio::{AudioReader, FRAMES_A_SECOND, MelStream, SpeechDetector, log_mel, quietest};

use crate::error::Error;

/// A recording from the beginning of the next window on.
pub(super) struct Sound {
    reader: AudioReader,
    mel: MelStream,
    detector: SpeechDetector,
    n_mels: usize,
    /// Frames of a window.
    n_frames: usize,
    /// Frames from the beginning of the next window on, (n, n_mels).
    frames: Vec<f32>,
    /// The number of the first of them.
    first: usize,
    has_ended: bool,
}

/// A window.
pub(super) struct Window {
    /// How long it is: 30, or what is left of the recording.
    pub seconds: f64,
    /// What the model hears; `None` where nobody speaks.
    pub spectrogram: Option<Vec<f32>>,
}

impl Sound {
    pub fn new(reader: AudioReader, n_mels: usize, n_frames: usize) -> Sound {
        Sound {
            reader,
            mel: MelStream::new(n_mels),
            detector: SpeechDetector::new(n_mels),
            n_mels,
            n_frames,
            frames: Vec::new(),
            first: 0,
            has_ended: false,
        }
    }

    /// The window that begins at the current position; `None` at the end of the recording.
    pub fn next_window(&mut self) -> Result<Option<Window>, Error> {
        self.fill()?;
        let n = self.n_waiting().min(self.n_frames);
        Ok(self.window(n))
    }

    /// The same, but a window that is not the last one ends at the quietest moment of its last third, so that what follows
    /// can be heard without it.
    pub fn next_piece(&mut self) -> Result<Option<Window>, Error> {
        self.fill()?;
        let mut n = self.n_waiting().min(self.n_frames);
        if n < self.n_waiting() || !self.has_ended {
            n = quietest(&self.frames[..n * self.n_mels], self.n_mels, n * 2 / 3);
        }
        Ok(self.window(n))
    }

    /// The next `n` frames.
    fn window(&mut self, n: usize) -> Option<Window> {
        if n == 0 {
            return None;
        }
        let heard = &self.frames[..n * self.n_mels];
        let spectrogram = self
            .detector
            .hears(heard)
            .then(|| log_mel(heard, self.mel.loudest(), self.n_mels, self.n_frames));
        Some(Window {
            seconds: n as f64 / FRAMES_A_SECOND as f64,
            spectrogram,
        })
    }

    /// Moves on to the next window; at least by a frame, so that the end is reached.
    pub fn advance(&mut self, seconds: f64) {
        let n = (seconds * FRAMES_A_SECOND as f64).round() as usize;
        let n = n.max(1).min(self.n_waiting());
        self.frames.drain(..n * self.n_mels);
        self.first += n;
    }

    /// Where the next window begins, in seconds.
    pub fn position(&self) -> f64 {
        self.first as f64 / FRAMES_A_SECOND as f64
    }

    pub fn duration(&self) -> Option<f64> {
        self.reader.duration()
    }

    pub fn missing(&self) -> Option<f64> {
        self.reader.missing()
    }

    fn n_waiting(&self) -> usize {
        self.frames.len() / self.n_mels
    }

    /// Reads until there is a whole window, or until the end.
    fn fill(&mut self) -> Result<(), Error> {
        while !self.has_ended && self.n_waiting() < self.n_frames {
            let frames = match self.reader.next() {
                Some(piece) => self.mel.push(&piece?),
                None => {
                    self.has_ended = true;
                    self.mel.finish()
                }
            };
            self.frames.extend(frames);
        }
        Ok(())
    }
}
