//! Speech to text.

mod cue;
mod sound;
mod trial;

use std::collections::VecDeque;
use std::path::Path;

use akunu_audio::AudioReader;
use akunu_engine::speech::{
    Opened, SpeechModel, SpeechPrompt, SpeechTask, WindowSegment, Word, cut, cut_all,
};
use akunu_tokenizer::EncodeOptions;

pub use self::cue::Cue;
use self::sound::Sound;
use self::trial::Trial;
use crate::device::Device;
use crate::error::Error;

/// Temperature above which what was written is not trusted to lead what follows.
const TRUSTED_TEMPERATURE: f32 = 0.5;

/// Turns speech into text with a Whisper model.
///
/// ```no_run
/// # fn main() -> Result<(), akunu::Error> {
/// let mut transcriber = akunu::Transcriber::open("whisper-base")?;
/// for segment in transcriber.transcribe("talk.mp3", &akunu::TranscribeOptions::default())? {
///     let segment = segment?;
///     println!("{:.1} s: {}", segment.start, segment.text);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Transcriber {
    model: SpeechModel,
}

/// How a recording is turned into text.
///
/// ```
/// let options = akunu::TranscribeOptions {
///     language: Some("en".into()),
///     words: true,
///     ..akunu::TranscribeOptions::default()
/// };
/// ```
///
/// Later versions may have further fields: end a value with `..TranscribeOptions::default()`.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscribeOptions {
    /// The spoken language, such as `en`; `None` detects it from the first window of 30 s with speech.
    pub language: Option<String>,
    /// Whether to write English, whatever is spoken.
    pub translate: bool,
    /// Whether to compute the times of words.
    pub words: bool,
    /// Whether the model writes timestamps. Without them each window of 30 s is one segment.
    pub times: bool,
    /// What the recording is about, or how names are spelled in it.
    pub prompt: Option<String>,
    /// Whether each window is decoded after the text of the windows before: names stay the same, but so do mistakes.
    pub carry_over: bool,
    /// The temperature with which tokens are drawn. `None` takes the most probable tokens; only if these
    /// make no sense, higher and higher temperatures are tried.
    pub temperature: Option<f32>,
    /// The seed for drawing tokens.
    pub seed: u64,
    /// Windows that are decoded together, 1 to [`TranscribeOptions::MAX_BATCH`]. More than one is faster for long recordings:
    /// they are cut where it is quietest instead of where the model ends a sentence, and each is decoded without the
    /// text before.
    pub batch: usize,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl TranscribeOptions {
    /// Windows that can be decoded together.
    pub const MAX_BATCH: usize = 16;
}

impl Default for TranscribeOptions {
    fn default() -> TranscribeOptions {
        TranscribeOptions {
            language: None,
            translate: false,
            words: false,
            times: true,
            prompt: None,
            carry_over: true,
            temperature: None,
            seed: 0,
            batch: 1,
            _more: (),
        }
    }
}

/// A piece of speech with its times.
///
/// ```
/// let segment = akunu::Segment::new(1.5, 3.0, "Good morning.");
/// assert_eq!(segment.cues(false)[0].text, "Good morning.");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Segment {
    /// When it begins, in seconds.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// What was said.
    pub text: String,
    /// Its tokens, without times.
    pub tokens: Vec<u32>,
    /// Its words, with [`TranscribeOptions::words`].
    pub words: Vec<Word>,
    /// The mean log probability of the tokens of its window: near 0 when the model was sure.
    pub mean_logprob: f32,
    /// The model's probability that there is no speech in its window.
    pub no_speech: f32,
    /// The temperature with which its window was decoded: more than 0 when the first try failed.
    pub temperature: f32,
    /// How many times smaller the text of its window becomes when it is compressed: more than 2 when it repeats itself.
    pub compression: f64,
    /// When its window begins, in seconds.
    pub window: f64,
}

/// The segments of a recording, as an iterator that decodes them one window at a time.
///
/// ```no_run
/// # let mut transcriber = akunu::Transcriber::open("whisper-base")?;
/// let mut segments = transcriber.transcribe("talk.mp3", &Default::default())?;
/// while let Some(segment) = segments.next() {
///     println!("{:.0} s of {:?}: {}", segments.position(), segments.duration(), segment?.text);
/// }
/// # Ok::<(), akunu::Error>(())
/// ```
pub struct Transcription<'a> {
    model: &'a mut SpeechModel,
    options: TranscribeOptions,
    sound: Sound,
    prompt: SpeechPrompt,
    /// The prompt of the user, which leads the first windows.
    about: Vec<u32>,
    /// What was written and leads what follows, with times.
    written: Vec<u32>,
    language: Option<String>,
    found: VecDeque<Segment>,
    n_windows: u64,
    has_failed: bool,
}

impl Segment {
    /// A segment of this text between two times in seconds; nothing else is known of it.
    pub fn new(start: f64, end: f64, text: impl Into<String>) -> Segment {
        Segment {
            start,
            end,
            text: text.into(),
            tokens: Vec::new(),
            words: Vec::new(),
            mean_logprob: 0.0,
            no_speech: 0.0,
            temperature: 0.0,
            compression: 1.0,
            window: start,
        }
    }
}

/// A window of a recording.
struct Piece {
    /// Its number among those that are decoded together.
    window: u32,
    /// When it begins, in seconds.
    begin: f64,
    /// How long it is.
    seconds: f64,
}

impl Transcriber {
    /// Opens the folder of a Whisper model (CTranslate2 or Hugging Face) on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Transcriber, Error> {
        Transcriber::open_on(path, Device::Auto)
    }

    /// Opens a model on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Transcriber, Error> {
        let model = SpeechModel::load(path, device.open()?)?;
        Ok(Transcriber { model })
    }

    /// The speech model, for its languages, its shape and its vocabulary.
    pub fn model(&self) -> &SpeechModel {
        &self.model
    }

    /// Begins to transcribe a file.
    pub fn transcribe(
        &mut self,
        path: impl AsRef<Path>,
        options: &TranscribeOptions,
    ) -> Result<Transcription<'_>, Error> {
        self.check(options)?;
        self.listen(AudioReader::open(path)?, options)
    }

    /// Begins to transcribe a file in memory. Errors call it `name`; its extension is a hint at its format.
    pub fn transcribe_bytes(
        &mut self,
        name: &str,
        bytes: Vec<u8>,
        options: &TranscribeOptions,
    ) -> Result<Transcription<'_>, Error> {
        self.check(options)?;
        self.listen(AudioReader::from_bytes(name, bytes)?, options)
    }

    fn listen(
        &mut self,
        reader: AudioReader,
        options: &TranscribeOptions,
    ) -> Result<Transcription<'_>, Error> {
        let tokens = self.model.tokens();
        let named = options.language.clone();
        let language = named.as_deref().and_then(|name| tokens.language(name));
        let about = match &options.prompt {
            Some(text) => self
                .model
                .tokenizer()
                .encode(&format!(" {}", text.trim()), EncodeOptions::default()),
            None => Vec::new(),
        };
        self.model.make_room(options.batch as u32)?;
        let tokens = self.model.tokens();
        let (n_mels, n_frames) = (self.model.config().encoder.n_mels, self.model.n_frames());
        Ok(Transcription {
            sound: Sound::new(reader, n_mels as usize, n_frames),
            prompt: SpeechPrompt {
                previous: Vec::new(),
                language,
                task: if options.translate {
                    SpeechTask::Translate
                } else {
                    SpeechTask::Transcribe
                },
                has_times: options.times,
            },
            written: about.clone(),
            about,
            language: named.or_else(|| (!tokens.is_multilingual()).then(|| "en".into())),
            options: options.clone(),
            model: &mut self.model,
            found: VecDeque::new(),
            n_windows: 0,
            has_failed: false,
        })
    }

    /// Wishes that the model cannot fulfil.
    fn check(&self, options: &TranscribeOptions) -> Result<(), Error> {
        if !(1..=TranscribeOptions::MAX_BATCH).contains(&options.batch) {
            return Err(Error::WindowBatch {
                found: options.batch,
            });
        }
        let tokens = self.model.tokens();
        if !tokens.is_multilingual() {
            let wanted = match &options.language {
                Some(name) if name != "en" => format!("write what is spoken in `{name}`"),
                _ if options.translate => "translate".to_string(),
                _ => return Ok(()),
            };
            return Err(Error::OnlyEnglish { wanted });
        }
        match &options.language {
            Some(name) if tokens.language(name).is_none() => Err(Error::Language {
                name: name.clone(),
                known: tokens.languages.join(", "),
            }),
            _ => Ok(()),
        }
    }
}

impl Transcription<'_> {
    /// The spoken language, once it is known.
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// How long the recording is, in seconds, where the file says so.
    pub fn duration(&self) -> Option<f64> {
        self.sound.duration()
    }

    /// Up to where it was transcribed, in seconds.
    pub fn position(&self) -> f64 {
        self.sound.position()
    }

    /// How many seconds of the announced length are missing in the file, once all was read.
    pub fn missing(&self) -> Option<f64> {
        self.sound.missing()
    }

    /// Listens to the next window; false at the end of the recording.
    fn next_window(&mut self) -> Result<bool, Error> {
        let Some(window) = self.sound.next_window()? else {
            return Ok(false);
        };
        let Some(spectrogram) = window.spectrogram else {
            self.sound.advance(window.seconds);
            return Ok(true);
        };
        self.model.listen(&spectrogram)?;
        self.find_language()?;
        self.prompt.previous.clone_from(&self.written);
        self.n_windows += 1;
        let seed = self.options.seed ^ self.n_windows;
        let opened = self.model.open(&self.prompt)?;
        let how = (self.options.temperature, seed);
        let trial = Trial::run(self.model, &opened, None, how)?;
        if trial.is_silence() {
            self.sound.advance(window.seconds);
            return Ok(true);
        }
        let pieces = cut(self.model.tokens(), &trial.decoded.tokens, window.seconds);
        self.keep(&trial, &pieces.segments);
        let begin = self.sound.position();
        let piece = Piece {
            window: 0,
            begin,
            seconds: window.seconds,
        };
        self.tell(&trial, pieces.segments, piece)?;
        self.sound.advance(pieces.advance);
        Ok(true)
    }

    /// Listens to the next windows together; false at the end of the recording.
    fn next_windows(&mut self) -> Result<bool, Error> {
        let mut pieces = Vec::new();
        let mut is_over = false;
        while pieces.len() < self.options.batch {
            let Some(window) = self.sound.next_piece()? else {
                is_over = true;
                break;
            };
            let piece = Piece {
                window: pieces.len() as u32,
                begin: self.sound.position(),
                seconds: window.seconds,
            };
            self.sound.advance(window.seconds);
            if let Some(spectrogram) = window.spectrogram {
                self.model.listen_to(piece.window, &spectrogram)?;
                pieces.push(piece);
            }
        }
        if pieces.is_empty() {
            return Ok(!is_over);
        }
        self.find_language()?;
        self.prompt.previous.clone_from(&self.about);
        let open = |piece: &Piece| self.model.open_window(piece.window, &self.prompt);
        let opened: Vec<Opened> = pieces.iter().map(open).collect::<Result<_, _>>()?;
        let mut firsts = Vec::new();
        if self.options.temperature.unwrap_or(0.0) == 0.0 {
            firsts = self.model.say_all(&opened)?;
        }
        let mut firsts = firsts.into_iter();
        for (piece, opened) in pieces.into_iter().zip(&opened) {
            self.n_windows += 1;
            let how = (self.options.temperature, self.options.seed ^ self.n_windows);
            let trial = Trial::run(self.model, opened, firsts.next(), how)?;
            if !trial.is_silence() {
                let said = &trial.decoded.tokens;
                let segments = cut_all(self.model.tokens(), said, piece.seconds);
                self.tell(&trial, segments, piece)?;
            }
        }
        Ok(true)
    }

    fn find_language(&mut self) -> Result<(), Error> {
        if self.language.is_none() {
            let languages = self.model.languages()?;
            if let Some((name, _)) = languages.into_iter().next() {
                self.prompt.language = self.model.tokens().language(&name);
                self.language = Some(name);
            }
        }
        Ok(())
    }

    /// What was written leads what follows, unless it is not to be trusted.
    fn keep(&mut self, trial: &Trial, segments: &[WindowSegment]) {
        if !self.options.carry_over || trial.decoded.temperature > TRUSTED_TEMPERATURE {
            self.written.clone_from(&self.about);
            return;
        }
        self.written
            .extend(segments.iter().flat_map(|segment| &segment.said));
        let n_kept = self.model.config().decoder.context_length as usize;
        let n_dropped = self.written.len().saturating_sub(n_kept);
        self.written.drain(..n_dropped);
    }

    /// Makes segments of a window those of the recording.
    fn tell(
        &mut self,
        trial: &Trial,
        mut segments: Vec<WindowSegment>,
        piece: Piece,
    ) -> Result<(), Error> {
        let begin = piece.begin;
        let mut words = vec![Vec::new(); segments.len()];
        if self.options.words {
            let asked = (piece.window, &self.prompt);
            words = self.model.words(asked, &mut segments, piece.seconds)?;
        }
        for (segment, mut words) in segments.into_iter().zip(words) {
            for word in &mut words {
                word.start += begin;
                word.end += begin;
            }
            let text = self.model.tokenizer().decode(&segment.tokens);
            if text.trim().is_empty() {
                continue;
            }
            self.found.push_back(Segment {
                start: begin + segment.start,
                end: begin + segment.end,
                text: text.trim().to_string(),
                tokens: segment.tokens,
                words,
                mean_logprob: trial.decoded.mean_logprob,
                no_speech: trial.decoded.no_speech,
                temperature: trial.decoded.temperature,
                compression: trial.compression,
                window: begin,
            });
        }
        Ok(())
    }
}

impl Iterator for Transcription<'_> {
    type Item = Result<Segment, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.has_failed {
            let next = match self.options.batch {
                1 => self.next_window(),
                _ => self.next_windows(),
            };
            match next {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.has_failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.found.pop_front().map(Ok)
    }
}
