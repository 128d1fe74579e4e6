//! Lock files: resolved versions with hashes, sorted, the same bytes for the same resolution, no index host. Pure.

use std::collections::BTreeSet;
use std::str::FromStr;

use pep440_rs::Version;
use pep508_rs::VersionOrUrl;

use crate::environment::declared::requirements_files::Hashes;
use crate::record::id::sha256_hex;
use crate::requirement::{normalize, parse};

/// A lock in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    entries: Vec<Entry>,
}

/// One distribution of a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Normalized.
    pub name: String,
    /// `name==version`, or `name @ address`.
    pub requirement: String,
    /// `sha256:…`, sorted.
    pub hashes: Vec<String>,
}

impl Entry {
    /// The hashes that requirements which it meets name for it; none where none does.
    fn named<'a>(&self, all: &'a Hashes) -> Option<BTreeSet<&'a str>> {
        let version = self.requirement.split_once("==")?.1.split(';').next()?.trim();
        let version = Version::from_str(version).ok()?;
        let meets = |text: &str| {
            let Some(one) = parse(text).filter(|one| normalize(one.name.as_ref()) == self.name) else {
                return false;
            };
            match one.version_or_url {
                Some(VersionOrUrl::VersionSpecifier(versions)) => versions.contains(&version),
                Some(VersionOrUrl::Url(_)) => false,
                None => true,
            }
        };
        let mut met = all.iter().filter(|(text, _)| meets(text)).peekable();
        met.peek()?;
        Some(met.flat_map(|(_, hashes)| hashes).map(String::as_str).collect())
    }
}

impl Lock {
    /// Reads what the resolver printed; comments, options and blank lines fall away.
    pub fn parse(text: &str) -> Self {
        let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut entries: Vec<Entry> = joined
            .lines()
            .map(bare)
            .filter(|line| !line.is_empty() && !line.starts_with(['#', '-']))
            .map(|line| {
                let mut parts = line.split(" --hash=").map(|part| bare(part).to_owned());
                let requirement = parts.next().unwrap_or_default();
                let mut hashes: Vec<String> = parts.collect();
                hashes.sort();
                hashes.dedup();
                let name = parse(&requirement).map_or_else(
                    || normalize(requirement.split(['=', ' ', '@']).next().unwrap_or_default()),
                    |requirement| normalize(requirement.name.as_ref()),
                );
                Entry { name, requirement, hashes }
            })
            .collect();
        entries.sort();
        entries.dedup();
        Lock { entries }
    }

    /// This lock and what only the other one has.
    #[must_use]
    pub fn and(&self, other: &Lock) -> Lock {
        let more = other.entries.iter().filter(|entry| !self.has(&entry.name)).cloned();
        let mut entries: Vec<Entry> = self.entries.iter().cloned().chain(more).collect();
        entries.sort();
        Lock { entries }
    }

    /// The canonical text.
    pub fn text(&self) -> String {
        render(self.entries.iter())
    }

    /// SHA-256 of the canonical text.
    pub fn sha256(&self) -> String {
        sha256_hex(self.text().as_bytes())
    }

    /// Every distribution, sorted.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The lock with other requirements and hashes where the function gives some for an entry's requirement.
    #[must_use]
    pub fn with_requirements(&self, replace: impl Fn(&str) -> Option<(String, Vec<String>)>) -> Lock {
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if let Some((requirement, hashes)) = replace(&entry.requirement) {
                (entry.requirement, entry.hashes) = (requirement, hashes);
            }
        }
        entries.sort();
        Lock { entries }
    }

    /// The lock with those hashes alone that requirements name for their distributions; in words, what has none of them.
    pub fn held_to(mut self, named: &Hashes) -> Result<Lock, String> {
        for entry in &mut self.entries {
            let Some(hashes) = entry.named(named) else { continue };
            entry.hashes.retain(|hash| hashes.contains(hash.as_str()));
            if entry.hashes.is_empty() {
                let what = &entry.requirement;
                return Err(format!(
                    "no file of {what} that the index has is one of those that --hash names for it"
                ));
            }
        }
        Ok(self)
    }

    /// The entries without a hash: git references, whose commit stands in for one.
    pub fn direct(&self) -> String {
        render(self.entries.iter().filter(|entry| entry.hashes.is_empty()))
    }

    /// Its versions as constraints, without hashes.
    pub fn constraints(&self) -> String {
        let lines: Vec<&str> = self.entries.iter().map(|entry| entry.requirement.as_str()).collect();
        if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
    }

    /// Number of distributions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a distribution is locked.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }
}

/// A part of a line, without what continues it.
fn bare(part: &str) -> &str {
    part.trim_matches(|c: char| c == '\\' || c.is_whitespace())
}

fn render<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&entry.requirement);
        for hash in &entry.hashes {
            text.push_str(" \\\n    --hash=");
            text.push_str(hash);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "--index-url https://user:secret@index.example/simple\nzlib-x==2 \\\n    --hash=sha256:bb \\\n    --hash=sha256:aa\n\
                        # via x\nAttrs==1 --hash=sha256:cc\nw @ git+https://h.example/w@0123\n";

    #[test]
    fn a_lock_is_held_to_the_hashes_that_requirements_name() {
        let lock = || Lock::parse("a==1.0 --hash=sha256:aa --hash=sha256:bb\nb==2 --hash=sha256:cc\n");
        let named = |lines: &[(&str, &str)]| -> Hashes {
            lines
                .iter()
                .map(|(text, hash)| ((*text).to_owned(), BTreeSet::from([(*hash).to_owned()])))
                .collect()
        };
        let held = |lines: &[(&str, &str)]| lock().held_to(&named(lines)).map(|lock| lock.text());
        assert_eq!(held(&[]), Ok(lock().text()));
        let one = Lock::parse("a==1.0 --hash=sha256:bb\nb==2 --hash=sha256:cc\n").text();
        assert_eq!(held(&[("A==1 ; python_version > '3'", "sha256:bb")]), Ok(one));
        // What is asked of another version says nothing of this one.
        assert_eq!(held(&[("a==0.9", "sha256:00"), ("c==1", "sha256:00")]), Ok(lock().text()));
        for text in ["b==2", "b>=1", "b", "B==2.0"] {
            let refused = held(&[(text, "sha256:00")]).unwrap_err();
            assert!(refused.contains("b==2") && refused.contains("--hash"), "{text}: {refused}");
        }
        assert!(held(&[("b==2", "sha512:cc")]).is_err(), "what cannot be compared is not held");
    }

    #[test]
    fn locks_are_canonical_and_name_no_index() {
        let lock = Lock::parse(TEXT);
        assert_eq!(
            lock.text(),
            "Attrs==1 \\\n    --hash=sha256:cc\nw @ git+https://h.example/w@0123\nzlib-x==2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        );
        assert!(!lock.text().contains("secret"));
        assert_eq!(Lock::parse(&lock.text()), lock);
    }

    #[test]
    fn entries_without_hash_are_told_apart() {
        let lock = Lock::parse(TEXT);
        assert_eq!(lock.direct(), "w @ git+https://h.example/w@0123\n");
        assert!(lock.has("attrs") && !lock.has("x"));
    }
}
