//! How much the docstring of a function says.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::score::text::with_plain_line_ends;

/// How much a docstring says, by the headings of Google, NumPy and Sphinx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocstringKind {
    /// There is none, or it is empty.
    None,
    /// It names neither arguments nor results.
    Line,
    /// Arguments or results.
    Sections,
    /// Arguments, results and examples.
    Full,
}

const ARGUMENTS: &str =
    r"(?mi)^\s*(args|arguments|parameters|params|keyword args|other parameters)\s*:?\s*$|:param\b|@param\b";
const RESULTS: &str =
    r"(?mi)^\s*(returns?|yields?)\s*:?\s*$|^\s*(returns?|yields?):\s|:returns?:|:rtype:|:yields?:|@return";
const EXAMPLES: &str = r"(?mi)^\s*examples?\s*:{0,2}\s*$|^\s*>>> ";

/// Arguments, results, examples.
static HEADINGS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [ARGUMENTS, RESULTS, EXAMPLES].map(|heading| Regex::new(heading).expect("a constant pattern"))
});

/// The kind of a docstring, or of its absence.
pub fn docstring_kind(text: Option<&str>) -> DocstringKind {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return DocstringKind::None };
    let text = with_plain_line_ends(text);
    match HEADINGS.each_ref().map(|heading| heading.is_match(&text)) {
        [true, true, true] => DocstringKind::Full,
        [false, false, _] => DocstringKind::Line,
        _ => DocstringKind::Sections,
    }
}
