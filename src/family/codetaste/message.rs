//! Messages of commits: whether one reads like that of a refactoring.

use std::sync::LazyLock;

use regex::Regex;

/// Words and phrases; `refactor*` is every word that begins so.
#[derive(Debug, Clone, Default)]
pub struct Keywords {
    /// None of no words.
    pattern: Option<Regex>,
}

impl Keywords {
    /// # Errors
    /// The first word that has no letter or digit at its begin.
    pub fn new(words: &[impl AsRef<str>]) -> Result<Self, String> {
        let mut each = Vec::new();
        for word in words.iter().map(AsRef::as_ref) {
            let (stem, ending) = word.strip_suffix('*').map_or((word, ""), |stem| (stem, r"\w*"));
            if !stem.starts_with(char::is_alphanumeric) {
                return Err(word.to_owned());
            }
            each.push(regex::escape(stem) + ending);
        }
        // A hyphen joins words.
        let pattern = format!(r"(?i)(?:^|[^\w\-])({})(?:$|[^\w\-])", each.join("|"));
        let pattern = (!each.is_empty()).then(|| Regex::new(&pattern).map_err(|error| error.to_string()));
        Ok(Keywords { pattern: pattern.transpose()? })
    }

    /// How often they occur in the [text](plain) of a message.
    fn count(&self, plain: &str) -> u32 {
        let Some(pattern) = &self.pattern else { return 0 };
        let (mut at, mut count) = (0, 0);
        while let Some(found) = pattern.captures_at(plain, at).and_then(|found| found.get(1)) {
            count += 1;
            // What ends one word may be what the next one begins after.
            at = found.end();
        }
        count
    }
}

/// The four lists of words.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    pub plus_strong: Keywords,
    pub plus_weak: Keywords,
    pub minus_strong: Keywords,
    pub minus_weak: Keywords,
}

/// How often words of each list occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct WordCounts {
    pub plus_strong: u32,
    pub plus_weak: u32,
    pub minus_strong: u32,
    pub minus_weak: u32,
}

/// Why a message does not read like that of a refactoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlikely {
    StrongNegative,
    NoKeyword,
    WeakNegative,
}

impl Lists {
    pub fn count(&self, message: &str) -> WordCounts {
        let plain = plain(message);
        WordCounts {
            plus_strong: self.plus_strong.count(&plain),
            plus_weak: self.plus_weak.count(&plain),
            minus_strong: self.minus_strong.count(&plain),
            minus_weak: self.minus_weak.count(&plain),
        }
    }
}

/// Fewer positive words for each weak negative one are too few.
const MIN_RATIO: u32 = 2;

impl WordCounts {
    pub fn unlikely(self) -> Option<Unlikely> {
        let plus = self.plus_strong + self.plus_weak;
        if self.minus_strong > 0 {
            Some(Unlikely::StrongNegative)
        } else if plus == 0 {
            Some(Unlikely::NoKeyword)
        } else if plus < MIN_RATIO.saturating_mul(self.minus_weak) {
            Some(Unlikely::WeakNegative)
        } else {
            None
        }
    }
}

/// What of a message is looked through: no trailers, no subjects of squashed commits, no references to issues.
fn plain(message: &str) -> String {
    static OTHER: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            r"(?im)^(signed-off-by|co-authored-by|reviewed-by|acked-by|tested-by|change-id|cc):.*$",
            r"(?m)^\s*\* .*$",
            r"(?i)\b(fix(es|ed)?|close[sd]?|resolve[sd]?)\s*:?\s+(issue\s+)?(https?://\S+|[\w./-]*#\d+)",
        ]
        .map(|pattern| Regex::new(pattern).expect("patterns of messages are patterns"))
    });
    OTHER.iter().fold(message.to_owned(), |text, pattern| pattern.replace_all(&text, "").into_owned())
}

#[cfg(test)]
pub(super) fn count_of(message: &str, words: &[String]) -> u32 {
    Keywords::new(words).unwrap().count(&plain(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_share_a_space_are_two() {
        let words = ["move", "clean up", "clean"].map(str::to_owned);
        assert_eq!(count_of("move Move clean up, clean move-x xmove", &words), 4);
        assert_eq!(Keywords::new(&["", "fix"]).unwrap_err(), "");
        assert_eq!(Keywords::new(&["*"]).unwrap_err(), "*");
        assert_eq!(count_of("a.b axb", &["a.b".to_owned()]), 1);
    }
}
