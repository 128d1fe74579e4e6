//! Numbers and names as the page writes them. Pure.

use std::fmt::Write as _;

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

/// A text as a part of an address: everything but letters, digits and `-_.~` by its bytes.
pub(super) fn address_part(text: &str) -> String {
    let mut part = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}
