//! Detects speech, from the frames of a spectrogram.
//!
//! Speech comes in syllables: within a second its loudness rises and falls by tens of decibels, and what rises is in
//! the low frequencies where voices are. Hum, hiss and wind stay about as loud as they are. So
//!
//! ```text
//! level[t] = 10 log10 of the power of the filters below 4 kHz
//! floor    = the level that a tenth of the frames stay below, in the quietest window so far
//! speech   = frames whose level is above floor + 10 dB and above -60 dB of a full tone
//! ```
//!
//! and there is speech where such frames last for at least 0.1 s. A frame of steady noise is the sum of dozens of
//! random powers, whose level varies by about one decibel, so that 10 dB are out of its reach.

/// How far speech rises above the level of the background, in powers of ten.
const RISE: f32 = 1.0;
/// The level below which nothing is heard. A tone of full height has about 3 here.
const QUIETEST: f32 = -3.0;
/// Frames that speech lasts at least.
const SHORTEST: usize = 10;
/// The share of frames that are background, at least.
const BACKGROUND: f32 = 0.1;
/// Frames of a pause between words.
const PAUSE: usize = 30;
/// Frames in which there is a pause, so that the background can be heard: 3 s.
const WITH_PAUSE: usize = 300;

/// Listens for speech, window after window of a recording.
///
/// It is made to be wrong on the careful side: a door that slams counts as speech, steady noise and silence do not. In
/// a recording of less than three seconds, everything that can be heard counts.
#[derive(Clone, Debug)]
pub struct SpeechDetector {
    n_mels: usize,
    /// The level of the background, once a window was long enough.
    floor: Option<f32>,
}

impl SpeechDetector {
    /// For frames of `n_mels` filters.
    pub fn new(n_mels: usize) -> SpeechDetector {
        SpeechDetector {
            n_mels,
            floor: None,
        }
    }

    /// Whether there is speech in `frames`, (n, n_mels) of log10, the next ones of the recording.
    pub fn hears(&mut self, frames: &[f32]) -> bool {
        let levels: Vec<f32> = frames.chunks_exact(self.n_mels).map(level).collect();
        if levels.len() >= WITH_PAUSE {
            let mut sorted = levels.clone();
            sorted.sort_unstable_by(f32::total_cmp);
            let background = sorted[(sorted.len() as f32 * BACKGROUND) as usize];
            let floor = self.floor.unwrap_or(background).min(background);
            self.floor = Some(floor);
        }
        let threshold = self
            .floor
            .map_or(QUIETEST, |floor| (floor + RISE).max(QUIETEST));
        let mut lasting = 0;
        levels.iter().any(|&level| {
            lasting = if level > threshold { lasting + 1 } else { 0 };
            lasting >= SHORTEST
        })
    }
}

/// The middle of the quietest 0.3 s of `frames`, (n, n_mels) of log10, from frame `first` on: where a recording can be cut
/// without cutting a word, if there is a pause at all.
pub fn quietest(frames: &[f32], n_mels: usize, first: usize) -> usize {
    let levels: Vec<f32> = frames.chunks_exact(n_mels).skip(first).map(level).collect();
    let sums = levels.windows(PAUSE).map(|pause| pause.iter().sum::<f32>());
    let quietest = sums.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    quietest.map_or(frames.len() / n_mels, |(at, _)| first + at + PAUSE / 2)
}

/// The logarithm of a frame's power below 4 kHz: the lower three quarters of the filters.
fn level(frame: &[f32]) -> f32 {
    let voice = &frame[..frame.len() * 3 / 4];
    voice
        .iter()
        .map(|&log| 10f32.powf(log))
        .sum::<f32>()
        .log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a pause before the first frame that counts is taken, or one that is shorter than a pause.
    #[test]
    fn the_quietest_moment_is_the_middle_of_the_longest_pause() {
        const N_MELS: usize = 4;
        let is_quiet = |at: usize| at < 50 || (100..110).contains(&at) || (200..230).contains(&at);
        let level = |at: usize| if is_quiet(at) { -5.0 } else { 1.0 };
        let frames: Vec<f32> = (0..300).flat_map(|at| [level(at); N_MELS]).collect();
        assert_eq!(quietest(&frames, N_MELS, 60), 215);
        // Too few frames for a pause: nothing is cut.
        assert_eq!(quietest(&frames, N_MELS, 280), 300);
    }
}
