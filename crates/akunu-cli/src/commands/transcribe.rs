//! `transcribe FILE…`: what is said in audio files.

mod format;

use super::Run;
use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models;
use crate::progress::{self, Counts};
use crate::terminal::{note, warn};
use akunu::{AudioReader, TranscribeOptions, Transcriber, Transcription};
use clap::Parser;
use format::{Format, Writer};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Transcribe speech in audio files
///
/// Reads wav, flac, mp3, ogg (Vorbis), m4a and mp4 (AAC). Text is printed as it is recognised, with a progress bar on a
/// terminal. Without --language, the language is detected from the first window of 30 seconds with speech.
#[derive(Parser)]
#[command(name = "transcribe")]
pub struct Transcribe {
    /// The audio files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A folder with a Whisper (CTranslate2 or Hugging Face), or a name from `pull --list`
    #[arg(short, long, value_name = "MODEL", default_value = models::DEFAULT_SPEECH)]
    model: String,
    #[command(flatten)]
    device: DeviceArgs,
    /// Threads of the CPU device, at most one for each core [default: one for each core]
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
    /// The language that is spoken, such as en, de or ja [default: detected]
    #[arg(short, long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// Write English, whatever is spoken
    #[arg(long)]
    translate: bool,
    /// Add the times of words: a line, cue or row for each word
    #[arg(long)]
    words: bool,
    /// What the recording is about, or how names in it are spelled
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The format of the output
    #[arg(short, long, value_enum, default_value_t = Format::Txt)]
    format: Format,
    /// Write a file for each recording into this folder, instead of standard output
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Decode each window without the text of the windows before
    #[arg(long)]
    no_carry_over: bool,
    /// Decode as many windows together, each without the text of those before: faster for long recordings
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=TranscribeOptions::MAX_BATCH as u64))]
    batch: u64,
}

impl Run for Transcribe {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let has_many = self.files.len() > 1;
        if has_many && self.output.is_none() && !self.format.can_follow() {
            return Err(Failure::ManyRecordings(self.format.extension()));
        }
        self.check_outputs()?;
        self.files.iter().try_for_each(|file| check(file))?;
        let path = models::resolve(&self.model)?;
        models::refuse_text(&path)?;
        let device = self.device.open(self.threads)?;
        let mut transcriber = Transcriber::open_on(path, akunu::Device::Custom(device))?;
        let options = TranscribeOptions {
            language: self.language.clone(),
            translate: self.translate,
            words: self.words,
            prompt: self.prompt.clone(),
            carry_over: !self.no_carry_over,
            batch: self.batch as usize,
            ..TranscribeOptions::default()
        };
        let interrupt = Interrupt::listen();
        for file in &self.files {
            let transcription = transcriber.transcribe(file, &options)?;
            match &self.output {
                Some(folder) => {
                    let path = output_path(folder, file, self.format);
                    let mut to = create(&path)?;
                    self.write(transcription, file, &interrupt, &mut to)?;
                    to.flush()?;
                    note(&format!("wrote {}", path.display()));
                }
                None => {
                    if has_many && self.format == Format::Txt {
                        writeln!(out, "==> {} <==", file.display())?;
                    }
                    self.write(transcription, file, &interrupt, out)?;
                }
            }
        }
        Ok(())
    }
}

impl Transcribe {
    /// Fails when a transcript would replace another of the same run.
    fn check_outputs(&self) -> Result<(), Failure> {
        let Some(folder) = &self.output else {
            return Ok(());
        };
        let mut written: HashMap<PathBuf, &Path> = HashMap::new();
        for file in &self.files {
            let output = output_path(folder, file, self.format);
            if let Some(first) = written.insert(output.clone(), file) {
                return Err(Failure::SameTranscript {
                    first: first.to_path_buf(),
                    second: file.clone(),
                    output,
                });
            }
        }
        Ok(())
    }

    fn write(
        &self,
        mut transcription: Transcription<'_>,
        file: &Path,
        interrupt: &Interrupt,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let seconds = transcription.duration().unwrap_or(0.0) as u64;
        let bar = progress::bar(seconds, Counts::Things("s"));
        let mut writer = Writer::new(self.format, self.words);
        bar.suspend(|| writer.begin(out))?;
        while let Some(segment) = transcription.next() {
            let segment = segment?;
            bar.set_position(transcription.position() as u64);
            bar.suspend(|| writer.segment(&segment, out))?;
            interrupt.check().map_err(|_| Failure::CutShort)?;
        }
        bar.finish_and_clear();
        let language = transcription.language().unwrap_or_default();
        writer.end(file, language, out)?;
        if let Some(missing) = transcription.missing() {
            warn(&format!(
                "{} was cut off: {missing:.1} s of what it promises are not there",
                file.display()
            ));
        }
        Ok(())
    }
}

/// A file that is no recording, before a model is fetched for it. What comes through a pipe can be read only once.
fn check(file: &Path) -> Result<(), Failure> {
    let is_pipe = fs::metadata(file).is_ok_and(|about| !about.is_file() && !about.is_dir());
    if !is_pipe {
        AudioReader::open(file).map_err(akunu::Error::from)?;
    }
    Ok(())
}

/// `talk.mp3` becomes `talk.srt` in the folder.
fn output_path(folder: &Path, file: &Path, format: Format) -> PathBuf {
    let name = Path::new(file.file_name().unwrap_or_default());
    folder.join(name.with_extension(format.extension()))
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    let create = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::create(path)
    };
    let file = create().map_err(|source| Failure::Write {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(BufWriter::new(file))
}
