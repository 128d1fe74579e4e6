//! The nearest tag of a commit among those that name a version, as `git describe --tags` finds it. A commit is fetched
//! alone, so its history is asked for only here, and no deeper than is needed to be sure of the answer.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Oid, Repository, Sort};

use super::super::Context;
use super::super::location::Remote;
use super::super::version;
use super::{fetch, reference};
use crate::error::Result;
use crate::interrupt;
use crate::record::source::{NearestTag, TagSearch};

/// Commits below the pinned one that are asked for, step by step; what lies deeper is not looked for.
const DEPTHS: [i32; 3] = [50, 500, 5000];
/// Commits of a local repository that are looked at.
const MOST_COMMITS: usize = 200_000;
/// Tags that are compared, as in git.
const MOST_CANDIDATES: usize = 10;

/// Commits with the best of the tags that name them.
type Tags = BTreeMap<Oid, String>;

/// What the history at hand says.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Sure(TagSearch),
    /// Commits that were not fetched could change it.
    Cut,
}

/// The nearest tag of a commit that lies in a local repository.
///
/// # Errors
/// When its history cannot be read.
pub(crate) fn of_local(repository: &Repository, commit: &str) -> Result<TagSearch> {
    let read = || -> Result<Answer, git2::Error> {
        let mut named = Vec::new();
        for reference in repository.references_glob("refs/tags/*")? {
            let reference = reference?;
            if let (Ok(name), Ok(target)) = (reference.name(), reference.peel_to_commit()) {
                named.push((name.to_owned(), target.id()));
            }
        }
        nearest(repository, Oid::from_str(commit)?, &best_of_each(named))
    };
    match read().map_err(|error| failed(commit, &error))? {
        Answer::Sure(found) => Ok(found),
        Answer::Cut => Ok(TagSearch::NotFound),
    }
}

/// The nearest tag of a commit of a remote repository. Deepens the cache's history until it is sure.
///
/// # Errors
/// When the remote cannot be reached, and when the history cannot be read.
pub(crate) fn of_remote(context: &Context<'_>, remote: &Remote, commit: &str) -> Result<TagSearch> {
    let tags = best_of_each(peeled(reference::advertised(context.check, remote)?));
    let id = super::parse_oid(commit)?;
    if let Some(name) = tags.get(&id) {
        return Ok(TagSearch::Found(NearestTag { name: name.clone(), distance: 0 }));
    }
    if tags.is_empty() {
        return Ok(TagSearch::NotFound);
    }
    let mut repository = fetch::fetch(context, remote, id)?;
    for depth in std::iter::once(None).chain(DEPTHS.map(Some)) {
        interrupt::check()?;
        if let Some(depth) = depth {
            context.say(&format!("looking for the nearest tag among {depth} commits"));
            repository = fetch::deepen(context, remote, id, depth)?;
        }
        if let Answer::Sure(found) =
            nearest(&repository, id, &tags).map_err(|error| failed(commit, &error))?
        {
            return Ok(found);
        }
    }
    Ok(TagSearch::NotFound)
}

fn failed(commit: &str, error: &git2::Error) -> crate::error::Error {
    fetch::explain(&format!("cannot read the history of {commit}"), error)
}

/// Tags of a server with their commits: an annotated one is listed twice, the second time as its commit.
fn peeled(heads: Vec<(String, Oid)>) -> Vec<(String, Oid)> {
    let mut tags: BTreeMap<String, Oid> = BTreeMap::new();
    let (commits, direct): (Vec<_>, Vec<_>) = heads.into_iter().partition(|(name, _)| name.ends_with("^{}"));
    for (name, id) in direct.into_iter().chain(commits) {
        tags.insert(name.trim_end_matches("^{}").to_owned(), id);
    }
    tags.into_iter().collect()
}

/// Of the tags of one commit the one with the highest version; those that name none are left out.
fn best_of_each(references: Vec<(String, Oid)>) -> Tags {
    let mut best: BTreeMap<Oid, (pep440_rs::Version, String)> = BTreeMap::new();
    for (reference, id) in references {
        let Some(name) = reference.strip_prefix("refs/tags/") else { continue };
        let Some(version) = version::of_tag(name) else { continue };
        let found = (version, name.to_owned());
        if best.get(&id).is_none_or(|known| *known < found) {
            best.insert(id, found);
        }
    }
    best.into_iter().map(|(id, (_, name))| (id, name)).collect()
}

/// The tagged ancestor that leaves the fewest commits on the way to this one; of two, the one with the newer commit.
fn nearest(repository: &Repository, commit: Oid, tags: &Tags) -> Result<Answer, git2::Error> {
    let ends = shallow_ends(repository);
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TIME)?;
    walk.push(commit)?;
    let (mut candidates, mut is_cut) = (Vec::new(), false);
    for (number, id) in walk.enumerate() {
        let id = id?;
        is_cut |= ends.contains(&id) || number >= MOST_COMMITS;
        candidates.extend(tags.get(&id).map(|name| (id, name)));
        if candidates.len() == MOST_CANDIDATES || number >= MOST_COMMITS || interrupt::requested() {
            break;
        }
    }
    let mut best: Option<(usize, Oid, &String)> = None;
    for (id, name) in candidates {
        let (distance, _) = repository.graph_ahead_behind(commit, id)?;
        if best.is_none_or(|(least, _, _)| distance < least) {
            best = Some((distance, id, name));
        }
    }
    let Some((distance, id, name)) = best else {
        return Ok(if is_cut { Answer::Cut } else { Answer::Sure(TagSearch::NotFound) });
    };
    // Where the history on this side of the tag is whole, nothing beyond it is nearer.
    let mut side = repository.revwalk()?;
    side.push(commit)?;
    side.hide(id)?;
    for id in side {
        if ends.contains(&id?) {
            return Ok(Answer::Cut);
        }
    }
    Ok(Answer::Sure(TagSearch::Found(NearestTag { name: name.clone(), distance: distance as u64 })))
}

/// Commits whose parents were not fetched.
fn shallow_ends(repository: &Repository) -> BTreeSet<Oid> {
    let text = fs_err::read_to_string(repository.commondir().join("shallow")).unwrap_or_default();
    text.lines().filter_map(|line| Oid::from_str(line.trim()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Signature, Time};

    struct History {
        folder: tempfile::TempDir,
        repository: Repository,
    }

    impl History {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let repository = Repository::init_bare(folder.path()).unwrap();
            History { folder, repository }
        }

        /// A commit, made so many seconds after 1970.
        fn commit(&self, seconds: i64, parents: &[Oid]) -> Oid {
            let tree = self.repository.treebuilder(None).unwrap().write().unwrap();
            let tree = self.repository.find_tree(tree).unwrap();
            let who = Signature::new("A", "a@example.org", &Time::new(seconds, 0)).unwrap();
            let parents: Vec<_> =
                parents.iter().map(|id| self.repository.find_commit(*id).unwrap()).collect();
            let parents: Vec<_> = parents.iter().collect();
            self.repository.commit(None, &who, &who, "message", &tree, &parents).unwrap()
        }

        fn tag(&self, name: &str, commit: Oid) {
            self.repository.reference(&format!("refs/tags/{name}"), commit, true, "").unwrap();
        }

        fn nearest(&self, commit: Oid) -> TagSearch {
            of_local(&self.repository, &commit.to_string()).unwrap()
        }
    }

    fn found(name: &str, distance: u64) -> TagSearch {
        TagSearch::Found(NearestTag { name: name.to_owned(), distance })
    }

    #[test]
    fn the_nearest_tag_is_the_one_with_the_fewest_commits_since() {
        let history = History::new();
        let old = history.commit(1, &[]);
        let released = history.commit(2, &[old]);
        // A branch that was begun before the release, with a newer tag of its own, and merged.
        let side = history.commit(9, &[old]);
        let more = history.commit(10, &[side]);
        let main = history.commit(3, &[released]);
        let merged = history.commit(11, &[main, more]);
        history.tag("v1.0", old);
        assert_eq!(history.nearest(merged), found("v1.0", 5));
        history.tag("v1.1", released);
        assert_eq!(history.nearest(merged), found("v1.1", 4));
        history.tag("0.9.post1", more);
        assert_eq!(
            history.nearest(merged),
            found("0.9.post1", 3),
            "the fewest commits decide, not the version"
        );
        assert_eq!(history.nearest(released), found("v1.1", 0));
    }

    #[test]
    fn only_tags_that_name_a_version_count_and_the_highest_of_one_commit() {
        let history = History::new();
        let first = history.commit(1, &[]);
        let second = history.commit(2, &[first]);
        for name in ["latest", "nightly-build", "REL_1_2"] {
            history.tag(name, second);
        }
        assert_eq!(history.nearest(second), TagSearch::NotFound);
        for name in ["1.9", "1.10rc1", "1.10"] {
            history.tag(name, first);
        }
        assert_eq!(history.nearest(second), found("1.10", 1));
    }

    #[test]
    fn history_that_is_cut_where_it_matters_gives_no_answer() {
        let history = History::new();
        let mut commits = vec![history.commit(1, &[])];
        for number in 2..6 {
            commits.push(history.commit(number, &[commits[commits.len() - 1]]));
        }
        history.tag("v1", commits[0]);
        let shallow = |at: usize| {
            fs_err::write(history.folder.path().join("shallow"), format!("{}\n", commits[at])).unwrap();
            let repository = Repository::open(history.folder.path()).unwrap();
            let tags = Tags::from([(commits[0], "v1".to_owned()), (commits[2], "v2".to_owned())]);
            nearest(&repository, commits[4], &tags).unwrap()
        };
        assert_eq!(shallow(3), Answer::Cut, "no tag is in what was fetched");
        assert_eq!(shallow(2), Answer::Sure(found("v2", 2)), "what lies behind the tag does not matter");
    }

    #[test]
    fn an_annotated_tag_stands_for_its_commit() {
        let id = |digit: &str| Oid::from_str(&digit.repeat(40)).unwrap();
        let heads = [("refs/tags/v1", id("a")), ("refs/tags/v1^{}", id("b")), ("refs/heads/v2", id("c"))];
        let tags = best_of_each(peeled(heads.map(|(name, id)| (name.to_owned(), id)).into()));
        assert_eq!(tags, Tags::from([(id("b"), "v1".to_owned())]));
    }
}
