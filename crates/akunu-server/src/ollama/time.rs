//! Times as texts.

/// A time, in seconds since 1970, as Ollama's clients read it.
pub(super) fn time(seconds: u64) -> String {
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
