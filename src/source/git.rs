//! Git sources: the tree of one commit, out of an object store and without a checkout: ends of lines and encodings as
//! `.gitattributes` has them, no filters, exact modes.

mod attributes;
mod fetch;
mod memory;
mod modules;
pub(super) mod own;
mod reference;
pub(super) mod tags;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, ObjectType, Oid, Repository, Tree};

use attributes::Attributes;

use super::location::Location;
use super::tree::{self, Kind};
use super::{Content, Context, Request};
use crate::error::{Error, Fault, Result};
use crate::interrupt;
use crate::record::id::{CommitSha, RepoSlug};
use crate::record::source::{Origin, Pinned};
use crate::redact::{publish_git_url, redact};

pub(super) use fetch::{explain, prepare};
pub use reference::resolve_reference;

/// Submodules of submodules of …: deeper than this, something is wrong.
const DEEPEST: usize = 16;

/// What of a repository is pinned.
pub(super) struct Wanted<'a> {
    pub commit: &'a CommitSha,
    pub submodules: bool,
    /// One folder of it, in place of all.
    pub subdirectory: Option<&'a str>,
    /// See [`super::location::Remote::anonymous`].
    pub anonymous: bool,
}

/// Pins a `git` source: all of it, or one folder, with its submodules or without.
pub(super) fn pin(context: &Context<'_>, slug: &RepoSlug, url: &str, wanted: &Wanted<'_>) -> Result<Pinned> {
    let Wanted { commit, submodules, subdirectory, anonymous } = *wanted;
    let location = match Location::parse(url)? {
        Location::Local(_) if anonymous => return Err(host_path(url)),
        Location::Remote(remote) if anonymous => Location::Remote(remote.public()),
        location => location,
    };
    let shown = publish_git_url(url);
    let request = Request {
        // As pip writes it.
        origin: Origin::Git {
            url: subdirectory.map_or(shown.clone(), |folder| format!("{shown}#subdirectory={folder}")),
        },
        key: [commit.to_string(), format!("submodules={submodules}")]
            .into_iter()
            .chain(anonymous.then(|| "anonymous".to_owned()))
            .collect(),
    };
    let export = |target: &Path| {
        let repository = open_with(context, &location, commit.as_str())?;
        let part = Part {
            location: location.clone(),
            repository,
            commit: commit.to_string(),
            below: subdirectory.map(PathBuf::from).unwrap_or_default(),
            is_clone: matches!(location, Location::Local(_)),
        };
        part.export(context, target, submodules)
    };
    let pinned = context.find_or_make(slug, request, |target| match (export(target), &location) {
        (Err(error), Location::Remote(remote))
            if error.fault() == Fault::Repository && fetch::set_aside_damaged(context, remote)? =>
        {
            fs_err::remove_dir_all(target)?;
            fs_err::create_dir(target)?;
            export(target)
        }
        (result, _) => result,
    })?;
    super::with_tag(pinned, || match &location {
        Location::Local(path) => tags::of_local(&open_local(path)?, commit.as_str()),
        Location::Remote(remote) => tags::of_remote(context, remote, commit.as_str()),
    })
}

/// See [`super::checkout`].
pub(super) fn checkout(context: &Context<'_>, url: &str, reference: &str, target: &Path) -> Result<String> {
    let Location::Remote(remote) = Location::parse(url)? else { return Err(host_path(url)) };
    let location = Location::Remote(remote.public());
    let commit = if CommitSha::new(reference).is_ok() {
        reference.to_owned()
    } else {
        let found = reference::resolve(context.check, &location, reference)?;
        found.ok_or_else(|| {
            Error::repository(format!("{location} has nothing that is called `{reference}`"))
        })?
    };
    let repository = open_with(context, &location, &commit)?;
    let part = Part { location, repository, commit: commit.clone(), below: PathBuf::new(), is_clone: false };
    part.export(context, target, false)?;
    Ok(commit)
}

fn host_path(url: &str) -> Error {
    Error::repository(format!("`{}` is a host path", redact(url)))
}

/// A commit to write, or only what it has below one directory.
pub(super) struct Part {
    /// Relative addresses of submodules start here.
    pub location: Location,
    pub repository: Repository,
    pub commit: String,
    pub below: PathBuf,
    /// Whether it is a local repository, which may have clones of its submodules in itself.
    pub is_clone: bool,
}

impl Part {
    /// Writes the files into an empty directory.
    ///
    /// # Errors
    /// When objects or submodules are missing, and IO errors.
    pub(super) fn export(&self, context: &Context<'_>, target: &Path, submodules: bool) -> Result<Content> {
        self.export_within(tree::Bounds::TREE, context, target, submodules)
    }

    fn export_within(
        &self,
        bounds: tree::Bounds,
        context: &Context<'_>,
        target: &Path,
        submodules: bool,
    ) -> Result<Content> {
        let commit = find_commit(&self.repository, &self.location, &self.commit)?;
        let attributes = Attributes::default();
        let mut export = Export { context, target, submodules, bounds, attributes, notes: Vec::new() };
        let whole = commit.tree().map_err(|error| self.missing("its tree", &error))?;
        let tree = if self.below.as_os_str().is_empty() {
            whole
        } else {
            export.enter_above(self, &whole);
            subtree(&self.repository, &whole, &self.below).map_err(|error| self.no_folder(&error))?
        };
        let place = TreeCursor { inside: self.below.clone(), written: PathBuf::new(), depth: 0 };
        // Fetching submodules is lent memory of its own, on another thread.
        memory::lend(Arc::default(), || export.tree(self, &tree, &place)).0?;
        Ok(Content { commit: self.commit.clone(), pinned_at: commit.time().seconds(), notes: export.notes })
    }

    fn no_folder(&self, error: &git2::Error) -> Error {
        let folder = format!("`{}`", self.below.display());
        if error.code() != git2::ErrorCode::NotFound {
            return self.missing(&folder, error);
        }
        Error::repository(format!("{} has no folder {folder} at commit {}", self.location, self.commit))
            .with_hint("name a folder of that commit, from the root of the repository")
    }

    fn missing(&self, what: &str, error: &git2::Error) -> Error {
        Error::repository(format!("{} lacks {what} of commit {}", self.location, self.commit))
            .with_detail(redact(error.message()))
            .with_hint(
                "a partial or damaged clone? complete it with `git fetch --refetch`, or name a whole one",
            )
    }
}

fn subtree<'a>(repository: &'a Repository, tree: &Tree<'_>, path: &Path) -> Result<Tree<'a>, git2::Error> {
    repository.find_tree(tree.get_path(path)?.id())
}

/// Where the walk is.
struct TreeCursor {
    /// In the repository of the [`Part`].
    inside: PathBuf,
    /// In the directory that is written.
    written: PathBuf,
    /// How many submodules deep.
    depth: usize,
}

impl TreeCursor {
    fn child(&self, name: &[u8]) -> TreeCursor {
        let name = OsStr::from_bytes(name);
        TreeCursor { inside: self.inside.join(name), written: self.written.join(name), depth: self.depth }
    }
}

struct Export<'a> {
    context: &'a Context<'a>,
    target: &'a Path,
    submodules: bool,
    /// What is left for the tree, submodules included.
    bounds: tree::Bounds,
    /// Those of the repository that is written, down to the folder that is.
    attributes: Attributes,
    notes: Vec<String>,
}

impl Export<'_> {
    fn tree(&mut self, part: &Part, tree: &Tree<'_>, place: &TreeCursor) -> Result<()> {
        interrupt::check()?;
        tree::make_directory(self.target, &place.written)?;
        let depth = place.inside.components().count();
        let before = self.attributes.enter(depth, attributes_in(part, tree).as_deref());
        for entry in tree {
            let child = place.child(entry.name_bytes());
            tree::checked(&child.written)?;
            self.bounds.add(&child.written, 0).map_err(|error| error.at(&part.location))?;
            if entry.name_bytes().contains(&b'/') {
                return Err(Error::repository(format!("a name in commit {} has a slash", part.commit)));
            }
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let below = part
                        .repository
                        .find_tree(entry.id())
                        .map_err(|error| part.missing(&format!("`{}`", child.inside.display()), &error))?;
                    self.tree(part, &below, &child)?;
                }
                Some(ObjectType::Blob) => self.blob(part, entry.id(), entry.filemode_raw(), &child)?,
                Some(ObjectType::Commit) => self.submodule(part, entry.id(), &child)?,
                _ => return Err(Error::repository(format!("unknown entry `{}`", child.inside.display()))),
            }
        }
        self.attributes.leave(before);
        Ok(())
    }

    /// Takes in the attributes of the folders above the one that is written.
    fn enter_above(&mut self, part: &Part, whole: &Tree<'_>) {
        for (depth, folder) in
            part.below.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev().enumerate()
        {
            let text = if folder.as_os_str().is_empty() {
                attributes_in(part, whole)
            } else {
                subtree(&part.repository, whole, folder).ok().and_then(|tree| attributes_in(part, &tree))
            };
            self.attributes.enter(depth, text.as_deref());
        }
    }

    fn blob(&mut self, part: &Part, id: Oid, mode: i32, place: &TreeCursor) -> Result<()> {
        const LINK: i32 = 0o120_000;
        let missing = |error: git2::Error| part.missing(&format!("`{}`", place.inside.display()), &error);
        // Known before all of it is in memory.
        let (size, _) = part.repository.odb().and_then(|objects| objects.read_header(id)).map_err(missing)?;
        self.bounds.spend(size as u64).map_err(|error| error.at(&part.location))?;
        let blob = part.repository.find_blob(id).map_err(missing)?;
        let path = self.target.join(&place.written);
        if mode & 0o170_000 == LINK {
            return tree::write_link(&path, Path::new(OsStr::from_bytes(blob.content())));
        }
        let kind = Kind::of_mode(u32::try_from(mode).unwrap_or(0));
        match self.attributes.checked_out(&place.inside, &id.to_string(), blob.content()) {
            Some(content) => {
                self.bounds.spend(content.len() as u64).map_err(|error| error.at(&part.location))?;
                tree::write_file(&path, &mut content.as_slice(), kind)
            }
            None => tree::write_file(&path, &mut blob.content(), kind),
        }
    }

    /// Git itself leaves an empty directory where a submodule is not checked out.
    fn submodule(&mut self, part: &Part, id: Oid, place: &TreeCursor) -> Result<()> {
        let name = place.written.display().to_string();
        if !self.submodules {
            self.notes.push(format!("submodule `{name}` left out (submodules = false)"));
            return tree::make_directory(self.target, &place.written);
        }
        let failed = |error: Error| {
            let known = error.hint().map(str::to_owned);
            let hint = "`submodules = false` leaves all submodules out";
            error
                .at(format!("submodule `{name}` at {id}"))
                .with_hint(known.map_or(hint.to_owned(), |known| format!("{known}; {hint}")))
        };
        let module = modules::find(&part.repository, &part.commit, &place.inside).map_err(failed)?;
        let Some(module) = module else {
            self.notes.push(format!("submodule `{name}` is empty: .gitmodules has no address for it"));
            return tree::make_directory(self.target, &place.written);
        };
        let child = self.open_submodule(part, &module, id, place.depth).map_err(failed)?;
        let commit = find_commit(&child.repository, &child.location, &child.commit)?;
        let tree = commit.tree().map_err(|error| child.missing("its tree", &error))?;
        let below =
            TreeCursor { inside: PathBuf::new(), written: place.written.clone(), depth: place.depth + 1 };
        let outer = std::mem::take(&mut self.attributes);
        self.tree(&child, &tree, &below)?;
        self.attributes = outer;
        Ok(())
    }

    fn open_submodule(&self, part: &Part, module: &modules::Module, id: Oid, depth: usize) -> Result<Part> {
        if depth >= DEEPEST {
            return Err(Error::repository("submodules are nested too deep"));
        }
        let (commit, below) = (id.to_string(), PathBuf::new());
        let location = part.location.submodule(&module.url).map(Location::Remote);
        if let Some(repository) = modules::open_beside(part, module, id) {
            // Where it has no address that could be asked, none is relative to it either.
            let location = location.unwrap_or_else(|_| Location::Local(repository.path().to_owned()));
            return Ok(Part { location, repository, commit, below, is_clone: true });
        }
        let location = location?;
        let repository = open_with(self.context, &location, &commit)?;
        Ok(Part { location, repository, commit, below, is_clone: false })
    }
}

/// The file of attributes of a folder; git itself follows no link there.
fn attributes_in(part: &Part, tree: &Tree<'_>) -> Option<Vec<u8>> {
    let entry = tree.get_name(".gitattributes")?;
    if entry.kind() != Some(ObjectType::Blob) || entry.filemode_raw() & 0o170_000 != 0o100_000 {
        return None;
    }
    let (size, _) = part.repository.odb().ok()?.read_header(entry.id()).ok()?;
    let blob = (size as u64 <= attributes::LARGEST).then(|| part.repository.find_blob(entry.id()).ok())??;
    Some(blob.content().to_vec())
}

/// A repository that has the commit: the local one itself, or the cache's, fetched when needed.
fn open_with(context: &Context<'_>, location: &Location, commit: &str) -> Result<Repository> {
    match location {
        Location::Local(path) => open_local(path),
        Location::Remote(remote) => fetch::fetch(context, remote, parse_oid(commit)?),
    }
}

/// Does something with git's library, which gets no more than a bound of memory for it.
pub(super) fn bounded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    fetch::prepare();
    let (done, was_refused) = memory::lend(Arc::default(), work);
    if was_refused && done.as_ref().err().is_none_or(|error| error.fault() != Fault::Interrupted) {
        return Err(Error::repository("reading the clone takes more than 4 GiB of memory")
            .with_hint("it is larger than what commits are looked for in"));
    }
    done
}

/// Opens a local repository, bare or not, at exactly this path.
pub(super) fn open_local(path: &Path) -> Result<Repository> {
    let mut with_suffix = path.as_os_str().to_owned();
    with_suffix.push(".git");
    for folder in [path, Path::new(&with_suffix)] {
        if let Ok(folder) = folder.canonicalize()
            && let Some(repository) = own::open(&folder)?
        {
            return Ok(repository);
        }
    }
    Err(Error::repository(format!("cannot open the repository {}: there is none", path.display())))
}

/// The commit, or an error that says what is there instead.
fn find_commit<'a>(repository: &'a Repository, location: &Location, commit: &str) -> Result<Commit<'a>> {
    let id = parse_oid(commit)?;
    let Ok(object) = repository.find_object(id, None) else {
        return Err(fetch::no_such_commit(location, commit));
    };
    match object.kind() {
        Some(ObjectType::Commit) => repository
            .find_commit(id)
            .map_err(|error| fetch::explain(&format!("cannot read commit {commit} of {location}"), &error)),
        Some(ObjectType::Tag) => {
            let error = Error::usage(format!("{commit} is a tag of {location}, not a commit"));
            Err(match object.peel_to_commit() {
                Ok(commit) => error.with_hint(format!("the tag is of commit {}", commit.id())),
                Err(_) => error,
            })
        }
        _ => Err(Error::usage(format!("{commit} is not a commit of {location}"))),
    }
}

fn parse_oid(commit: &str) -> Result<Oid> {
    Oid::from_str(commit).map_err(|_| {
        Error::repository(format!("{commit} belongs to a SHA-256 repository, which is not supported"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Mutex;

    use git2::{Signature, Time};

    use super::*;
    use crate::store::Cache;

    /// Three trees in each of three trees, five levels deep, with one file: small objects, and 243 files.
    fn bomb(folder: &Path) -> Part {
        let repository = Repository::init_bare(folder).unwrap();
        let mut id = repository.blob(&[b'x'; 1000]).unwrap();
        for level in 0..5 {
            let mut tree = repository.treebuilder(None).unwrap();
            for name in ["a", "b", "c"] {
                tree.insert(name, id, if level == 0 { 0o100_644 } else { 0o040_000 }).unwrap();
            }
            id = tree.write().unwrap();
        }
        let who = Signature::new("A", "a@example.org", &Time::new(0, 0)).unwrap();
        let tree = repository.find_tree(id).unwrap();
        let commit = repository.commit(None, &who, &who, "m", &tree, &[]).unwrap().to_string();
        drop(tree);
        let location = Location::Local(folder.to_owned());
        Part { location, repository, commit, below: PathBuf::new(), is_clone: true }
    }

    #[test]
    fn small_objects_that_come_to_a_large_tree_are_refused_early() {
        let folder = tempfile::tempdir().unwrap();
        let part = bomb(&folder.path().join("bomb.git"));
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let check = |_: &str| panic!("nothing is asked");
        let context = Context { cache: &cache, progress: &|_| {}, check: &check };
        let exported = |bounds, name: &str| {
            let target = folder.path().join(name);
            fs_err::create_dir(&target).unwrap();
            let written = part.export_within(bounds, &context, &target, true);
            let count = walkdir::WalkDir::new(&target).min_depth(1).into_iter().count();
            (written.err().map(|error| (error.fault(), error.to_string())), count)
        };
        let bounds = tree::Bounds { bytes: 243_000, entries: 363, depth: 5 };
        assert_eq!(exported(bounds, "whole"), (None, 363));
        for (name, bounds, words) in [
            ("bytes", tree::Bounds { bytes: 9_999, ..bounds }, "16 GiB"),
            ("entries", tree::Bounds { entries: 20, ..bounds }, "a million"),
            ("depth", tree::Bounds { depth: 4, ..bounds }, "folders within each other"),
        ] {
            let (error, count) = exported(bounds, name);
            let (fault, message) = error.unwrap();
            assert_eq!(fault, Fault::Repository);
            assert!(message.contains(words) && count < 30, "{message}, after {count}");
        }
    }

    /// A server that wants a login from everybody, and all that it was told.
    fn locked_server() -> (u16, Arc<Mutex<String>>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let told: Arc<Mutex<String>> = Arc::default();
        let log = Arc::clone(&told);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).unwrap_or_default();
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
                let _ = stream.write_all(
                    b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
        });
        (port, told)
    }

    #[test]
    fn a_requirement_gets_no_login() {
        let (port, told) = locked_server();
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let context = Context { cache: &cache, progress: &|_| {}, check: &|address| Ok(address.to_owned()) };
        let (target, full) = (folder.path().join("target"), "1".repeat(40));
        for host in ["127.0.0.1", "me:pw@localhost", "me@localhost"] {
            for reference in ["HEAD", "v1", full.as_str()] {
                let url = format!("http://{host}:{port}/a.git?token=x");
                let error = checkout(&context, &url, reference, &target).unwrap_err();
                assert_eq!(error.fault(), Fault::Repository, "{error}");
            }
        }
        let told = told.lock().unwrap().to_lowercase();
        assert!(told.contains("get /a.git/info/refs?service=git-upload-pack"), "{told}");
        assert!(!told.contains("authorization") && !told.contains("token"), "{told}");
        for host_path in ["file:///srv/a", "/srv/a", "../a"] {
            assert!(checkout(&context, host_path, "HEAD", &target).is_err(), "{host_path}");
        }
    }
}
