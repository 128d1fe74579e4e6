//! Durations and sizes as people write them.

use std::time::Duration;

/// How durations are written, for hints.
pub(crate) const DURATION_EXAMPLES: &str = "write it like \"60s\", \"5m\", \"1h30m\" or \"500ms\"";
/// How sizes are written, for hints.
pub(crate) const SIZE_EXAMPLES: &str = "write it like \"512MiB\" or \"4GiB\"";

const DURATION_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 10] = [
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("", 1),
];

/// Reads `60s`, `5m`, `1h30m`, `500ms`: whole numbers with falling units, each at most once.
///
/// # Errors
/// What is wrong with the text, to be put behind the key's name.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut largest = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_digits(rest);
        let (unit, after) = split_letters(after);
        let scale = match DURATION_UNITS.iter().find(|(name, _)| *name == unit) {
            _ if number.is_empty() => return Err("is not a duration".to_owned()),
            Some((_, scale)) => *scale,
            None if !unit.is_empty() => return Err("is a duration with an unknown unit".to_owned()),
            None if after.is_empty() => return Err("is a duration without a unit".to_owned()),
            None => return Err("is not a duration".to_owned()),
        };
        if scale >= largest {
            return Err("has its units out of order".to_owned());
        }
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        total = part.and_then(|part| total.checked_add(part)).ok_or("is too long a duration")?;
        (rest, largest) = (after, scale);
    }
    match total {
        0 if text.is_empty() => Err("is empty".to_owned()),
        0 => Err("is zero".to_owned()),
        total => Ok(Duration::from_millis(total)),
    }
}

/// Writes a duration so that [`parse_duration`] reads the same one back: seconds, or milliseconds where needed.
pub(crate) fn format_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds.is_multiple_of(1_000) {
        format!("{}s", milliseconds / 1_000)
    } else {
        format!("{milliseconds}ms")
    }
}

/// Reads `4GiB`, `512MiB`, `1.5GiB`, `10MB`, `4096`.
///
/// # Errors
/// What is wrong with the text, to be put behind the key's name.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (whole, after) = split_digits(text.trim());
    let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
    let unit = after.trim_start().to_ascii_lowercase();
    if whole.is_empty() {
        return Err("is not a size".to_owned());
    }
    let scale = SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or("is a size with an unknown unit")?.1;
    let number = whole.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    number
        .and_then(|number| number.checked_add(part_of(fraction, scale)))
        .ok_or("is too large a size".to_owned())
}

/// Writes a size in the largest unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(scale, _)| bytes > 0 && bytes.is_multiple_of(*scale)) {
        Some((scale, unit)) => format!("{}{unit}", bytes / scale),
        None => format!("{bytes}B"),
    }
}

/// The decimals behind the point, in bytes.
fn part_of(fraction: &str, scale: u64) -> u64 {
    let digits: String = fraction.chars().take(9).collect();
    let Ok(number) = digits.parse::<u128>() else { return 0 };
    let power = u32::try_from(digits.len()).unwrap_or_default();
    u64::try_from(number * u128::from(scale) / 10u128.pow(power)).unwrap_or_default()
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn split_letters(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, milliseconds) in
            [("60s", 60_000), ("5m", 300_000), ("1h30m", 5_400_000), ("500ms", 500), ("1m1s1ms", 61_001)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn bad_durations_say_what_is_wrong() {
        for (text, problem) in [
            ("", "is empty"),
            ("0s", "is zero"),
            ("60", "is a duration without a unit"),
            ("60 s", "is not a duration"),
            ("5 minutes", "is not a duration"),
            ("5min", "is a duration with an unknown unit"),
            ("-5s", "is not a duration"),
            ("1.5h", "is not a duration"),
            ("30m1h", "has its units out of order"),
            ("1s1s", "has its units out of order"),
            ("99999999999999999999s", "is too long a duration"),
            ("18446744073709551615h", "is too long a duration"),
        ] {
            assert_eq!(parse_duration(text), Err(problem.to_owned()), "{text}");
        }
    }

    #[test]
    fn printing_and_reading_a_duration_is_the_identity() {
        for milliseconds in (1..5_000).chain([60_000, 3_600_000, 86_400_001]) {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("512 MiB", 512 << 20),
            ("1.5kib", 1536),
            ("10MB", 10_000_000),
            ("4096", 4096),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn printing_and_reading_a_size_is_the_identity() {
        for bytes in [0, 1, 1023, 1024, 1536, 5 << 20, 4 << 30, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn bad_sizes_are_refused() {
        for text in ["", "GiB", "4 gigs", "-1", "99999999999TiB", "1e9"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
