//! Ollama's protocol: one JSON object a line.

mod answer;
mod embed;
mod list;

pub(crate) use self::answer::{chat, generate};
pub(crate) use self::embed::embed;
pub(crate) use self::list::{show, tags, version};

use serde::Deserialize;

use crate::error::ApiError;
use crate::question::{Draw, Wish};

/// Ollama's `options`.
#[derive(Default, Deserialize)]
pub(crate) struct Options {
    num_predict: Option<i64>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<i64>,
    min_p: Option<f32>,
    repeat_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    seed: Option<i64>,
    #[serde(default)]
    stop: Vec<String>,
}

impl Options {
    fn wish(self) -> Result<Wish, ApiError> {
        Ok(Wish {
            // -1 and -2 are "without end" and "until the context is full".
            max_tokens: self.num_predict.and_then(|n| usize::try_from(n).ok()),
            draw: Draw {
                temperature: self.temperature,
                top_p: self.top_p,
                top_k: self.top_k,
                min_p: self.min_p,
                repetition_penalty: self.repeat_penalty,
                frequency_penalty: self.frequency_penalty,
                presence_penalty: self.presence_penalty,
                seed: self.seed,
            },
            stop: self.stop,
            ..Wish::default()
        })
    }
}

/// A time as Ollama's clients read it.
fn time(seconds: u64) -> String {
    // Days since 1970 to a date: years begin in March, so that leap days come last.
    let (days, second) = (seconds / 86400, seconds % 86400);
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::time;

    /// The dates are those that `date -u -d @N` prints.
    #[test]
    fn seconds_become_dates() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(time(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(time(1_740_787_200), "2025-03-01T00:00:00Z");
    }
}
