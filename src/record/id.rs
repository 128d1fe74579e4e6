//! Identifiers, checked where they are built.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Why a text is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(pub String);

/// A repository's name in the dataset, `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoSlug(String);

impl RepoSlug {
    /// Accepts `owner/name` of letters, digits, `.`, `_` and `-`; neither part may be `.` or `..`.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let part_is_fine = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        };
        match text.split_once('/') {
            Some((owner, name)) if part_is_fine(owner) && part_is_fine(name) => Ok(RepoSlug(text.to_owned())),
            _ => Err(InvalidId(format!(
                "`{text}` is not a slug: write `owner/name` with letters, digits, `.`, `_` or `-`"
            ))),
        }
    }

    /// The slug as `owner/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The slug as one path segment, `owner__name`.
    pub fn file_name(&self) -> String {
        self.0.replace('/', "__")
    }
}

impl TryFrom<String> for RepoSlug {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        RepoSlug::new(&text)
    }
}

impl From<RepoSlug> for String {
    fn from(slug: RepoSlug) -> String {
        slug.0
    }
}

impl fmt::Display for RepoSlug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A full commit hash: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitSha(String);

impl CommitSha {
    /// Refuses anything but a full lower-case hash, so a branch, tag or short hash never pins a build.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if is_hex && matches!(text.len(), 40 | 64) {
            Ok(CommitSha(text.to_owned()))
        } else {
            Err(InvalidId(format!("`{text}` is not a full commit hash")))
        }
    }

    /// The hash in hex.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CommitSha {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        CommitSha::new(&text)
    }
}

impl From<CommitSha> for String {
    fn from(commit: CommitSha) -> String {
        commit.0
    }
}

impl fmt::Display for CommitSha {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A published instance's id: `owner__name-<16 hex digits>`, a stable function of slug, commit and group id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

impl InstanceId {
    /// Derives the id. `commit` is the pin: a commit hash, or `sha256:…` of an sdist.
    pub fn derive(slug: &RepoSlug, commit: &str, group_id: &str) -> Self {
        let hash = hash_parts(&["instance", slug.as_str(), commit, group_id]);
        InstanceId(format!("{}-{}", slug.file_name(), &hash[..16]))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The place of this id in the sampling order of a seed: smaller comes first.
    pub fn sample_order(&self, seed: u64) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(seed.to_le_bytes());
        hasher.update(self.0.as_bytes());
        hasher.finalize().into()
    }
}

impl TryFrom<String> for InstanceId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !text.is_empty() && !text.starts_with('.') && text.chars().all(plain) {
            Ok(InstanceId(text))
        } else {
            Err(InvalidId(format!("`{text}` is not an instance id")))
        }
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> String {
        id.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// SHA-256 over parts, each with its length in front, so no two lists of parts collide; in hex.
pub fn hash_parts<T: AsRef<[u8]>>(parts: &[T]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex::encode(hasher.finalize())
}

/// SHA-256 of bytes, in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_has_two_plain_parts() {
        assert!(RepoSlug::new("pallets/flask").is_ok());
        for bad in ["flask", "a/b/c", "../x", "a/..", "a b/c", "/x", "x/"] {
            assert!(RepoSlug::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn short_hash_branch_and_upper_case_are_no_commits() {
        let full = "2ac89889f4cc330eabd50f295dcef02828522c69";
        assert!(CommitSha::new(full).is_ok());
        for bad in ["main", "2ac89889", &full.to_uppercase()] {
            assert!(CommitSha::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_instance_id_names_no_other_place() {
        let read = |text: &str| serde_json::from_value::<InstanceId>(text.into());
        assert!(read("a__b.c-0123456789abcdef").is_ok());
        for bad in ["", "..", "../x", "/x", "a/b", "a b", "a\n"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instance_id_depends_on_each_part_and_not_on_how_they_are_joined() {
        let slug = RepoSlug::new("a/b").unwrap();
        let id = InstanceId::derive(&slug, "c", "d::e");
        assert_eq!(id, InstanceId::derive(&slug, "c", "d::e"));
        assert_ne!(id, InstanceId::derive(&slug, "cd", "::e"));
    }
}
