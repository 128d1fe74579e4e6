//! Numbers and names as the page writes them. Pure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// In percent, to a thousandth.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    (part as f64 * 100_000.0 / whole.max(1) as f64).round() / 1000.0
}

/// A number in full, its digits in groups of three.
pub(super) fn number_text(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// What an address has as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as a part of an address: everything but letters, digits and `-_.~` by its bytes.
pub(super) fn address_part(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}
