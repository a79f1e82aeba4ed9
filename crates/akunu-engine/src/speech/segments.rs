//! From the tokens of a window to segments, and to where the next window begins.
//!
//! The model writes `<|0.00|> text <|2.50|><|2.50|> text <|5.00|>`: two times in a row separate segments. What follows on
//! the last pair was cut off by the end of the window, so the next window begins there; a window that ends in a single
//! time, or has no times, was heard to its end.

use super::tokens::{SpeechTokens, TIME_STEP};

/// Seconds of a window.
pub const WINDOW_SECONDS: f64 = 30.0;

/// A piece of a window: what was said from one time to another.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSegment {
    /// Seconds since the beginning of the window.
    pub start: f64,
    /// Seconds since the beginning of the window.
    pub end: f64,
    /// Its tokens of text.
    pub tokens: Vec<u32>,
    /// The same with the times, as the model said them.
    pub said: Vec<u32>,
}

/// Segments of a window, and the seconds after which the next window begins.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSegments {
    /// The segments.
    pub segments: Vec<WindowSegment>,
    /// Seconds from the beginning of this window to that of the next.
    pub advance: f64,
}

/// Cuts the tokens of a window of `seconds` (30, or what is left of the recording) into segments.
pub fn cut(tokens: &SpeechTokens, said: &[u32], seconds: f64) -> WindowSegments {
    let is_time = |at: usize| said.get(at).is_some_and(|&id| tokens.is_time(id));
    let n = said.len();
    let ends_in_single_time = n >= 2 && is_time(n - 1) && !is_time(n - 2);
    // Places between the two times of a pair.
    let mut cuts: Vec<usize> = (1..n)
        .filter(|&at| is_time(at) && is_time(at - 1))
        .collect();
    if cuts.is_empty() {
        return whole(tokens, said, seconds);
    }
    if ends_in_single_time {
        cuts.push(n);
    }
    let mut segments = Vec::new();
    let mut first = 0;
    for &cut in &cuts {
        segments.push(segment(tokens, &said[first..cut], seconds));
        first = cut;
    }
    let last = segments.last().map_or(0.0, |segment| segment.end);
    let advance = if ends_in_single_time { seconds } else { last };
    segments.retain(|segment| !segment.tokens.is_empty());
    WindowSegments { segments, advance }
}

/// Cuts the tokens of a window that ends in a pause, so that nothing is heard again: text after the last time is a segment
/// to the end of the window.
pub fn cut_all(tokens: &SpeechTokens, said: &[u32], seconds: f64) -> Vec<WindowSegment> {
    let mut said = said.to_vec();
    let has_times = said.iter().any(|&id| tokens.is_time(id));
    if has_times && said.last().is_some_and(|&id| !tokens.is_time(id)) {
        said.push(tokens.first_time() + (seconds / TIME_STEP) as u32);
    }
    cut(tokens, &said, seconds).segments
}

/// One segment of everything, to the last time that was said.
fn whole(tokens: &SpeechTokens, said: &[u32], seconds: f64) -> WindowSegments {
    let last = said.iter().rfind(|&&id| id > tokens.first_time());
    let mut segment = segment(tokens, said, seconds);
    segment.start = 0.0;
    segment.end = last.map_or(seconds, |&time| tokens.seconds(time).min(seconds));
    let is_empty = segment.tokens.is_empty();
    WindowSegments {
        segments: if is_empty { Vec::new() } else { vec![segment] },
        advance: seconds,
    }
}

fn segment(tokens: &SpeechTokens, said: &[u32], seconds: f64) -> WindowSegment {
    let time = |id: Option<&u32>| id.map_or(0.0, |&id| tokens.seconds(id).min(seconds));
    WindowSegment {
        start: time(said.first()),
        end: time(said.last()),
        tokens: said
            .iter()
            .copied()
            .filter(|&id| tokens.is_text(id))
            .collect(),
        said: said.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::tests::tokens;
    use super::*;

    const T: u32 = 19;

    /// Times and text.
    type Expected<'a> = (f64, f64, &'a [u32]);

    fn segment(start: f64, end: f64, tokens: &[u32]) -> Expected<'_> {
        (start, end, tokens)
    }

    fn told(segments: &[WindowSegment]) -> Vec<Expected<'_>> {
        let told = segments.iter().map(|s| (s.start, s.end, &s.tokens[..]));
        told.collect()
    }

    /// Fails when text that was not ended by a time is left for another window to hear.
    #[test]
    fn a_window_that_ends_in_a_pause_is_told_to_its_end() {
        let said = [T, 1, 2, T + 100, T + 100, 3];
        let found = cut_all(&tokens(), &said, 9.0);
        let expected = [segment(0.0, 2.0, &[1, 2]), segment(2.0, 9.0, &[3])];
        assert_eq!(told(&found), expected);
        let ended = [T, 1, 2, T + 100, T + 100];
        assert_eq!(told(&cut_all(&tokens(), &ended, 9.0)), expected[..1]);
        let without = cut_all(&tokens(), &[1, 2], 9.0);
        assert_eq!(told(&without), [segment(0.0, 9.0, &[1, 2])]);
    }

    fn check(said: &[u32], expected: &[Expected], advance: f64) {
        let found = cut(&tokens(), said, 30.0);
        assert_eq!(told(&found.segments), expected);
        assert!((found.advance - advance).abs() < 1e-9, "{}", found.advance);
    }

    /// Fails when segments are cut elsewhere, or when the next window does not begin where this one was cut off.
    #[test]
    fn a_window_that_was_cut_off_goes_on_at_the_last_pair() {
        let said = [T, 1, 2, T + 25, T + 25, 3, T + 50, T + 50, 4];
        let expected = [segment(0.0, 0.5, &[1, 2]), segment(0.5, 1.0, &[3])];
        check(&said, &expected, 1.0);
    }

    /// Fails when what follows on a single last time is heard twice.
    #[test]
    fn a_window_that_ends_in_a_single_time_was_heard_to_its_end() {
        let said = [T, 1, T + 25, T + 25, 2, T + 75];
        let expected = [segment(0.0, 0.5, &[1]), segment(0.5, 1.5, &[2])];
        check(&said, &expected, 30.0);
        check(&[T, 1, T + 75], &[segment(0.0, 1.5, &[1])], 30.0);
    }

    /// Fails when a transcript without times is lost, or when silence becomes an empty segment.
    #[test]
    fn windows_without_times_are_one_segment() {
        check(&[1, 2], &[segment(0.0, 30.0, &[1, 2])], 30.0);
        check(&[], &[], 30.0);
        check(&[T], &[], 30.0);
        check(
            &[T, T + 5, T + 5, 3, T + 9],
            &[segment(0.1, 0.18, &[3])],
            30.0,
        );
    }

    /// Fails when a time after the end of the recording is believed.
    #[test]
    fn no_segment_ends_after_the_recording() {
        let found = cut(&tokens(), &[T, 1, T + 90], 1.0);
        assert_eq!(told(&found.segments), [segment(0.0, 1.0, &[1])]);
        assert_eq!(found.segments[0].said, [T, 1, T + 90]);
    }
}
