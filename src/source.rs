//! Sources: a configured repository goes in, a [`Pinned`] tree in the cache comes out.
//!
//! ```text
//! <cache>/sources/<key>/tree/         exactly the files of the pin
//!                       pinned.json   written last: its presence says that the tree is whole
//! ```
//!
//! The key depends on the origin without credentials, the pin and the submodules option, so a second build of the same
//! pins opens no connection. Each kind of source only fills a directory; this page decides whether that is needed,
//! and puts the result in place with one rename.

mod archive;
mod cache;
mod git;
mod license;
mod location;
pub(crate) mod outside;
mod path;
mod pypi;
mod secrets;
pub mod time;
mod tree;
pub mod version;
mod watch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::beneath::Folder;
use crate::config::{Repo, SourceSpec};
use crate::error::{Error, Fault, Result};
use crate::index::Index;
use crate::interrupt;
use crate::record::id::{RepoSlug, hash_parts};
use crate::record::moment::Moment;
use crate::record::patch::Patch;
use crate::record::source::{Origin, Pinned, TagSearch};
use crate::store::Cache;

use cache::SourceCache;

pub use git::resolve_reference;
pub(crate) use pypi::unpack;
pub use pypi::{IndexTool, UvIndex, newest};

/// Raised when what lies in a cached source changes its meaning: older entries are then made anew.
const FORMAT: &str = "source-3";

/// What the kinds of sources share while they work.
struct Context<'a> {
    cache: &'a Cache,
    progress: &'a dyn Fn(&str),
    /// Looks an address over that a repository or a dataset names, before anything is asked there.
    check: &'a dyn Fn(&str) -> Result<String>,
}

/// Where a tree comes from and what identifies its content; known before anything is fetched.
struct Request {
    origin: Origin,
    /// Further parts of the cache key: the pin and options that change the content.
    key: Vec<String>,
}

/// What a source learned while it wrote the files of a tree.
struct Content {
    commit: String,
    /// Seconds since 1970, UTC.
    pinned_at: i64,
    notes: Vec<String>,
}

/// Fetches the pinned tree of a repository, or finds it in the cache. What is `apart` is not part of a local folder's tree.
///
/// # Errors
/// When the source cannot be reached or does not hold the pin, when a local directory has uncommitted changes that the
/// configuration does not allow, and IO errors. No message holds credentials.
pub fn pin(
    (spec, apart): (&Repo, &[PathBuf]),
    cache: &Cache,
    tools: &dyn IndexTool,
    progress: &dyn Fn(&str),
) -> Result<Pinned> {
    let context = Context { cache, progress, check: &|address| tools.public_address(address) };
    let pinned = match &spec.source {
        SourceSpec::Git { url, commit, submodules, subdirectory, anonymous } => {
            let subdirectory = subdirectory.as_deref();
            let wanted = git::Wanted { commit, submodules: *submodules, subdirectory, anonymous: *anonymous };
            git::pin(&context, &spec.slug, url, &wanted)
        }
        SourceSpec::Path { path, commit, allow_uncommitted } => {
            path::pin(&context, &spec.slug, (path, apart), commit.as_ref(), *allow_uncommitted)
        }
        SourceSpec::Pypi { project, version, sha256 } => {
            pypi::pin(&context, &spec.slug, tools, &pypi::Release { project, version, sha256 })
        }
        SourceSpec::Archive { file, pinned } => archive::pin(&context, &spec.slug, file, pinned),
    }?;
    match &spec.outside {
        Some(tests) => outside::add(&context, &spec.slug, pinned, tests),
        None => Ok(pinned),
    }
}

/// The tree of a pin with a patch applied, in the cache like any other.
///
/// # Errors
/// IO errors; a path of the patch that the tree has for something else.
pub(crate) fn patched(pinned: &Pinned, patch: &Patch, cache: &Cache) -> Result<Pinned> {
    let context = Context { cache, progress: &|_| {}, check: &|address| Ok(address.to_owned()) };
    let key = ["patched".to_owned(), pinned.tree_sha256.clone(), patch.sha256()];
    let request = Request { origin: pinned.origin.clone(), key: key.into() };
    let touched: BTreeSet<&Path> = patch.files().map(|(path, _)| Path::new(path)).collect();
    let mut kept = tree::entries(&pinned.tree)?;
    kept.retain(|entry| !touched.contains(entry.path.as_path()));
    let made = context.find_or_make(&pinned.slug, request, |target| {
        tree::copy(&Folder::open(&pinned.tree)?, &kept, target)?;
        for (path, bytes) in patch.files().filter_map(|(path, bytes)| Some((path, bytes?))) {
            tree::write(target, Path::new(path), bytes, patch.is_executable(path))?;
        }
        let pinned_at = Moment::parse(&pinned.pinned_at).map_or(0, Moment::seconds);
        Ok(Content { commit: format!("sha256:{}", patch.sha256()), pinned_at, notes: pinned.notes.clone() })
    })?;
    Ok(Pinned { tag: pinned.tag.clone(), ..made })
}

/// What a user should know of files in a folder's tree that are named like secrets; none where commits hold the tree.
///
/// # Errors
/// When the tree cannot be listed.
pub fn secrets_warning(pinned: &Pinned) -> Result<Option<String>> {
    let files = secrets::of_folder(pinned)?;
    let words = || {
        format!(
            "named like secrets, and part of the tree that a dataset passes on: {}; take them out of the folder, or list them in \
             .gitignore of a git repository",
            tree::few(&files)
        )
    };
    Ok((!files.is_empty()).then(words))
}

/// Opens the clone at exactly this path, bare or not. Nothing of it leads out of its folder.
///
/// # Errors
/// The repository's: the path has no clone, or one that cannot be opened or leads out of its folder.
pub(crate) fn open_clone(path: &Path) -> Result<git2::Repository> {
    git::open_local(path)
}

/// Does something with a clone that somebody else made, on this thread; git's library has 4 GiB for it.
///
/// # Errors
/// What it says, and the repository's where it needs more.
pub(crate) fn bounded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    git::bounded(work)
}

/// Whether git would show a path in the clone of a local directory as new: it is in there, and not ignored.
pub fn is_shown_by_git(directory: &Path, path: &Path) -> bool {
    path::shows(directory, path)
}

/// Writes the files of a branch, tag or commit (by default the repository's head) into an empty folder, and gives the commit.
/// For addresses that a repository names: only public ones are fetched, and with no login of the user's.
///
/// # Errors
/// When the repository cannot be reached without a login or has no such commit, and IO errors.
pub fn checkout(
    url: &str,
    reference: Option<&str>,
    cache: &Cache,
    index: &Index,
    target: &Path,
) -> Result<String> {
    let context = Context { cache, progress: &|_| {}, check: &|address| index.check_repository(address) };
    git::checkout(&context, url, reference.unwrap_or("HEAD"), target)
}

/// The address of a repository without its login and what a token may be in; none for what lies on this machine.
pub fn without_login(address: &str) -> Option<String> {
    match location::Location::parse(address) {
        Ok(location::Location::Remote(remote)) => Some(remote.shown()),
        _ => None,
    }
}

/// Where the clone that a directory is, or lies in, came from, as [`without_login`] gives it, and whether the directory is
/// the whole of it. None outside of clones, for those of local folders, and for those that cannot be read.
pub fn came_from(directory: &Path) -> Option<(String, bool)> {
    path::came_from(directory)
}

/// The hash over all files and links below a directory: path, kind and content.
///
/// # Errors
/// IO errors, and something that is neither file, link nor directory.
pub fn content_hash(directory: &Path) -> Result<String> {
    tree::hash(directory)
}

/// Reads the whole tree again and compares it with the recorded hash.
///
/// # Errors
/// When a file was added, removed or changed since, and IO errors.
pub fn verify(pinned: &Pinned) -> Result<()> {
    let found = tree::hash(&pinned.tree)?;
    if found == pinned.tree_sha256 {
        return Ok(());
    }
    let message = format!("the cached tree {} is no longer what was pinned", pinned.tree.display());
    Err(Error::machine(message)
        .with_detail(format!("recorded {}\nfound    {found}", pinned.tree_sha256))
        .with_hint("remove that directory's parent and run the same command again"))
}

impl Context<'_> {
    fn say(&self, text: &str) {
        (self.progress)(text);
    }

    /// Finds a source in the cache, or makes it: `fill` writes the files into an empty directory.
    fn find_or_make(
        &self,
        slug: &RepoSlug,
        request: Request,
        fill: impl FnOnce(&Path) -> Result<Content>,
    ) -> Result<Pinned> {
        let sources = SourceCache::open(self.cache)?;
        let entry = sources.entry(&key(&request)?);
        if let Some(found) = entry.find(slug) {
            return Ok(found);
        }
        interrupt::check()?;
        let staging = sources.stage()?;
        let content = fill(&staging.tree()).map_err(of_content)?;
        interrupt::check()?;
        let pinned = describe(slug, request.origin, content, &staging.tree())?;
        entry.put(staging, pinned)
    }
}

/// What the names and sizes of a source lead to on the disk is that source's trouble: the others go on.
fn of_content(error: Error) -> Error {
    use std::io::ErrorKind as K;
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_its = source.is_some_and(|source| {
        matches!(
            source.kind(),
            K::AlreadyExists
                | K::NotADirectory
                | K::IsADirectory
                | K::InvalidFilename
                | K::InvalidInput
                | K::TooManyLinks
                | K::FileTooLarge
        )
    });
    if is_its && error.fault() == Fault::Machine { error.blame(Fault::Repository) } else { error }
}

/// Looks for the nearest tag of a pin whose build asks for its version, once: the record in the cache keeps it.
fn with_tag(mut pinned: Pinned, search: impl FnOnce() -> Result<TagSearch>) -> Result<Pinned> {
    if !pinned.tag.is_not_needed() || !version::may_be_asked_for(&pinned.tree)? {
        return Ok(pinned);
    }
    pinned.tag = search()?;
    cache::replace(&pinned)?;
    Ok(pinned)
}

/// The name of a source in the cache.
fn key(request: &Request) -> Result<String> {
    let origin = serde_json::to_string(&request.origin)
        .map_err(|error| Error::internal("cannot encode an origin").with_source(error))?;
    let mut parts = vec![FORMAT.to_owned(), origin];
    parts.extend(request.key.iter().cloned());
    Ok(hash_parts(&parts))
}

/// Everything that is known of a freshly written tree; also gives all its files the time of the pin.
fn describe(slug: &RepoSlug, origin: Origin, content: Content, tree: &Path) -> Result<Pinned> {
    let entries = tree::entries(tree)?;
    let license = license::detect(tree);
    let mut notes = content.notes;
    notes.extend(tree::notes(tree, &entries)?);
    tree::set_times(tree, content.pinned_at)?;
    let (license, license_source) = license.map(|found| (found.expression, found.source)).unzip();
    Ok(Pinned {
        slug: slug.clone(),
        origin,
        commit: content.commit,
        pinned_at: Moment::of_seconds(content.pinned_at).to_string(),
        tree: tree.to_owned(),
        tree_sha256: tree::hash_entries(tree, &entries)?,
        license,
        license_source,
        tag: TagSearch::default(),
        notes,
    })
}

/// Random inputs that are the same in every run of the tests, and leave no files.
#[cfg(test)]
fn same_in_every_run() -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0),
        ..proptest::test_runner::Config::default()
    }
}
