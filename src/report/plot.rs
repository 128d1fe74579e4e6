//! What the plots of the page share: colours that the style sheet sets, and a size that follows the page.

use plotters::prelude::*;

/// Colours that no plot uses, each replaced by a variable of the style sheet.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
pub(super) const FAINT: RGBColor = RGBColor(1, 2, 4);
pub(super) const PLAIN: RGBColor = RGBColor(1, 2, 5);
pub(super) const TOP: RGBColor = RGBColor(1, 2, 6);
/// Easy, medium, hard.
pub(super) const TIERS: [RGBColor; 3] = [RGBColor(1, 2, 7), RGBColor(1, 2, 8), RGBColor(1, 2, 9)];

const VARIABLES: [(&str, &str); 7] = [
    ("#010203", "var(--ink)"),
    ("#010204", "var(--line)"),
    ("#010205", "var(--plain)"),
    ("#010206", "var(--top)"),
    ("#010207", "var(--good)"),
    ("#010208", "var(--middle)"),
    ("#010209", "var(--bad)"),
];

/// Lets a picture take its colours and its width from the page, and names it for those who do not see it.
pub(super) fn fluid(text: &str, size: (u32, u32), label: &str) -> String {
    let fixed = format!("<svg width=\"{}\" height=\"{}\"", size.0, size.1);
    let named = text.replacen(&fixed, &format!("<svg role=\"img\" aria-label=\"{label}\""), 1);
    VARIABLES.iter().fold(named, |text, (colour, variable)| text.replace(colour, variable))
}
