//! What a model said of commits: JSON lines that a user brings. gistmill asks no model.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::document;
use crate::error::{Error, Result};
use crate::family::codetaste::funnel::{Measured, ModelScores};
use crate::redact::quote;

/// Scores by commit.
#[derive(Debug)]
pub(crate) struct Scores {
    place: String,
    by_commit: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Line {
    commit: String,
    #[serde(flatten)]
    scores: ModelScores,
}

impl Scores {
    /// Reads a file of JSON lines.
    ///
    /// # Errors
    /// A usage error with the line: not JSON, a number that is missing or not from 0 to 1, a commit that is in it twice.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        Self::parse(file.display().to_string(), &document::read_text(file)?)
    }

    fn parse(place: String, text: &str) -> Result<Self> {
        let mut by_commit = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let refused = |why: String| {
                Error::usage(format!("{place}:{}: {why}", number + 1)).with_hint(
                    "a line is {\"commit\": …, \"message\": {\"large\": …, …}, \"diff\": {\"refactor\": …, …}}, with numbers \
                     from 0 to 1; docs/codetaste.md has their names",
                )
            };
            let line: Line = serde_json::from_str(line).map_err(|error| refused(error.to_string()))?;
            let values = line.scores.message.values().into_iter().chain(line.scores.diff.values());
            if let Some(value) = values.into_iter().find(|value| !(0.0..=1.0).contains(value)) {
                return Err(refused(format!("{value} is not from 0 to 1")));
            }
            let twice = format!("the commit {} has scores already", quote(&line.commit));
            if by_commit.insert(line.commit, line.scores.total()).is_some() {
                return Err(refused(twice));
            }
        }
        Ok(Scores { place, by_commit })
    }

    /// The total of each commit.
    ///
    /// # Errors
    /// A usage error that names the first commit without scores.
    pub(super) fn totals(&self, pool: &[Measured]) -> Result<BTreeMap<String, f64>> {
        let known = |one: &&Measured| !self.by_commit.contains_key(&one.commit);
        let missing: Vec<&Measured> = pool.iter().filter(known).collect();
        if let Some(first) = missing.first() {
            let count = crate::text::count(missing.len(), "commit");
            return Err(Error::usage(format!("{} has no scores of {count}: {} …", self.place, first.commit))
                .with_hint("`gistmill commits` without --scores lists the commits that need them"));
        }
        Ok(pool.iter().map(|one| (one.commit.clone(), self.by_commit[&one.commit])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"commit": "c1",
        "message": {"large": 0.88, "refactor": 0.82, "cohesion": 0.72, "length": 0.12, "trivial": 0.08, "uncertain": 0.12},
        "diff": {"refactor": 0.92, "complexity": 0.85, "mixed": 0.05, "risky": 0.25, "uncertain": 0.08, "trivial": 0.12,
        "auto": 0.75}}"#;

    #[test]
    fn scores_are_added_up_and_what_is_wrong_has_its_line() {
        let line = LINE.replace('\n', " ");
        let parse = |text: &str| Scores::parse("s.jsonl".to_owned(), text);
        let scores = parse(&format!("\n{line}\n")).unwrap();
        let pool = |commit: &str| [Measured { commit: commit.to_owned(), ..Measured::default() }];
        assert!((scores.totals(&pool("c1")).unwrap()["c1"] - 0.634_187_5).abs() < 1e-9);
        let message = scores.totals(&pool("c2")).unwrap_err().to_string();
        assert!(message.contains("1 commit: c2"), "{message}");
        for (text, expected) in [
            (line.replace("0.88", "1.5"), "s.jsonl:1: 1.5 is not from 0 to 1"),
            (line.replace("\"risky\": 0.25,", ""), "missing field `risky`"),
            (format!("{line}\n{line}"), "s.jsonl:2: the commit `c1` has scores already"),
            ("x".to_owned(), "s.jsonl:1: expected value"),
        ] {
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
