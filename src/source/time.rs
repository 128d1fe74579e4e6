//! Moments in UTC, to the second, as RFC 3339 text. No clock here.

use std::path::Path;
use std::time::UNIX_EPOCH;

use toml::value::{Datetime, Offset};

use crate::error::{Error, Result};

const DAY: i64 = 24 * 60 * 60;

/// `2024-02-29T12:00:00Z` of seconds since 1970.
pub fn rfc3339(seconds: i64) -> String {
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let rest = seconds.rem_euclid(DAY);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Seconds since 1970 of what [`rfc3339`] wrote.
///
/// # Errors
/// Internal: the text is no such moment.
pub fn from_rfc3339(text: &str) -> Result<i64> {
    let moment: Option<Datetime> = text.parse().ok();
    moment.as_ref().and_then(seconds).ok_or_else(|| Error::internal(format!("`{text}` is no moment")))
}

/// Seconds since 1970 of a TOML date with time and offset; fractions are cut. `None` when a part is missing.
pub fn seconds(moment: &Datetime) -> Option<i64> {
    let (date, time) = (moment.date?, moment.time?);
    let offset = match moment.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let days = days(i64::from(date.year), i64::from(date.month), i64::from(date.day));
    let minutes = i64::from(time.hour) * 60 + i64::from(time.minute) - offset;
    Some(days * DAY + minutes * 60 + i64::from(time.second.unwrap_or(0)))
}

/// When a file was last modified, in seconds since 1970; the link itself for a symbolic link.
pub fn modified(path: &Path) -> Result<i64> {
    let moment = fs_err::symlink_metadata(path)?.modified()?;
    Ok(match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    })
}

/// Year, month and day of a day number counted from 1970-01-01 (Gregorian, years begin in March).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_printed_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn days_and_dates_are_inverse() {
        for number in (-200_000..200_000).step_by(13) {
            let (year, month, day) = civil(number);
            assert_eq!(days(year, month, day), number);
        }
    }

    #[test]
    fn offsets_are_taken_off_and_fractions_cut() {
        let moment: Datetime = "2026-02-19T07:30:57.9+02:30".parse().unwrap();
        assert_eq!(seconds(&moment).map(rfc3339).unwrap(), "2026-02-19T05:00:57Z");
        let local: Datetime = "2026-02-19T07:30:57".parse().unwrap();
        assert_eq!(seconds(&local), None);
    }
}
