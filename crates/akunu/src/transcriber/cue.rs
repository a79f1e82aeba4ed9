//! Transcripts as subtitles.

use super::Segment;

/// A subtitle, from [`Segment::cues`].
///
/// ```
/// let segment = akunu::Segment::new(0.0, 1.5, "Good morning.");
/// let cue = segment.cues(false)[0];
/// assert_eq!(cue.srt(1), "1\n00:00:00,000 --> 00:00:01,500\nGood morning.\n\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cue<'a> {
    /// When it begins, in seconds.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// What was said.
    pub text: &'a str,
}

impl Segment {
    /// The segment as one subtitle or, with `by_word` and if it has words, as one for each word.
    pub fn cues(&self, by_word: bool) -> Vec<Cue<'_>> {
        if by_word && !self.words.is_empty() {
            let words = self.words.iter().map(|word| Cue {
                start: word.start,
                end: word.end,
                text: word.text.trim(),
            });
            return words.collect();
        }
        vec![Cue {
            start: self.start,
            end: self.end,
            text: &self.text,
        }]
    }
}

impl Cue<'_> {
    /// What a WebVTT file begins with.
    pub const VTT_HEAD: &'static str = "WEBVTT\n\n";

    /// The subtitle in SubRip's format; the first of a file has the number 1.
    pub fn srt(&self, number: usize) -> String {
        let (start, end) = (clock(self.start, ','), clock(self.end, ','));
        format!("{number}\n{start} --> {end}\n{}\n\n", self.text)
    }

    /// The subtitle in WebVTT's format, after [`Cue::VTT_HEAD`].
    pub fn vtt(&self) -> String {
        // An arrow in a text would begin another cue.
        let text = self.text.replace("-->", "->");
        format!("{}\n{text}\n\n", self.times())
    }

    /// From when to when: `00:00:01.500 --> 00:00:02.000`.
    pub fn times(&self) -> String {
        format!("{} --> {}", clock(self.start, '.'), clock(self.end, '.'))
    }
}

/// `01:02:03.456`.
fn clock(seconds: f64, separator: char) -> String {
    let ms = (seconds * 1000.0).round() as u64;
    let (s, m, h) = (ms / 1000 % 60, ms / 60_000 % 60, ms / 3_600_000);
    format!("{h:02}:{m:02}:{s:02}{separator}{:03}", ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a player could not read it: times, numbers and arrows.
    #[test]
    fn subtitles_are_what_players_read() {
        let cue = Cue {
            start: 3661.0049,
            end: 3662.0,
            text: "A --> B",
        };
        assert_eq!(cue.srt(2), "2\n01:01:01,005 --> 01:01:02,000\nA --> B\n\n");
        assert_eq!(cue.vtt(), "01:01:01.005 --> 01:01:02.000\nA -> B\n\n");
    }
}
