//! The one door to package indexes. A machine: it serves whoever installs, and names no stage.
//!
//! Jobs that install have neither network nor login. Their uv talks to a [`Door`] at its own loopback; the door runs in
//! the driver, asks the configured indexes with the user's login, and hands on what they answer without a word of where
//! they are.
//!
//! ```text
//! job: uv ── 127.0.0.1 ── Door ── Index ── Upstream ── indexes of the user
//!                          │        └ Store: downloaded files by their hash, shared by builds
//!                          └ Wheels: builds a source distribution offline, in a sandbox
//! ```
//!
//! What an index answers is hostile, and so is what a job asks: only files that a page of an index lists can be had,
//! pages and files are bounded, and a source distribution is only ever handed to [`Wheels`]. To uv it looks like a wheel.

mod addresses;
mod agents;
mod asked;
mod door;
mod file;
mod filename;
mod html;
mod http;
mod inside;
mod listing;
mod metadata;
mod once;
mod pace;
mod page;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod upstream;
mod web;
mod wheels;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use url::Url;

pub(crate) use asked::Built;
pub(crate) use door::Door;
pub(crate) use pace::{Pace, Paced};
pub(crate) use settings::Settings;
pub(crate) use upstream::basic;
pub(crate) use web::Web;
pub(crate) use wheels::{Sdist, WheelFile, Wheels};

use crate::error::{Error, Result};
use file::{File, Hash};
use filename::is_safe;
use once::Once;
use page::Page;
use settings::Source;
use store::{Shelf, Store, Stored};
use upstream::{Problem, Upstream};

/// A project that every whole index has.
const KNOWN_PROJECT: &str = "pytest";
/// Bytes of a page, of the metadata of a file, and of a file that are read at most.
const PAGE_BYTES: u64 = 64 << 20;
const METADATA_BYTES: u64 = 16 << 20;
pub(crate) const FILE_BYTES: u64 = 8 << 30;

/// The configured indexes, and what was downloaded from them. One for each run of the program.
#[derive(Debug)]
pub struct Index {
    sources: Vec<Source>,
    strategy: Option<String>,
    upstream: Upstream,
    store: Store,
    pages: Once<(usize, String), Arc<Page>>,
    /// By whose they are and address, with and without hashes that the file must have.
    files: Once<(Shelf, String, Vec<Hash>), Stored>,
    /// By index and address of the file.
    metadata: Once<(usize, String), Vec<u8>>,
}

/// A file that was downloaded from an address of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// In the store: never written to.
    pub path: PathBuf,
    pub sha256: String,
    /// The last segment of the address.
    pub filename: String,
}

impl Index {
    /// Opens the store of downloaded files in a folder that no job may write to; several runs may share it.
    ///
    /// # Errors
    /// The folder cannot be made; a certificate or a proxy of the settings cannot be used.
    pub fn new(settings: Settings, folder: PathBuf) -> Result<Index> {
        let store = Store::open(folder)?;
        let upstream = Upstream::new(&settings)?;
        let Settings { sources, strategy, .. } = settings;
        Ok(Index {
            sources,
            strategy,
            upstream,
            store,
            pages: Once::default(),
            files: Once::default(),
            metadata: Once::default(),
        })
    }

    /// Asks each index for one page: its name in messages, and whether it answers as an index does; in words what is wrong
    /// where another login is wanted, or the address is not that of an index.
    ///
    /// # Errors
    /// A certificate or a proxy of the settings cannot be used.
    pub fn probe(mut settings: Settings) -> Result<Vec<(String, Result<&'static str, String>)>> {
        settings.patience = settings.patience.min(Duration::from_secs(5));
        let upstream = Upstream::new(&settings)?;
        let asked = settings.sources.iter().enumerate();
        Ok(asked
            .map(|(number, source)| {
                let result = match upstream.asked_once(source, &source.project(KNOWN_PROJECT)) {
                    Ok(()) => Ok("answers"),
                    Err(Problem::Missing) if !source.is_default => Ok("answers"),
                    Err(Problem::Missing) => Err(format!(
                        "it has no project {KNOWN_PROJECT}: the address has to be that of a simple index, `https://host/…/simple`"
                    )),
                    Err(problem @ Problem::Denied(_)) => Err(problem.to_string()),
                    Err(Problem::Trouble(reason)) => {
                        tracing::warn!("{}: {reason}", source.words(number));
                        Ok("does not answer now: what the cache has can be installed")
                    }
                };
                (source.words(number), result)
            })
            .collect())
    }

    /// Names the indexes that are asked, in their order, as this user sees them: what is built with what came from them
    /// depends on it.
    pub fn key(&self) -> String {
        let shelves = self.sources.iter().map(|source| Shelf::of(source).name().to_owned());
        let parts: Vec<String> = self.strategy.iter().cloned().chain(shelves).collect();
        sha256(parts.join("\n").as_bytes())
    }

    /// Downloads a file from an address that a repository names.
    ///
    /// No login of the user's goes there. A fragment `#sha256=…`, or with another algorithm, is what the file must be.
    ///
    /// # Errors
    /// The address is no `https://` or `http://` one or leads into the user's own network; nothing comes from there; the
    /// file is too large or not what the fragment says.
    pub fn fetch_direct(&self, address: &str) -> Result<Fetched> {
        let failed = |reason: String| {
            Error::repository(format!("cannot download {}: {reason}", crate::redact::redact(address)))
        };
        let url = Url::parse(address).map_err(|error| failed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failed("the address is neither `https://` nor `http://`".to_owned()));
        }
        let filename = file::last_segment(&url).filter(|name| is_safe(name));
        let filename =
            filename.ok_or_else(|| failed("the address does not end with a plain file name".into()))?;
        let hashes = Hash::of_requirement(url.fragment().unwrap_or_default()).map_err(failed)?;
        let file = self.download(Shelf::open(), None, &url, hashes, FILE_BYTES);
        let file = file.map_err(|problem| failed(problem.to_string()))?;
        Ok(Fetched { path: file.path, sha256: file.sha256, filename })
    }

    /// Downloads what a repository pins by its SHA-256; none where nothing lies there. The server is one that the driver
    /// knows, so it may be a mirror in the user's own network, as an index may; no login of the user's goes there.
    ///
    /// # Errors
    /// It cannot be had, has more than `limit` bytes, or another hash; in words without the address.
    pub(crate) fn fetch_pinned(
        &self,
        address: &str,
        sha256: &str,
        limit: u64,
    ) -> Result<Option<PathBuf>, String> {
        let url = Url::parse(address).map_err(|error| error.to_string())?;
        let server = Source { name: None, variable: "", url: url.clone(), login: None, is_default: false };
        let hash = vec![Hash::Sha256(sha256.to_owned())];
        match self.download(Shelf::open(), Some(&server), &url, hash, limit) {
            Ok(file) => Ok(Some(file.path)),
            Err(Problem::Missing) => Ok(None),
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// Whether git may be sent to an address that a repository or a dataset names, which it is without any login of the
    /// user's. Asks there, as git would; gives where the redirects end, without encryption by the number that was looked up.
    ///
    /// # Errors
    /// It is not an `https://` address, it leads into the user's own network, or it has nothing public.
    pub fn check_repository(&self, address: &str) -> Result<String> {
        const HINT: &str = "what a repository or a dataset names is fetched without any login, by `https://`; what is \
                            private has to be named by you (docs/private.md)";
        let failed = |reason: String| {
            let address = crate::redact::redact(address);
            Error::repository(format!("cannot fetch {address}: {reason}")).with_hint(HINT)
        };
        let mut url = Url::parse(address).map_err(|error| failed(error.to_string()))?;
        file::without_login(&mut url);
        url.set_query(None);
        url.set_fragment(None);
        let is_open = url.scheme() == "https" || (url.scheme() == "http" && self.upstream.may_be_plain(&url));
        if !is_open || !url.has_host() {
            return Err(failed("the address is not an `https://` one".to_owned()));
        }
        self.upstream.check(&url).map_err(failed)?;
        let found = self.upstream.git_repository(&url).map_err(|problem| {
            failed(match problem {
                Problem::Missing => "it has nothing public".to_owned(),
                problem => problem.to_string(),
            })
        })?;
        Ok(self.upstream.check(&found).map_err(failed)?.into())
    }

    /// The metadata of a wheel that was downloaded.
    ///
    /// # Errors
    /// The file is no wheel with metadata.
    pub(crate) fn wheel_metadata(path: &Path) -> Result<Vec<u8>> {
        let found = inside::of_file(path).ok().flatten();
        found.ok_or_else(|| Error::repository("the wheel has no metadata that can be read"))
    }

    /// What index number `source` says about a project.
    fn page(&self, source: usize, project: &str) -> Result<Arc<Page>, Problem> {
        let number = source;
        let source = self.sources.get(source).ok_or(Problem::Missing)?;
        self.pages.get((number, project.to_owned()), || {
            let address = source.project(project);
            let answer = self.upstream.page(source, &address, PAGE_BYTES)?;
            Page::parse(&answer).map(Arc::new).map_err(Problem::Trouble)
        })
    }

    /// A file that a page of index number `source` lists.
    fn file(&self, source: usize, file: &File) -> Result<Stored, Problem> {
        let source = self.sources.get(source).ok_or(Problem::Missing)?;
        self.listed(source, &file.url, Hash::strongest(&file.hashes), FILE_BYTES)
    }

    /// The metadata of a wheel: what lies beside it, else what is inside.
    fn metadata(&self, source: usize, file: &File) -> Result<Vec<u8>, Problem> {
        let number = source;
        let source = self.sources.get(source).ok_or(Problem::Missing)?;
        self.metadata.get((number, file.url.as_str().to_owned()), || {
            let beside = match &file.metadata {
                Some(hashes) => self.beside(source, file, hashes),
                None => Err(Problem::Missing),
            };
            match beside {
                // Some indexes promise what they do not have.
                Err(Problem::Missing) => self.inside(source, file),
                beside => beside,
            }
        })
    }

    fn beside(
        &self,
        source: &Source,
        file: &File,
        hashes: &BTreeMap<String, String>,
    ) -> Result<Vec<u8>, Problem> {
        let mut url = file.url.clone();
        url.set_path(&format!("{}.metadata", file.url.path()));
        let stored = self.listed(source, &url, Hash::strongest(hashes), METADATA_BYTES)?;
        fs_err::read(stored.path).map_err(|error| Problem::Trouble(error.to_string()))
    }

    /// Reads a part of the wheel where the server hands out parts, else the whole.
    fn inside(&self, source: &Source, file: &File) -> Result<Vec<u8>, Problem> {
        let hash = Hash::strongest(&file.hashes);
        let is_here = hash.as_ref().is_some_and(|hash| self.store.find(&Shelf::of(source), hash).is_some());
        let part = |range: String| self.upstream.part(source, &file.url, &range, PAGE_BYTES);
        let tail = if is_here { None } else { part(format!("bytes=-{}", inside::TAIL_BYTES))? };
        let found = if let Some(tail) = tail {
            inside::metadata(&tail, &mut |start, length| {
                let range = format!("bytes={start}-{}", (start + length).saturating_sub(1));
                part(range)?.map(|part| part.bytes).ok_or(Problem::Missing)
            })?
        } else {
            let stored = self.listed(source, &file.url, hash, FILE_BYTES)?;
            inside::of_file(&stored.path).map_err(|error| Problem::Trouble(error.to_string()))?
        };
        found.ok_or_else(|| Problem::Trouble("the wheel has no metadata that can be read".to_owned()))
    }

    /// A file that an index lists.
    fn listed(&self, source: &Source, url: &Url, hash: Option<Hash>, limit: u64) -> Result<Stored, Problem> {
        self.download(Shelf::of(source), Some(source), url, hash.into_iter().collect(), limit)
    }

    fn download(
        &self,
        shelf: Shelf,
        source: Option<&Source>,
        url: &Url,
        hashes: Vec<Hash>,
        limit: u64,
    ) -> Result<Stored, Problem> {
        let known = || hashes.iter().find_map(|hash| self.store.find(&shelf, hash));
        if let Some(known) = known() {
            return Ok(known);
        }
        self.files.get((shelf.clone(), url.to_string(), hashes.clone()), || {
            // Another address may have brought the same file in the meantime.
            if let Some(known) = known() {
                return Ok(known);
            }
            self.upstream.file(source, url, &|body| self.store.add(&shelf, body, &hashes, limit))
        })
    }
}

/// Names and addresses of the files that a page lists, which came from an address as some content type.
///
/// # Errors
/// It is not a page of an index; in words that hold no address.
pub fn listed(address: &str, content_type: &str, body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    let answer = page::Answer { url, content_type: content_type.to_owned(), body: body.to_owned() };
    let files = Page::parse(&answer)?.files;
    Ok(files.into_iter().map(|file| (file.filename, file.url.into())).collect())
}

/// SHA-256 of some bytes, in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
