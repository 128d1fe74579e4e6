//! Commits of clones: which of them read like refactorings.
//!
//! Reads git alone, through [`crate::source`]: no checkout, no network, and nothing of a repository runs. What drops a commit
//! is decided in [`crate::family::codetaste::funnel`].

mod measure;
mod patch;
mod renames;
mod scores;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{Commit, Oid, Repository, Sort};

use crate::error::{Error, Result};
use crate::family::codetaste::diff::Changed;
use crate::family::codetaste::funnel::{self, Cause, Changes, Limits, Measured, Shape};
use crate::family::codetaste::message::Lists;
use crate::interrupt;
use crate::record::id::RepoSlug;
use crate::source;
use measure::Difference;

pub(crate) use patch::{apply, between};
pub(crate) use scores::Scores;
pub(crate) use words::lists;

/// A clone, and the name of its repository.
#[derive(Debug, Clone)]
pub(crate) struct ClonePlace {
    pub slug: RepoSlug,
    pub path: PathBuf,
}

/// Which commits are looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub limits: Limits,
    /// Whether merges on the first-parent line are candidates, in the place of what they merge.
    pub merges: bool,
    /// Seconds since 1970 between which a commit was made.
    pub since: Option<i64>,
    pub until: Option<i64>,
}

/// A commit and its numbers.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub slug: RepoSlug,
    pub commit: String,
    /// The tree that it starts from: that of its first parent.
    pub base: Option<String>,
    /// Seconds since 1970.
    pub made_at: i64,
    pub subject: String,
    /// What was not looked at has no files.
    pub shape: Shape,
    /// None of what was dropped before lines are counted.
    pub changes: Option<Changes>,
    pub gzip_ratio: Option<f64>,
    pub score: Option<f64>,
    pub cause: Option<Cause>,
}

/// Looks through the clones. What is left comes first and best first, then what was dropped, clone by clone from the newest
/// commit to the oldest.
///
/// # Errors
/// A clone that cannot be read or is shallow, and scores that lack a commit.
pub(crate) fn search(
    clones: &[ClonePlace],
    asked: &Asked,
    lists: &Lists,
    scores: Option<&Scores>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for clone in clones {
        let repository = open(&clone.path)?;
        let history = History { repository: &repository, clone, asked, lists };
        source::bounded(|| history.rows(&mut rows))
            .map_err(|trouble| trouble.at(format!("the history of {}", clone.path.display())))?;
    }
    let pool: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].cause.is_none()).collect();
    let measured: Vec<Measured> = pool.iter().map(|at| rows[*at].measured()).collect();
    let totals = scores.map(|scores| scores.totals(&measured)).transpose()?;
    for (at, one) in pool.iter().zip(&measured) {
        rows[*at].score = totals.as_ref().and_then(|totals| totals.get(&one.commit).copied());
    }
    let ranked = funnel::rank(&measured, &asked.limits, totals.as_ref());
    for (at, cause) in ranked.dropped {
        rows[pool[at]].cause = Some(cause);
    }
    let places: BTreeMap<usize, usize> =
        ranked.kept.iter().enumerate().map(|(place, at)| (pool[*at], place)).collect();
    let mut rows: Vec<(usize, Row)> = rows.into_iter().enumerate().collect();
    rows.sort_by_key(|(at, _)| (places.get(at).copied().unwrap_or(usize::MAX), *at));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Opens a clone that has its whole history.
fn open(path: &Path) -> Result<Repository> {
    let repository = source::open_clone(path)?;
    if repository.is_shallow() {
        return Err(Error::usage(format!(
            "{} is a shallow clone: older commits are missing",
            path.display()
        ))
        .with_hint("`git fetch --unshallow` in it fetches them"));
    }
    Ok(repository)
}

struct History<'a> {
    repository: &'a Repository,
    clone: &'a ClonePlace,
    asked: &'a Asked,
    lists: &'a Lists,
}

impl History<'_> {
    fn rows(&self, rows: &mut Vec<Row>) -> Result<()> {
        let first_parents = self.first_parents().map_err(unreadable)?;
        for id in self.walk().map_err(unreadable)? {
            interrupt::check()?;
            let commit = id.and_then(|id| self.repository.find_commit(id)).map_err(unreadable)?;
            let made_at = commit.time().seconds();
            let is_asked = self.asked.since.is_none_or(|since| made_at >= since)
                && self.asked.until.is_none_or(|until| made_at < until);
            let is_merge = commit.parent_count() > 1;
            if is_asked && (self.asked.merges || !is_merge) {
                let inside_merge = self.asked.merges && first_parents.binary_search(&commit.id()).is_err();
                rows.push(self.row(&commit, inside_merge).map_err(unreadable)?);
            }
        }
        Ok(())
    }

    fn walk(&self) -> Result<git2::Revwalk<'_>, git2::Error> {
        let mut walk = self.repository.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push_head()?;
        Ok(walk)
    }

    /// The line of first parents, in the order of their IDs.
    fn first_parents(&self) -> Result<Vec<Oid>, git2::Error> {
        let mut walk = self.walk()?;
        walk.simplify_first_parent()?;
        let mut line = walk.collect::<Result<Vec<Oid>, _>>()?;
        line.sort();
        Ok(line)
    }

    fn row(&self, commit: &Commit<'_>, inside_merge: bool) -> Result<Row, git2::Error> {
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        let mut row = Row {
            slug: self.clone.slug.clone(),
            commit: commit.id().to_string(),
            base: commit.parent_id(0).ok().map(|id| id.to_string()),
            made_at: commit.time().seconds(),
            subject: message.lines().next().unwrap_or_default().to_owned(),
            shape: Shape { inside_merge, has_parent: commit.parent_count() > 0, ..Shape::default() },
            changes: None,
            gzip_ratio: None,
            score: None,
            cause: None,
        };
        row.shape.words = self.lists.count(&message);
        if row.shape.has_parent && !inside_merge {
            let difference = Difference::of(self.repository, &commit.parent(0)?, commit)?;
            difference.count_files(&mut row.shape);
            row.cause = funnel::first_cause(&row.shape, &self.asked.limits);
            if row.cause.is_none() {
                let lines = difference.lines()?;
                (row.changes, row.gzip_ratio) = (Some(lines.changes), lines.gzip_ratio);
            }
        } else {
            row.cause = funnel::first_cause(&row.shape, &self.asked.limits);
        }
        Ok(row)
    }
}

impl Row {
    fn measured(&self) -> Measured {
        Measured {
            commit: self.commit.clone(),
            shape: self.shape.clone(),
            stars: 0,
            changes: self.changes.unwrap_or_default(),
            gzip_ratio: self.gzip_ratio,
        }
    }
}

fn unreadable(error: git2::Error) -> Error {
    if let Err(interrupted) = interrupt::check() {
        return interrupted;
    }
    Error::repository("a commit cannot be read")
        .with_detail(error.message().to_owned())
        .with_hint("`git fsck` in the clone says what is missing or damaged")
}

/// The lines that one commit changes against another, as a diff that follows files which moved shows them.
///
/// # Errors
/// What cannot be read.
pub(crate) fn changed(repository: &Repository, base: &str, golden: &str) -> Result<Changed> {
    let commit = |hash: &str| repository.find_commit(Oid::from_str(hash)?);
    let read = || Difference::of(repository, &commit(base)?, &commit(golden)?)?.changed();
    source::bounded(|| read().map_err(unreadable))
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
