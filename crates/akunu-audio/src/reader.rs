//! An audio file as pieces of 16 kHz mono.

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;

use crate::error::{AudioError, AudioProblem};
use crate::resampler::Resampler;

/// Sample rates that can be read.
const RATES: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Packets in a row that cannot be decoded, after which a file is given up.
const MAX_BAD_PACKETS: u32 = 100;

/// The sound of a file, in the order of time: an iterator of pieces of 16 kHz mono samples.
///
/// ```no_run
/// # fn main() -> Result<(), akunu_audio::AudioError> {
/// let mut n_samples = 0;
/// for piece in akunu_audio::AudioReader::open("talk.mp3")? {
///     n_samples += piece?.len();
/// }
/// println!("{} s", n_samples / 16_000);
/// # Ok(())
/// # }
/// ```
pub struct AudioReader {
    path: PathBuf,
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    /// What the container says, in seconds.
    duration: Option<f64>,
    /// The rate and the channels of what was decoded first, and where it goes.
    stream: Option<Stream>,
    /// Samples of all channels, as they were decoded.
    interleaved: Vec<f32>,
    bad_packets: u32,
    ended: bool,
}

/// What all packets of a file have in common.
struct Stream {
    rate: u32,
    n_channels: usize,
    /// Samples of one channel so far.
    n_frames: u64,
    resampler: Resampler,
}

impl AudioReader {
    /// Opens a file and finds its first audio track.
    pub fn open(path: impl AsRef<Path>) -> Result<AudioReader, AudioError> {
        let path = path.as_ref().to_path_buf();
        let opened = open_file(&path).and_then(|file| open(&path, Box::new(file)));
        opened.map_err(|problem| AudioError { path, problem })
    }

    /// Opens a file that is already in memory. Errors call it `name`, whose extension is a hint at what it is.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<AudioReader, AudioError> {
        let path = name.into();
        let opened = if bytes.is_empty() {
            Err(AudioProblem::Empty)
        } else {
            open(&path, Box::new(Cursor::new(bytes)))
        };
        opened.map_err(|problem| AudioError { path, problem })
    }

    /// How long the container says that it is, in seconds. Not every container says so.
    pub fn duration(&self) -> Option<f64> {
        self.duration
    }

    /// How much was read so far, in seconds.
    pub fn seconds_read(&self) -> f64 {
        let stream = self.stream.as_ref();
        stream.map_or(0.0, |stream| {
            stream.n_frames as f64 / f64::from(stream.rate)
        })
    }

    /// What the container promised and did not hold, in seconds, once all was read: a file that was cut off. Less than
    /// half a second is how containers round.
    pub fn missing(&self) -> Option<f64> {
        let missing = self.duration? - self.seconds_read();
        (self.ended && missing > 0.5).then_some(missing)
    }

    /// The next packet of the track, decoded and resampled; `None` at the end.
    fn next_piece(&mut self) -> Result<Option<Vec<f32>>, AudioProblem> {
        loop {
            let packet = match self.format.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.finish(),
                // A file that was cut off ends within a packet; a chained one begins anew with other tracks.
                Err(Error::IoError(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return self.finish();
                }
                Err(Error::ResetRequired) => return self.finish(),
                Err(e) => return Err(self.damaged(&e)),
            };
            if packet.track_id != self.track {
                continue;
            }
            match self.decoder.decode(&packet) {
                Ok(sound) if sound.frames() == 0 => continue,
                Ok(sound) => {
                    self.bad_packets = 0;
                    let form = (sound.spec().rate(), sound.spec().channels().count());
                    sound.copy_to_vec_interleaved(&mut self.interleaved);
                    return self.resampled(form).map(Some);
                }
                Err(e @ (Error::DecodeError(_) | Error::IoError(_))) => {
                    self.bad_packets += 1;
                    if self.bad_packets > MAX_BAD_PACKETS {
                        return Err(self.damaged(&e));
                    }
                }
                Err(e) => return Err(self.damaged(&e)),
            }
        }
    }

    fn damaged(&self, error: &Error) -> AudioProblem {
        AudioProblem::Damaged {
            seconds: self.seconds_read(),
            what: error.to_string(),
        }
    }

    /// The mean of the channels of what was decoded, at 16 kHz.
    fn resampled(&mut self, (rate, n_channels): (u32, usize)) -> Result<Vec<f32>, AudioProblem> {
        let seconds = self.seconds_read();
        if self.stream.is_none() {
            let resampler = RATES.contains(&rate).then(|| Resampler::new(rate));
            self.stream = Some(Stream {
                rate,
                n_channels,
                n_frames: 0,
                resampler: resampler.ok_or(AudioProblem::SampleRate(rate))?,
            });
        }
        let stream = self.stream.as_mut().filter(|stream| {
            (stream.rate, stream.n_channels) == (rate, n_channels) && n_channels > 0
        });
        let stream = stream.ok_or(AudioProblem::Changes { seconds })?;
        let mono = mix(&self.interleaved, n_channels);
        stream.n_frames += mono.len() as u64;
        Ok(stream.resampler.push(&mono))
    }

    fn finish(&mut self) -> Result<Option<Vec<f32>>, AudioProblem> {
        self.ended = true;
        let stream = self.stream.as_mut().ok_or(AudioProblem::Empty)?;
        let rest = stream.resampler.finish();
        Ok((!rest.is_empty()).then_some(rest))
    }
}

impl Iterator for AudioReader {
    type Item = Result<Vec<f32>, AudioError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let piece = self.next_piece();
        self.ended |= piece.is_err();
        piece
            .map_err(|problem| AudioError {
                path: self.path.clone(),
                problem,
            })
            .transpose()
    }
}

impl std::fmt::Debug for AudioReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AudioReader")
            .field("path", &self.path)
            .field("duration", &self.duration)
            .field("seconds_read", &self.seconds_read())
            .finish_non_exhaustive()
    }
}

fn open_file(path: &Path) -> Result<File, AudioProblem> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(AudioProblem::NotAudio);
    }
    if about.is_file() && about.len() == 0 {
        return Err(AudioProblem::Empty);
    }
    Ok(file)
}

fn open(path: &Path, source: Box<dyn MediaSource>) -> Result<AudioReader, AudioProblem> {
    let source = MediaSourceStream::new(source, Default::default());
    let mut hint = Hint::new();
    if let Some(extension) = path.extension().and_then(|e| e.to_str()) {
        hint.with_extension(extension);
    }
    let (options, tags) = (FormatOptions::default(), MetadataOptions::default());
    let probed = symphonia::default::get_probe().probe(&hint, source, options, tags);
    // What is in no known container ends early, or has no reader.
    let format = probed.map_err(|error| match error {
        Error::DecodeError(what) => AudioProblem::Damaged {
            seconds: 0.0,
            what: what.to_string(),
        },
        _ => AudioProblem::NotAudio,
    })?;
    let track = format.default_track(TrackType::Audio);
    let track = track.ok_or(AudioProblem::NoTrack)?;
    let Some(CodecParameters::Audio(parameters)) = &track.codec_params else {
        return Err(AudioProblem::NoTrack);
    };
    if let Some(rate) = parameters.sample_rate.filter(|rate| !RATES.contains(rate)) {
        return Err(AudioProblem::SampleRate(rate));
    }
    let options = AudioDecoderOptions::default();
    let decoder = symphonia::default::get_codecs().make_audio_decoder(parameters, &options);
    let decoder = decoder.map_err(|e| AudioProblem::Codec(e.to_string()))?;
    Ok(AudioReader {
        path: path.to_path_buf(),
        duration: duration(track, parameters.sample_rate),
        track: track.id,
        decoder,
        format,
        stream: None,
        interleaved: Vec::new(),
        bad_packets: 0,
        ended: false,
    })
}

/// The length of a track in seconds, as far as its container says it.
fn duration(track: &Track, rate: Option<u32>) -> Option<f64> {
    if let (Some(frames), Some(rate)) = (track.num_frames, rate) {
        return Some(frames as f64 / f64::from(rate));
    }
    let (length, base) = (track.duration?, track.time_base?);
    Some(length.get() as f64 * f64::from(base.numer.get()) / f64::from(base.denom.get()))
}

/// The mean of all channels. A sample that is no number is silence.
fn mix(interleaved: &[f32], n_channels: usize) -> Vec<f32> {
    let mean = |frame: &[f32]| {
        let sum: f32 = frame.iter().sum();
        let mean = sum / n_channels as f32;
        if mean.is_finite() { mean } else { 0.0 }
    };
    interleaved.chunks_exact(n_channels).map(mean).collect()
}
