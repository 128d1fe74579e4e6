//! What a branch, a tag or a short hash stands for now.

use std::path::Path;

use git2::{Direction, ErrorCode, ObjectType, Oid, RemoteHead, Repository};

use super::super::location::{Location, Remote};
use super::super::watch::{self, Patience};
use super::{fetch, memory, open_local};
use crate::error::{Error, Result};

/// The shortest abbreviation that git accepts.
const SHORTEST: usize = 4;

/// The full hash of the commit that a branch, a tag (peeled) or a short hash stands for now; `None` when nothing in the
/// repository is called that, or when more than one commit could be meant. Short hashes are found among the tips that a
/// server advertises, in a local repository among all commits; there a full hash with `^` behind it is its first parent.
///
/// # Errors
/// When the repository cannot be reached or opened.
pub fn resolve_reference(url: &str, text: &str) -> Result<Option<String>> {
    let nothing_to_check = |_: &str| Err(Error::internal("the user's own address was to be looked over"));
    resolve(&nothing_to_check, &Location::parse(url)?, text)
}

/// Full hash of the commit that a branch, a tag or a short hash of a location means now; `check` is that of a
/// [`super::super::Context`].
///
/// # Errors
/// When the repository cannot be reached or opened.
pub(super) fn resolve(
    check: &dyn Fn(&str) -> Result<String>,
    location: &Location,
    text: &str,
) -> Result<Option<String>> {
    let found = match location {
        Location::Local(path) => resolve_local(&open_local(path)?, text),
        Location::Remote(remote) => resolve_advertised(&advertised(check, remote)?, text),
    };
    Ok(found.map(|id| id.to_string()))
}

fn resolve_local(repository: &Repository, text: &str) -> Option<Oid> {
    if let Some(child) = text.strip_suffix('^') {
        return repository.find_commit(Oid::from_str(child).ok()?).ok()?.parent_id(0).ok();
    }
    let names = candidates(text).into_iter().filter_map(|name| repository.find_reference(&name).ok());
    let commits = names.filter_map(|reference| Some(reference.peel_to_commit().ok()?.id()));
    commits.into_iter().next().or_else(|| {
        let prefix = short_hash(text)?;
        let object = repository.find_object_by_prefix(&prefix, None).ok()?;
        // An abbreviation of a tree or a blob is no pin.
        matches!(object.kind(), Some(ObjectType::Commit | ObjectType::Tag)).then_some(())?;
        Some(object.peel_to_commit().ok()?.id())
    })
}

/// Names and hashes that a server shows to whoever connects.
///
/// # Errors
/// When the server cannot be reached.
pub(super) fn advertised(
    check: &dyn Fn(&str) -> Result<String>,
    remote: &Remote,
) -> Result<Vec<(String, Oid)>> {
    fetch::prepare();
    let address = fetch::address(check, remote)?;
    let asked = remote.clone();
    let folder = crate::store::scratch()?;
    // The folder goes with the thread, which may be left behind.
    let work =
        move |watch: &watch::Watch| memory::lend(watch.over(), || listed(folder.path(), &asked, &address)).0;
    let listed = watch::wait(Patience::LIST, &|_| {}, work)
        .map_err(|error| error.at(format!("cannot reach {}", remote.shown())))?;
    listed.map_err(|error| fetch::unreachable("cannot reach", remote, &error))
}

fn listed(folder: &Path, remote: &Remote, address: &str) -> Result<Vec<(String, Oid)>, git2::Error> {
    let repository = Repository::init_bare(folder)?;
    fetch::own_settings(&repository, remote)?;
    let mut connected = repository.remote_anonymous(address)?;
    let asked = connected.url()?.to_owned();
    let connection =
        connected.connect_auth(Direction::Fetch, Some(fetch::login(remote, &asked)), Some(fetch::proxy()))?;
    match connection.list() {
        Ok(heads) => {
            let named = |head: &RemoteHead<'_>| Some((fetch::name_of(head)?.to_owned(), head.oid()));
            Ok(heads.iter().filter_map(named).collect())
        }
        Err(error) if error.code() == ErrorCode::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Pure: a server lists an annotated tag twice, as itself and, with `^{}` behind its name, as its commit.
fn resolve_advertised(heads: &[(String, Oid)], text: &str) -> Option<Oid> {
    let find = |name: &str| heads.iter().find(|(head, _)| head == name).map(|(_, id)| *id);
    let named =
        candidates(text).into_iter().find_map(|name| find(&format!("{name}^{{}}")).or_else(|| find(&name)));
    named.or_else(|| {
        let prefix = short_hash(text)?;
        let mut matching: Vec<Oid> = heads
            .iter()
            .filter(|(_, id)| id.to_string().starts_with(&prefix))
            .map(|(name, id)| find(&format!("{name}^{{}}")).unwrap_or(*id))
            .collect();
        matching.sort_unstable();
        matching.dedup();
        (matching.len() == 1).then(|| matching[0])
    })
}

/// The full names that a short one may stand for, in git's own order.
fn candidates(text: &str) -> Vec<String> {
    ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"]
        .map(|folder| format!("{folder}{text}"))
        .to_vec()
}

fn short_hash(text: &str) -> Option<String> {
    let is_hash = (SHORTEST..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads() -> Vec<(String, Oid)> {
        [("HEAD", "a1"), ("refs/heads/main", "a1"), ("refs/heads/both", "b2"), ("refs/tags/both", "c3")]
            .into_iter()
            .chain([("refs/tags/v1", "d4"), ("refs/tags/v1^{}", "a1"), ("refs/pull/7/head", "a1ff")])
            .map(|(name, start)| (name.to_owned(), Oid::from_str(&format!("{start:0<40}")).unwrap()))
            .collect()
    }

    fn resolve(text: &str) -> Option<String> {
        resolve_advertised(&heads(), text).map(|id| id.to_string().trim_end_matches('0').to_owned())
    }

    #[test]
    fn branches_tags_and_full_names_resolve() {
        assert_eq!(resolve("main").as_deref(), Some("a1"));
        assert_eq!(resolve("refs/heads/both").as_deref(), Some("b2"));
        assert_eq!(resolve("both").as_deref(), Some("c3"), "a tag comes before a branch, as in git");
        assert_eq!(resolve("v1").as_deref(), Some("a1"), "a tag is peeled");
        assert_eq!(resolve("nothing"), None);
    }

    #[test]
    fn short_hashes_resolve_when_they_are_unique() {
        assert_eq!(resolve("A1FF").as_deref(), Some("a1ff"));
        assert_eq!(resolve("d400").as_deref(), Some("a1"), "a tag object stands for its commit");
        assert_eq!(resolve("a1f").as_deref(), None, "too short");
        assert_eq!(resolve("eeee"), None);
    }
}
