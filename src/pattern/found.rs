//! What engines of patterns are given and what they find, whichever engine it is.

use std::collections::BTreeMap;

use crate::family::codetaste::lines::Lines;

/// The first characters of what an engine says of a pattern.
pub(super) const LONGEST_ERROR: usize = 500;

/// A document as it is written, by its keys.
pub(crate) type Keys = BTreeMap<String, serde_json::Value>;

/// What a pattern matches on a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    pub matches: u64,
    pub lines: Lines,
}
