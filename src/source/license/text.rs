//! License files, recognised by comparing their text with the known licenses.

use std::sync::LazyLock;

use regex::Regex;
use spdx::detection::{Store, TextData};

use super::evidence::Evidence;
use crate::beneath::Folder;

/// Below this likeness a text is not the license that it resembles most. The usual copyright lines cost nothing.
const LIKENESS: f32 = 0.93;

/// From this likeness on a text is that license and none of its relatives.
const SAME: f32 = 0.99;

/// Relatives within this distance of the best are not told apart.
const MARGIN: f32 = 0.05;

/// What the license files in the root of a tree allow. Files beside a plain `LICENSE` (`LICENSE-third-party` …) are
/// about parts of the tree and count only where there is no plain one.
pub(super) fn read(root: &Folder) -> Vec<Evidence> {
    static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)^(licen[cs]e|copying|unlicense)(\.(txt|md|rst))?$").expect("valid")
    });
    static ANY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)^(licen[cs]e|copying)[-_.][a-z0-9.+_-]+$").expect("valid"));
    let names = root.names().unwrap_or_default();
    let texts = |pattern: &Regex| -> Vec<(&String, Vec<u8>)> {
        let fitting = names.iter().filter(|name| pattern.is_match(name));
        fitting.filter_map(|name| Some((name, super::read(root, name)?))).collect()
    };
    let plain = texts(&PLAIN);
    let files = if plain.is_empty() { texts(&ANY) } else { plain };
    let known = files.into_iter().filter_map(|(name, text)| evidence(&String::from_utf8_lossy(&text), name));
    known.collect()
}

/// What the text of a license allows: the one that it resembles most, and those that it resembles nearly as much,
/// unless it is one to the letter. `None` when it is not clearly a license.
pub(super) fn evidence(text: &str, source: &str) -> Option<Evidence> {
    static STORE: LazyLock<Option<Store>> = LazyLock::new(|| Store::load_inline().ok());
    const SHORTEST: usize = 100;
    if text.len() < SHORTEST {
        return None;
    }
    let store = STORE.as_ref()?;
    let data = TextData::from(text);
    let likeness = |name: &str| store.get_original(name).map_or(0.0, |known| known.match_score(&data));
    let scores: Vec<(&str, f32)> = store.licenses().map(|name| (name.as_str(), likeness(name))).collect();
    let allowed = allowed(&scores, text);
    (!allowed.is_empty()).then(|| Evidence { allowed, source: source.to_owned() })
}

/// Pure: the licenses that a text with these likenesses may be, sorted.
fn allowed(scores: &[(&str, f32)], text: &str) -> Vec<String> {
    let best = scores.iter().map(|(_, score)| *score).fold(0.0, f32::max);
    let least = if best >= SAME { best } else { LIKENESS.max(best - MARGIN) };
    let near = scores.iter().filter(|(name, score)| *score >= least && !is_impostor(name, text));
    let mut allowed: Vec<String> = near.flat_map(|(name, _)| variants(name)).collect();
    allowed.sort_unstable();
    allowed.dedup();
    allowed
}

/// The Pixar license is Apache-2.0 with one other sentence and without the appendix, so Apache-2.0 without its appendix
/// resembles it more than itself.
fn is_impostor(name: &str, text: &str) -> bool {
    name == "Pixar" && !text.contains("and its affiliates, except")
}

/// The text of a GNU license is the same whether or not later versions are allowed.
fn variants(name: &str) -> Vec<String> {
    let is_gnu = ["GPL-", "LGPL-", "AGPL-", "GFDL-"].iter().any(|start| name.starts_with(start));
    if !is_gnu {
        return vec![name.to_owned()];
    }
    let base = name.trim_end_matches("-only").trim_end_matches("-or-later").trim_end_matches('+');
    vec![format!("{base}-only"), format!("{base}-or-later")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relatives_that_are_nearly_as_like_leave_it_open() {
        let names = |scores: &[(&str, f32)]| allowed(scores, "");
        assert_eq!(names(&[("MIT", 1.0), ("JSON", 0.97)]), ["MIT"], "to the letter");
        assert_eq!(names(&[("MIT", 0.97), ("JSON", 0.95)]), ["JSON", "MIT"]);
        assert_eq!(names(&[("BSD-3-Clause", 0.96), ("BSD-3-Clause-Clear", 0.92)]), ["BSD-3-Clause"]);
        assert_eq!(names(&[("Pixar", 0.98), ("Apache-2.0", 0.94)]), ["Apache-2.0"]);
        assert_eq!(
            names(&[("GPL-2.0+", 0.98), ("GPL-2.0-only", 0.98)]),
            ["GPL-2.0-only", "GPL-2.0-or-later"]
        );
        assert!(names(&[("MIT", 0.9)]).is_empty());
    }
}
