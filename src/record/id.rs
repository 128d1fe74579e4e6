//! Identifiers, checked where they are built.

use std::borrow::Borrow;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Why a text is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(pub String);

/// What identifiers have in common: they are read and written as texts.
macro_rules! texts {
    ($($name:ident)+) => {
        $(
            impl $name {
                /// As text.
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl TryFrom<String> for $name {
                type Error = InvalidId;
                fn try_from(text: String) -> Result<Self, InvalidId> {
                    $name::new(&text)
                }
            }

            impl From<$name> for String {
                fn from(id: $name) -> String {
                    id.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    formatter.write_str(&self.0)
                }
            }
        )+
    };
}

texts! { RepoSlug Name CommitSha InstanceId }

/// A repository's name in the dataset, `owner/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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

    /// The slug as one path segment, `owner__name`.
    pub fn file_name(&self) -> String {
        self.0.replace('/', "__")
    }
}

impl Borrow<str> for RepoSlug {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A name that becomes part of a path: of a dataset, a version, a subset, a run of submissions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Longest name, in characters.
    pub const LONGEST: usize = 100;

    /// Accepts letters, digits, `.`, `_` and `-`, a letter or digit first.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if text.len() <= Self::LONGEST && starts && text.chars().all(plain) {
            Ok(Name(text.to_owned()))
        } else {
            let shown: String = text.chars().take(Self::LONGEST).collect();
            Err(InvalidId(format!(
                "{shown:?} is not a name: use letters, digits, `.`, `_` and `-`, a letter or digit first, at most {}",
                Self::LONGEST
            )))
        }
    }

    /// A name that the program itself gives.
    pub(crate) fn fixed(text: &'static str) -> Self {
        debug_assert!(Name::new(text).is_ok(), "{text} is a name");
        Name(text.to_owned())
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
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
}

/// A published instance's id: `owner__name.test_function-<16 hex digits>`, a stable function of slug, commit and group id.
/// The digits alone distinguish instances; what comes before them is for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

/// Hex digits at the end of an instance id.
const DIGITS: usize = 16;
/// Longest name of a test in an instance id, in characters: ids become names of files and containers.
const LONGEST_TEST: usize = 64;

impl InstanceId {
    /// Accepts what is the name of one file: letters, digits, `.`, `_` and `-`, no `.` first.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !text.is_empty() && !text.starts_with('.') && text.chars().all(plain) {
            Ok(InstanceId(text.to_owned()))
        } else {
            Err(InvalidId(format!("`{text}` is not an instance id")))
        }
    }

    /// Derives the id. `commit` is the pin: a commit hash, or `sha256:…` of an sdist.
    pub fn derive(slug: &RepoSlug, commit: &str, group_id: &str) -> Self {
        let hash = hash_parts(&["instance", slug.as_str(), commit, group_id]);
        let (repository, digits) = (slug.file_name(), &hash[..DIGITS]);
        InstanceId(match readable_test(group_id) {
            Some(test) => format!("{repository}.{test}-{digits}"),
            None => format!("{repository}-{digits}"),
        })
    }

    /// Derives the id of a masked file, which is named by its path in the tree, in a scope.
    pub fn of_target(slug: &RepoSlug, commit: &str, scope: &str, target: &str) -> Self {
        let hash = hash_parts(&["recube", slug.as_str(), commit, scope, target]);
        let plain = |c: char| match c {
            '/' | '.' => '.',
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        };
        let name: Vec<char> = target.strip_suffix(".py").unwrap_or(target).chars().map(plain).collect();
        let end: String = name[name.len().saturating_sub(LONGEST_TEST)..].iter().collect();
        InstanceId(format!("{}.{end}-{}", slug.file_name(), &hash[..DIGITS]))
    }

    /// Derives the id of a pair of commits of a repository.
    pub fn of_pair(repo: &RepoSlug, base: &str, golden: &str) -> Self {
        let hash = hash_parts(&["codetaste", repo.as_str(), base, golden]);
        let start: String = base.chars().take(8).collect();
        InstanceId(format!("{}.{start}-{}", repo.file_name(), &hash[..DIGITS]))
    }

    /// The place of this instance of a repository in the sampling order of a seed: smaller comes first. It goes by the
    /// digits of the id, so that a new spelling of the rest chooses no other instances.
    pub fn sample_order(&self, slug: &RepoSlug, seed: u64) -> [u8; 32] {
        let digits = self.0.rsplit('-').next().unwrap_or_default();
        let mut hasher = Sha256::new();
        hasher.update(seed.to_le_bytes());
        hasher.update(format!("{}-{digits}", slug.file_name()));
        hasher.finalize().into()
    }
}

/// The classes and the function of a group id, with `_` for what has no place in a file name; none for a whole file.
fn readable_test(group_id: &str) -> Option<String> {
    let (_, test) = group_id.split_once("::")?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let names: Vec<String> = test.split("::").map(|name| name.chars().map(plain).collect()).collect();
    Some(names.join(".").chars().take(LONGEST_TEST).collect())
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
    fn a_name_is_one_plain_part_of_a_path() {
        let read = |text: &str| serde_json::from_value::<Name>(text.into());
        for good in ["top", "2026.11", "a-b_c", &"x".repeat(Name::LONGEST)] {
            assert_eq!(read(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            ".",
            "..",
            ".x",
            "-x",
            "../x",
            "/x",
            "a/b",
            "a\\b",
            "a b",
            "a\n",
            "a\0",
            "é",
            &"x".repeat(101),
        ] {
            assert!(read(bad).is_err() && Name::new(bad).is_err(), "{bad}");
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
    fn an_instance_id_says_which_test_it_is_and_can_be_read_back() {
        let slug = RepoSlug::new("a.b/c").unwrap();
        let id = |group: &str| InstanceId::derive(&slug, "c0", group).to_string();
        assert!(id("t/test_a.py::TestA::test_b").starts_with("a.b__c.TestA.test_b-"));
        assert!(id("t/test_a.py::test_é b/../c").starts_with("a.b__c.test___b____c-"));
        assert!(id("t/test_a.py").starts_with("a.b__c-"));
        let long = id(&format!("t.py::{}", "x".repeat(500)));
        assert_eq!(long.len(), "a.b__c.".len() + LONGEST_TEST + 1 + DIGITS);
        for group in ["t/test_a.py", "t.py::test_é b/../c", "t.py::..::-"] {
            assert_eq!(InstanceId::try_from(id(group)).unwrap().as_str(), id(group));
        }
    }

    #[test]
    fn the_sample_goes_by_the_repository_and_the_digits_of_an_id() {
        let slug = RepoSlug::new("pallets/flask").unwrap();
        let commit = "2ac89889f4cc330eabd50f295dcef02828522c69";
        let group = "tests/test_appctx.py::test_app_context_provides_current_app";
        let id = InstanceId::derive(&slug, commit, group);
        let bytes = [3_u64.to_le_bytes().as_slice(), b"pallets__flask-ef2cb75bc3f12380"].concat();
        assert_eq!(hex::encode(id.sample_order(&slug, 3)), sha256_hex(&bytes));
        assert_ne!(id.sample_order(&slug, 3), id.sample_order(&slug, 4));
    }

    #[test]
    fn instance_id_depends_on_each_part_and_not_on_how_they_are_joined() {
        let slug = RepoSlug::new("a/b").unwrap();
        let id = InstanceId::derive(&slug, "c", "d::e");
        assert_eq!(id, InstanceId::derive(&slug, "c", "d::e"));
        assert_ne!(id, InstanceId::derive(&slug, "cd", "::e"));
    }
}
