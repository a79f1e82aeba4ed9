//! What can be wrong with an audio file.

use std::path::PathBuf;

/// An audio file that cannot be used, and why.
///
/// ```no_run
/// if let Err(error) = akunu_audio::AudioReader::open("talk.mp3") {
///     eprintln!("{}: {}", error.path.display(), error.problem);
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
#[non_exhaustive]
pub struct AudioError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: AudioProblem,
}

/// What is wrong with an audio file.
///
/// ```no_run
/// use akunu_audio::{AudioProblem, AudioReader};
///
/// if let Err(error) = AudioReader::open("talk.mp3") {
///     match error.problem {
///         AudioProblem::Io(error) => eprintln!("the file cannot be read: {error}"),
///         other => eprintln!("no recording: {other}"),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AudioProblem {
    /// The operating system refused to read it.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It has no bytes, or a track without a single sample.
    #[error("holds no sound at all")]
    Empty,
    /// It is in none of the containers.
    #[error(
        "is not an audio file of a supported format (wav, flac, mp3, ogg with vorbis, m4a with aac); \
         convert it, for example with: ffmpeg -i FILE out.wav"
    )]
    NotAudio,
    /// A container without sound, such as a silent video.
    #[error("has no audio track")]
    NoTrack,
    /// A track that nothing here can decode.
    #[error(
        "has its sound in a codec that is not supported ({0}); convert it, for example with: ffmpeg -i FILE out.wav"
    )]
    Codec(String),
    /// A sample rate that no recording has.
    #[error("says that it has {0} samples a second; 1000 to 768000 can be read")]
    SampleRate(u32),
    /// The sample rate or the number of channels changes on the way.
    #[error(
        "changes its sample rate or its channels after {seconds:.1} s; convert it to one form first"
    )]
    Changes {
        /// What was read by then.
        seconds: f64,
    },
    /// The container or the coded sound contradicts itself.
    #[error("is damaged after {seconds:.1} s: {what}")]
    Damaged {
        /// What was read by then.
        seconds: f64,
        /// What the reader says.
        what: String,
    },
}
