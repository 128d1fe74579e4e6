//! Moments in UTC as RFC 3339 text: one reader and one writer for all that name a time. Pure, no clock.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

/// A moment between the years -9999 and 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Timestamp);

impl Moment {
    /// A date and time with offset; none for any other text, and for what is out of range.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Moment)
    }

    /// A date and time with offset, or a date, which means its last second; none for any other text.
    pub fn parse_end(text: &str) -> Option<Self> {
        let end = |date: Date| date.at(23, 59, 59, 0).to_zoned(TimeZone::UTC).ok();
        match text.parse::<Date>() {
            Ok(date) if text.len() == "2026-01-01".len() => end(date).map(|end| Moment(end.timestamp())),
            _ => Moment::parse(text),
        }
    }

    /// So many seconds after 1970 began; the nearest moment where that is out of range.
    pub fn of_seconds(seconds: i64) -> Self {
        let nearest = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Moment(Timestamp::from_second(seconds).unwrap_or(nearest))
    }

    /// For libraries that count in it.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    /// Whole seconds since 1970 began.
    pub fn seconds(self) -> i64 {
        self.0.as_second()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The newest upload that may be installed, published as it is written in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cutoff {
    written: String,
    moment: Moment,
}

impl Cutoff {
    /// A date, which means its last second, or a date and time with offset.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Cutoff { written: text.to_owned(), moment: Moment::parse_end(text)? })
    }

    /// What it means.
    pub fn moment(&self) -> Moment {
        self.moment
    }
}

impl Serialize for Cutoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        Moment::parse_end(text).map(|moment| moment.to_string())
    }

    #[test]
    fn seconds_and_texts_agree() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(Moment::of_seconds(seconds).to_string(), text);
            assert_eq!(Moment::parse(text).unwrap().seconds(), seconds);
        }
    }

    #[test]
    fn a_date_means_its_end_and_offsets_are_taken_off() {
        assert_eq!(shown("2026-01-01").unwrap(), "2026-01-01T23:59:59Z");
        assert_eq!(shown("2026-02-19T07:30:57+02:30").unwrap(), "2026-02-19T05:00:57Z");
        assert_eq!(shown("2026-02-19 07:30:57z").unwrap(), "2026-02-19T07:30:57Z");
        assert_eq!(Moment::parse("2000-02-29T12:00:00.5Z").unwrap().seconds(), 951_825_600);
    }

    #[test]
    fn a_cutoff_is_published_as_it_was_written() {
        let cutoff = Cutoff::parse("2026-01-01").unwrap();
        assert_eq!(cutoff.moment().to_string(), "2026-01-01T23:59:59Z");
        assert_eq!(serde_json::to_string(&cutoff).unwrap(), "\"2026-01-01\"");
        assert_eq!(Cutoff::parse("2026-01"), None);
    }

    #[test]
    fn what_is_not_a_moment_is_refused() {
        for text in
            ["", "yesterday", "2026-01-01T12:00:00", "2026-13-01", "9999-12-31", "9999-12-31T00:00:00Z"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(Moment::parse("2026-01-01"), None);
    }

    #[test]
    fn seconds_that_no_calendar_has_become_the_nearest_moment() {
        assert_eq!(Moment::of_seconds(i64::MAX).to_string(), "9999-12-30T22:00:00.999999999Z");
        assert!(Moment::parse(&Moment::of_seconds(i64::MIN).to_string()).is_some());
    }
}
