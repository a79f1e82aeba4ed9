//! Transcripts as text, subtitles, JSON and tables.

use crate::failure::Failure;
use crate::terminal::shown;
use akunu::{Cue, Segment};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// How a transcript is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text, a line for each segment
    Txt,
    /// SubRip subtitles
    Srt,
    /// WebVTT subtitles
    Vtt,
    /// A JSON object with everything that is known
    Json,
    /// A table of start, end and text
    Csv,
}

impl Format {
    pub fn extension(self) -> &'static str {
        match self {
            Format::Txt => "txt",
            Format::Srt => "srt",
            Format::Vtt => "vtt",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }

    /// Whether several transcripts may follow each other in one stream.
    pub fn can_follow(self) -> bool {
        matches!(self, Format::Txt | Format::Json)
    }
}

/// Writes segments as they come.
pub struct Writer {
    format: Format,
    /// Whether each word is a cue.
    by_word: bool,
    n_cues: usize,
    /// For JSON, which is written at the end.
    segments: Vec<Value>,
    text: String,
}

impl Writer {
    pub fn new(format: Format, by_word: bool) -> Writer {
        Writer {
            format,
            by_word,
            n_cues: 0,
            segments: Vec::new(),
            text: String::new(),
        }
    }

    /// What stands before all segments.
    pub fn begin(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.format {
            Format::Vtt => write!(out, "{}", Cue::VTT_HEAD)?,
            Format::Csv => writeln!(out, "start,end,text")?,
            Format::Txt | Format::Srt | Format::Json => {}
        }
        Ok(())
    }

    /// One segment, or each of its words.
    pub fn segment(&mut self, segment: &Segment, out: &mut dyn Write) -> Result<(), Failure> {
        if self.format == Format::Json {
            self.text += if self.text.is_empty() { "" } else { " " };
            self.text += &segment.text;
            self.segments.push(to_json(segment, self.by_word));
            return Ok(());
        }
        for cue in segment.cues(self.by_word) {
            self.cue(&cue, out)?;
        }
        Ok(out.flush()?)
    }

    fn cue(&mut self, cue: &Cue, out: &mut dyn Write) -> Result<(), Failure> {
        self.n_cues += 1;
        match self.format {
            Format::Txt if self.by_word => {
                writeln!(out, "[{}] {}", cue.times(), shown(cue.text))?;
            }
            Format::Txt => writeln!(out, "{}", shown(cue.text))?,
            Format::Srt => write!(out, "{}", cue.srt(self.n_cues))?,
            Format::Vtt => write!(out, "{}", cue.vtt())?,
            Format::Csv => {
                let text = cue.text.replace('"', "\"\"");
                writeln!(out, "{:.3},{:.3},\"{text}\"", cue.start, cue.end)?;
            }
            Format::Json => {}
        }
        Ok(())
    }

    /// What stands after all segments.
    pub fn end(self, file: &Path, language: &str, out: &mut dyn Write) -> Result<(), Failure> {
        if self.format == Format::Json {
            let transcript = json!({
                "file": file.display().to_string(),
                "language": language,
                "text": self.text,
                "segments": self.segments,
            });
            writeln!(out, "{transcript}")?;
        }
        Ok(())
    }
}

fn to_json(segment: &Segment, has_words: bool) -> Value {
    let seconds = |time: f64| (time * 1000.0).round() / 1000.0;
    let mut value = json!({
        "start": seconds(segment.start),
        "end": seconds(segment.end),
        "text": segment.text,
        "tokens": segment.tokens,
        "mean_logprob": segment.mean_logprob,
        "no_speech": segment.no_speech,
        "temperature": segment.temperature,
    });
    if has_words {
        let words = segment.words.iter().map(|word| {
            json!({
                "start": seconds(word.start),
                "end": seconds(word.end),
                "word": word.text.trim(),
            })
        });
        value["words"] = words.collect();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: f64, end: f64, text: &str) -> Segment {
        let mut segment = Segment::new(start, end, text);
        segment.tokens = vec![1, 2];
        (segment.mean_logprob, segment.no_speech, segment.window) = (-0.5, 0.25, 0.0);
        segment
    }

    fn written(format: Format) -> String {
        let mut writer = Writer::new(format, false);
        let mut out = Vec::new();
        writer.begin(&mut out).expect("memory takes it");
        for segment in [
            segment(0.0, 2.5, "Hello, \"you\"."),
            segment(3661.0049, 3662.0, "A --> B"),
        ] {
            writer.segment(&segment, &mut out).expect("likewise");
        }
        let end = writer.end(Path::new("a.wav"), "en", &mut out);
        end.expect("likewise");
        String::from_utf8(out).expect("text")
    }

    /// Fails when a player or a table could not read it: times, numbers, quotes and arrows.
    #[test]
    fn formats_are_what_players_and_tables_read() {
        assert_eq!(written(Format::Txt), "Hello, \"you\".\nA --> B\n");
        assert_eq!(
            written(Format::Srt),
            "1\n00:00:00,000 --> 00:00:02,500\nHello, \"you\".\n\n\
             2\n01:01:01,005 --> 01:01:02,000\nA --> B\n\n"
        );
        assert_eq!(
            written(Format::Vtt),
            "WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nHello, \"you\".\n\n\
             01:01:01.005 --> 01:01:02.000\nA -> B\n\n"
        );
        assert_eq!(
            written(Format::Csv),
            "start,end,text\n0.000,2.500,\"Hello, \"\"you\"\".\"\n3661.005,3662.000,\"A --> B\"\n"
        );
        let json: Value = serde_json::from_str(&written(Format::Json)).expect("JSON");
        assert_eq!(json["text"], "Hello, \"you\". A --> B");
        assert_eq!(json["segments"][1]["start"], 3661.005);
        assert_eq!(json["language"], "en");
    }
}
