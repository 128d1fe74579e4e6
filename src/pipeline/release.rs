//! What of a release stays: a build never takes away what a dataset holds, and never changes what it was made of, unless it
//! is asked to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::instance::{Contribution, FailedRepository};
use crate::text::count;

/// The dataset that a build would replace.
#[derive(Debug)]
pub(crate) struct Former {
    directory: PathBuf,
    /// Published instances by slug.
    published: BTreeMap<RepoSlug, usize>,
    /// Pin and content of the tree by slug.
    pins: BTreeMap<RepoSlug, (String, String)>,
}

impl Former {
    /// The dataset in a directory; none where there is none, or where it is damaged, which is said.
    pub(crate) fn find(directory: &Path, say: impl Fn(&str)) -> Option<Self> {
        let dataset = Dataset::find(directory).unwrap_or_else(|error| {
            say(&format!("what cannot be read is replaced: {error}"));
            None
        });
        let Dataset { manifest, .. } = dataset?;
        let counts = manifest.counts.repositories.iter();
        Some(Former {
            directory: directory.to_owned(),
            published: counts.map(|(slug, counts)| (slug.clone(), counts.published)).collect(),
            pins: manifest
                .sources
                .into_iter()
                .map(|(slug, source)| (slug, (source.commit, source.tree_sha256)))
                .collect(),
        })
    }

    /// What it was made of, where that is something else than what a build would be made of now: a commit, and the content of
    /// its tree where that is known.
    ///
    /// # Errors
    /// A usage error with both pins.
    pub(crate) fn check_pin(&self, slug: &RepoSlug, commit: &str, tree: Option<&str>) -> Result<()> {
        let holds = self.published.get(slug).is_some_and(|published| *published > 0);
        let Some((was_commit, was_tree)) = self.pins.get(slug).filter(|_| holds) else { return Ok(()) };
        let other_tree = tree.filter(|tree| !was_tree.is_empty() && was_tree != tree);
        let (was, is) = match other_tree {
            _ if was_commit != commit => (was_commit.clone(), commit.to_owned()),
            Some(tree) => (format!("the files {was_tree}"), format!("the files {tree}")),
            None => return Ok(()),
        };
        Err(Error::usage(format!(
            "{} was made of {was} of {slug}, which is {is} now",
            self.directory.display()
        ))
        .with_hint(
            "set another `version` in [dataset], or give --replace: a version keeps what it was made of",
        ))
    }

    /// What a build takes away of it, for people: repositories of which it has fewer instances now, or none. None where it takes
    /// nothing away.
    pub(super) fn shrinks(&self, repositories: &[Contribution]) -> Option<String> {
        let now: BTreeMap<&RepoSlug, usize> =
            repositories.iter().map(|one| (&one.evidence.pinned.slug, one.size())).collect();
        let fewer = self.published.iter().filter_map(|(slug, before)| {
            let now = now.get(slug).copied().unwrap_or_default();
            (now < *before).then(|| {
                format!(
                    "{} of {slug}, {before} before",
                    if now == 0 { "none".to_owned() } else { now.to_string() }
                )
            })
        });
        let fewer: Vec<String> = fewer.collect();
        (!fewer.is_empty()).then(|| {
            format!(
                "{} has fewer instances now: {}; another `version` in [dataset] keeps what there was",
                self.directory.display(),
                fewer.join("; ")
            )
        })
    }

    fn total(&self) -> usize {
        self.published.values().sum()
    }
}

/// Why what a build came to is not written; none where it is.
pub(super) fn kept(
    former: Option<&Former>,
    repositories: &[Contribution],
    failed: &[FailedRepository],
) -> Option<String> {
    let published: usize = repositories.iter().map(Contribution::size).sum();
    let names = |failed: &[&FailedRepository]| {
        failed.iter().map(|one| one.slug.to_string()).collect::<Vec<_>>().join(", ")
    };
    let Some(former) = former.filter(|former| former.total() > 0) else {
        let all: Vec<&FailedRepository> = failed.iter().collect();
        let nothing = published == 0 && !all.is_empty();
        return nothing
            .then(|| format!("no dataset is written: {} failed, and nothing is published", names(&all)));
    };
    let holds = |one: &&FailedRepository| former.published.get(&one.slug).is_some_and(|held| *held > 0);
    let lost: Vec<&FailedRepository> = failed.iter().filter(holds).collect();
    let stays =
        format!("{} stays as it was, with {}", former.directory.display(), count(former.total(), "instance"));
    if !lost.is_empty() {
        Some(format!("{stays}: {} failed", names(&lost)))
    } else if published == 0 {
        Some(format!("{stays}: nothing is published now"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    fn failed(slug: &str) -> FailedRepository {
        FailedRepository {
            slug: RepoSlug::new(slug).unwrap(),
            stage: "source".to_owned(),
            message: String::new(),
            detail: None,
            hint: None,
        }
    }

    fn former(published: &[(&str, usize)]) -> Former {
        Former {
            directory: "out/d/1".into(),
            published: published
                .iter()
                .map(|(slug, number)| (RepoSlug::new(slug).unwrap(), *number))
                .collect(),
            pins: BTreeMap::from([(RepoSlug::new("a/b").unwrap(), ("c".repeat(40), "t0".to_owned()))]),
        }
    }

    #[test]
    fn a_dataset_with_instances_stays_where_less_would_take_its_place() {
        let made_up = MadeUp::new(&[4]);
        let some = made_up.input().repositories;
        let holds = former(&[("a/b", 3)]);
        let said = |former: Option<&Former>, repositories: &[Contribution], failures: &[FailedRepository]| {
            kept(former, repositories, failures)
        };
        assert_eq!(said(Some(&holds), some, &[]), None);
        let why = said(Some(&holds), some, &[failed("a/b")]).unwrap();
        assert_eq!(why, "out/d/1 stays as it was, with 3 instances: a/b failed");
        assert!(said(Some(&holds), &[], &[]).unwrap().ends_with("nothing is published now"));
        assert_eq!(said(Some(&holds), some, &[failed("x/y")]), None, "it holds nothing of what failed");
    }

    #[test]
    fn what_a_build_takes_away_is_said() {
        let made_up = MadeUp::new(&[4]);
        let some = made_up.input().repositories;
        let (slug, size) = (some[0].evidence.pinned.slug.as_str(), some[0].size());
        assert_eq!(former(&[(slug, size)]).shrinks(some), None);
        let said = former(&[(slug, size + 2), ("x/y", 3)]).shrinks(some).unwrap();
        assert!(said.contains(&format!("{size} of {slug}, {} before", size + 2)), "{said}");
        assert!(said.contains("none of x/y, 3 before"), "{said}");
    }

    #[test]
    fn an_empty_dataset_is_not_protected_and_none_is_written_for_a_failure_alone() {
        let made_up = MadeUp::new(&[4]);
        let some = made_up.input().repositories;
        let empty = former(&[("a/b", 0)]);
        assert_eq!(kept(Some(&empty), some, &[failed("a/b")]), None);
        let why = kept(None, &[], &[failed("a/b")]).unwrap();
        assert_eq!(why, "no dataset is written: a/b failed, and nothing is published");
        assert_eq!(kept(None, &[], &[]), None, "why nothing is published is in the dataset");
    }

    #[test]
    fn another_pin_is_named_with_the_one_before() {
        let slug = RepoSlug::new("a/b").unwrap();
        let (was, now) = ("c".repeat(40), "d".repeat(40));
        let holds = former(&[("a/b", 3)]);
        holds.check_pin(&slug, &was, Some("t0")).unwrap();
        holds.check_pin(&slug, &was, None).unwrap();
        for tree in [Some("t0"), None] {
            let moved = holds.check_pin(&slug, &now, tree).unwrap_err().to_string();
            assert!(moved.contains(&was) && moved.contains(&now), "{moved}");
        }
        let changed = holds.check_pin(&slug, &was, Some("t1")).unwrap_err().to_string();
        assert!(changed.contains("the files t0") && changed.contains("the files t1"), "{changed}");
        former(&[("a/b", 0)]).check_pin(&slug, &now, None).unwrap();
    }
}
