//! `strftime_now`: the date, as templates put it into system prompts.

use minijinja::{Error, ErrorKind};
use std::fmt::Write;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The longest format that is accepted.
const MAX_FORMAT: usize = 256;

/// A moment, taken apart.
struct Moment {
    year: i64,
    /// 0 is January.
    month: usize,
    day: i64,
    /// 0 is Sunday.
    weekday: usize,
    second_of_day: i64,
}

impl Moment {
    /// Counts in eras of 400 years, which all have 146,097 days, and in years that begin in March, so
    /// that the leap day comes last.
    fn new(seconds: i64) -> Moment {
        let days = seconds.div_euclid(86_400);
        let shifted = days + 719_468;
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12;
        let begins_before_march = i64::from(month < 2);
        Moment {
            year: shifted.div_euclid(146_097) * 400 + year_of_era + begins_before_march,
            month: usize::try_from(month).unwrap_or(0),
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
            second_of_day: seconds.rem_euclid(86_400),
        }
    }
}

/// Formats a local time, given in seconds since 1970, as Python's `strftime` does.
pub(super) fn format(seconds: i64, format: &str) -> Result<String, Error> {
    // Ten thousand years either way keep all sums far from overflow.
    let moment = Moment::new(seconds.clamp(-315_569_520_000, 315_569_520_000));
    if format.len() > MAX_FORMAT {
        return Err(unknown("is too long"));
    }
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut field = characters.next();
        let is_padded = field != Some('-');
        if !is_padded {
            field = characters.next();
        }
        write_field(&mut out, &moment, field, is_padded)?;
    }
    Ok(out)
}

fn write_field(
    out: &mut String,
    moment: &Moment,
    field: Option<char>,
    is_padded: bool,
) -> Result<(), Error> {
    let (month, weekday) = (MONTHS[moment.month % 12], DAYS[moment.weekday % 7]);
    let hour = moment.second_of_day / 3600;
    let number = match field {
        Some('d') => moment.day,
        Some('m') => moment.month as i64 + 1,
        Some('y') => moment.year.rem_euclid(100),
        Some('H') => hour,
        Some('I') => (hour + 11) % 12 + 1,
        Some('M') => moment.second_of_day / 60 % 60,
        Some('S') => moment.second_of_day % 60,
        other => {
            let text = match other {
                Some('Y') => moment.year.to_string(),
                Some('B') => month.to_string(),
                Some('b') => month[..3].to_string(),
                Some('A') => weekday.to_string(),
                Some('a') => weekday[..3].to_string(),
                Some('p') => if hour < 12 { "AM" } else { "PM" }.to_string(),
                Some('%') => "%".to_string(),
                _ => return Err(unknown("has a field that is not known")),
            };
            out.push_str(&text);
            return Ok(());
        }
    };
    let written = match is_padded {
        true => write!(out, "{number:02}"),
        false => write!(out, "{number}"),
    };
    written.map_err(Error::from)
}

fn unknown(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("the format of strftime_now {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::format;

    /// What `date -u -d @SECONDS` says.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let all = "%Y-%m-%d %H:%M:%S %A %b %-d %I%p %y %%";
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 Thursday Jan 1 12AM 70 %"),
            (951_782_400, "2000-02-29 00:00:00 Tuesday Feb 29 12AM 00 %"),
            (
                1_709_251_199,
                "2024-02-29 23:59:59 Thursday Feb 29 11PM 24 %",
            ),
            (4_102_444_800, "2100-01-01 00:00:00 Friday Jan 1 12AM 00 %"),
            (-1, "1969-12-31 23:59:59 Wednesday Dec 31 11PM 69 %"),
        ] {
            assert_eq!(format(seconds, all).unwrap(), text);
        }
    }

    #[test]
    fn unknown_fields_are_errors() {
        assert!(format(0, "%Q").is_err());
        assert!(format(0, "%").is_err());
        assert!(format(i64::MAX, "%Y").is_ok());
    }
}
