//! Words and when they were spoken.
//!
//! The tokens of a segment are read once more, all at once, and the queries of the alignment heads say where each token
//! looks ([`align`](super::align)). Tokens become words: a word begins with a space or is punctuation; in languages that
//! are written without spaces, a character is a word. Punctuation joins its neighbour. A word that ends a sentence and
//! lasts implausibly long has taken the silence after it, which is cut off.

use akunu_tokenizer::Tokenizer;

use super::SpeechModel;
use super::align::align;
use super::decode::SpeechPrompt;
use super::segments::WindowSegment;
use super::tokens::TIME_STEP;
use crate::error::EngineError;

/// Languages that are written without spaces.
const SPACELESS: [&str; 6] = ["zh", "ja", "th", "lo", "my", "yue"];
/// Marks that join the word after them.
const BEFORE: &str = "\"'“¿([{-";
/// Marks that join the word before them.
const AFTER: &str = "\"'.。,，!！?？:：”)]}、";
/// Marks that end a sentence.
const SENTENCE_ENDS: &str = ".。!！?？";
/// A typical word lasts at most this long.
const MAX_TYPICAL: f64 = 0.7;

/// A word, with the space before it, and when it was spoken.
///
/// ```no_run
/// # fn example(words: &[akunu_engine::speech::Word]) {
/// for word in words {
///     println!("{:.2} to {:.2} s: {}", word.start, word.end, word.text);
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Seconds since the beginning of the window.
    pub start: f64,
    /// Seconds since the beginning of the window.
    pub end: f64,
    /// The word, with the space before it.
    pub text: String,
    /// The tokens that it is made of.
    n_tokens: usize,
}

impl SpeechModel {
    /// The words of each segment of a window, which lasts for `seconds`. The times of the segments
    /// become those of their words. Without alignment heads there are no words.
    pub fn words(
        &mut self,
        (window, prompt): (u32, &SpeechPrompt),
        segments: &mut [WindowSegment],
        seconds: f64,
    ) -> Result<Vec<Vec<Word>>, EngineError> {
        let text: Vec<u32> = segments
            .iter()
            .flat_map(|segment| segment.tokens.iter().copied())
            .collect();
        let language = prompt.language.map(|id| id - self.tokens.first_language);
        let language = language.and_then(|at| self.tokens.languages.get(at as usize));
        let is_spaceless = language.is_some_and(|name| SPACELESS.contains(&name.as_str()));
        let prompt = SpeechPrompt {
            previous: Vec::new(),
            has_times: false,
            ..prompt.clone()
        };
        let (mut tokens, _) = prompt.tokens(&self.tokens, 0);
        // The last token of the prompt is the one that predicts the first of the text.
        let skipped = tokens.len() - 1;
        tokens.extend(&text);
        let room = self.config.decoder.context_length as usize;
        if text.is_empty() || tokens.len() > room || self.config.alignment_heads.is_empty() {
            return Ok(vec![Vec::new(); segments.len()]);
        }
        self.runtime.keep(window, 0);
        self.runtime.read(window, &tokens, None)?;
        let heads = &self.config.alignment_heads;
        let heads = self.runtime.alignment_heads(window, heads, tokens.len())?;
        let n_positions = (seconds / TIME_STEP) as usize;
        let n_positions = n_positions.min(self.config.encoder.n_positions as usize);
        let begins = align(&heads, skipped, n_positions);
        let mut words = Vec::new();
        let mut first = 0;
        for n_tokens in word_lengths(&self.tokenizer, &text, is_spaceless) {
            let time = |at: usize| begins.get(at).map_or(0.0, |&at| at as f64 * TIME_STEP);
            words.push(Word {
                start: time(first),
                end: time(first + n_tokens),
                text: self.tokenizer.decode(&text[first..first + n_tokens]),
                n_tokens,
            });
            first += n_tokens;
        }
        let typical = shorten(&mut words);
        Ok(share_out(join_marks(words), segments, typical))
    }
}

/// How many tokens each word has.
fn word_lengths(tokenizer: &Tokenizer, text: &[u32], is_spaceless: bool) -> Vec<usize> {
    let mut lengths: Vec<usize> = Vec::new();
    let mut first = 0;
    for end in 1..=text.len() {
        let piece = tokenizer.decode(&text[first..end]);
        // A character may be spread over several tokens.
        if piece.contains('\u{fffd}') && end < text.len() {
            continue;
        }
        let bare = piece.trim();
        let is_mark = bare.len() == 1 && bare.chars().all(|c| c.is_ascii_punctuation());
        let begins = is_spaceless || piece.starts_with(' ') || is_mark;
        match lengths.last_mut() {
            Some(last) if !begins => *last += end - first,
            _ => lengths.push(end - first),
        }
        first = end;
    }
    lengths
}

/// Cuts words at the ends of sentences that last more than twice as long as a typical word; returns how long that lasts.
fn shorten(words: &mut [Word]) -> f64 {
    let durations = words.iter().map(|word| word.end - word.start);
    let mut durations: Vec<f64> = durations.filter(|&duration| duration > 0.0).collect();
    durations.sort_unstable_by(f64::total_cmp);
    let n = durations.len();
    let median = match n {
        0 => 0.0,
        n if n.is_multiple_of(2) => (durations[n / 2 - 1] + durations[n / 2]) / 2.0,
        n => durations[n / 2],
    };
    let typical = median.min(MAX_TYPICAL);
    let longest = 2.0 * typical;
    let is_end = |word: &Word| SENTENCE_ENDS.contains(word.text.trim()) && !word.text.is_empty();
    for at in 1..words.len() {
        if n > 0 && words[at].end - words[at].start > longest {
            if is_end(&words[at]) {
                words[at].end = words[at].start + longest;
            } else if is_end(&words[at - 1]) {
                words[at].start = words[at].end - longest;
            }
        }
    }
    typical
}

/// Joins punctuation with the word that it belongs to.
fn join_marks(words: Vec<Word>) -> Vec<Word> {
    let is_one_of = |marks: &str, text: &str| !text.is_empty() && marks.contains(text);
    let mut joined: Vec<Word> = Vec::new();
    for word in words {
        let is_after = is_one_of(AFTER, &word.text);
        match joined.last_mut() {
            Some(last) if is_after && !last.text.ends_with(' ') => {
                last.text += &word.text;
                last.n_tokens += word.n_tokens;
            }
            Some(last) if last.text.starts_with(' ') && is_one_of(BEFORE, last.text.trim()) => {
                last.text += &word.text;
                last.end = word.end;
                last.n_tokens += word.n_tokens;
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Gives each segment its words, and each end of a segment the time that is more plausible: its own, or its word's.
fn share_out(words: Vec<Word>, segments: &mut [WindowSegment], typical: f64) -> Vec<Vec<Word>> {
    let mut words = words.into_iter().peekable();
    let mut shared = Vec::with_capacity(segments.len());
    let mut n_given = 0;
    let mut n_wanted = 0;
    for segment in segments {
        n_wanted += segment.tokens.len();
        let mut own: Vec<Word> = Vec::new();
        while n_given < n_wanted
            && let Some(word) = words.next()
        {
            n_given += word.n_tokens;
            own.push(word);
        }
        if let Some(first) = own.first_mut() {
            if segment.start < first.end && segment.start - 0.5 > first.start {
                first.start = (first.end - typical).min(segment.start).max(0.0);
            } else {
                segment.start = first.start;
            }
        }
        if let Some(last) = own.last_mut() {
            if segment.end > last.start && segment.end + 0.5 < last.end {
                last.end = (last.start + typical).max(segment.end);
            } else {
                segment.end = last.end;
            }
        }
        shared.push(own);
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(start: f64, end: f64, text: &str) -> Word {
        let text = text.to_string();
        Word {
            start,
            end,
            text,
            n_tokens: 1,
        }
    }

    /// Fails when a mark stays alone, or joins the wrong neighbour.
    #[test]
    fn punctuation_joins_its_word() {
        let words = vec![
            word(0.0, 0.5, " Hello"),
            word(0.5, 0.6, ","),
            word(0.6, 0.7, " \""),
            word(0.7, 1.0, "you"),
            word(1.0, 1.1, "."),
        ];
        let joined = join_marks(words);
        let texts: Vec<&str> = joined.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, [" Hello,", " \"you."]);
        assert_eq!((joined[1].start, joined[1].end), (0.6, 1.0));
        assert_eq!(joined[1].n_tokens, 3);
    }

    /// Fails when the silence after a sentence is part of its last mark.
    #[test]
    fn silence_after_a_sentence_is_cut_off() {
        let mut words = vec![
            word(0.0, 0.3, " one"),
            word(0.3, 0.6, " two"),
            word(0.6, 4.0, "."),
            word(4.0, 9.0, " Three"),
        ];
        let typical = shorten(&mut words);
        assert!((typical - 0.7).abs() < 1e-9);
        assert!((words[2].end - 2.0).abs() < 1e-9, "{words:?}");
        assert!((words[3].start - 7.6).abs() < 1e-9, "{words:?}");
    }

    /// Fails when a segment gets another's words, or keeps times that its words contradict.
    #[test]
    fn segments_have_their_words() {
        let segment = |start: f64, end: f64, n: u32| WindowSegment {
            start,
            end,
            tokens: (0..n).collect(),
            said: Vec::new(),
        };
        let mut segments = [segment(0.0, 1.0, 2), segment(1.0, 2.0, 1)];
        let words = vec![
            word(0.2, 0.5, " a"),
            word(0.5, 0.9, " b"),
            word(1.2, 3.5, " c"),
        ];
        let shared = share_out(words, &mut segments, 0.3);
        assert_eq!((shared[0].len(), shared[1].len()), (2, 1));
        assert_eq!((segments[0].start, segments[0].end), (0.2, 0.9));
        assert_eq!(shared[1][0].end, 2.0, "a word that lasts into the silence");
    }
}
