//! One environment's view of the indexes: what uv is told, and what it asked for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::asked::{Asked, Built, Served};
use super::file::percent_decoded;
use super::filename::{is_normalized, is_safe};
use super::http::{Body, Reply, Request};
use super::listing::{Entry, Listing, What};
use super::once::Once;
use super::store::Stored;
use super::upstream::Problem;
use super::wheels::{Sdist, WheelFile, Wheels};
use super::{Index, http, metadata};
use crate::backend::{Connection, SERVICE_PORT, Service};

const PAGE: &str = "application/vnd.pypi.simple.v1+json";
const FILE: &str = "application/octet-stream";
/// How deep what is needed to build what is needed to build … may lie.
const DEEPEST: usize = 8;

/// What a file is asked for by: the number of its index, its project, key and name.
type FileKey<'a> = (usize, &'a str, &'a str, &'a str);

/// One environment's view of an [`Index`]. To uv it is one index for each of the user's, at the job's own loopback.
#[derive(Debug)]
pub(crate) struct Door {
    index: Arc<Index>,
    exclude_newer: Option<Timestamp>,
    /// Names that no index is asked for, with the place that declares them.
    refused: BTreeMap<String, String>,
    wheels: Arc<dyn Wheels>,
    building: Vec<String>,
    listings: Once<(usize, String), Arc<Listing>>,
    /// As uv gets them: it asks again in every job.
    pages: Once<(usize, String), Arc<Vec<u8>>>,
    /// By the hash of the source distribution.
    built: Once<String, Result<WheelFile, String>>,
    direct: Mutex<BTreeMap<(String, String), PathBuf>>,
    asked: Mutex<Asked>,
}

impl Door {
    /// A door that hides what was uploaded at or after `exclude_newer`, and projects that belong to the tree:
    /// `refused`, normalized names with the place that declares each.
    pub(crate) fn new(
        index: Arc<Index>,
        exclude_newer: Option<Timestamp>,
        refused: BTreeMap<String, String>,
        wheels: Arc<dyn Wheels>,
    ) -> Door {
        Door {
            index,
            exclude_newer,
            refused,
            wheels,
            building: Vec::new(),
            listings: Once::default(),
            pages: Once::default(),
            built: Once::default(),
            direct: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The door of what a source distribution needs to be built: `building` is [`Sdist::building`]. What needs itself
    /// is an error there.
    #[must_use]
    pub(crate) fn within(self, building: Vec<String>) -> Door {
        Door { building, ..self }
    }

    /// A configuration file for uv that names this door and nothing else.
    pub(crate) fn configuration(&self) -> String {
        let mut text = String::new();
        if let Some(strategy) = &self.index.strategy {
            let strategy = toml::Value::from(strategy.as_str());
            let _ = writeln!(text, "index-strategy = {strategy}\n");
        }
        for (number, source) in self.index.sources.iter().enumerate() {
            let mut section = toml::Table::new();
            section.extend(source.name.as_ref().map(|name| ("name".to_owned(), name.as_str().into())));
            section.insert("url".to_owned(), format!("{}/{number}/simple/", base()).into());
            section.insert("default".to_owned(), source.is_default.into());
            let _ = write!(text, "[[index]]\n{section}\n");
        }
        text
    }

    /// Variables that uv needs beside the configuration: it waits for a wheel that is being built, and leaves it to the
    /// door to try again.
    pub(crate) fn variables() -> BTreeMap<String, String> {
        [("UV_HTTP_TIMEOUT", "86400"), ("UV_HTTP_RETRIES", "0")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Serves a file of the driver's, which stays where it is; gives its address. The name must be that of a wheel.
    pub(crate) fn add_file(&self, path: PathBuf, filename: &str, sha256: &str) -> String {
        let key = (sha256.to_owned(), filename.to_owned());
        self.direct.lock().unwrap_or_else(PoisonError::into_inner).insert(key, path);
        format!("{}/direct/{sha256}/{filename}", base())
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Asked {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, note: impl FnOnce(&mut Asked)) {
        note(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn answer(&self, request: &Request) -> Reply {
        let segments: Option<Vec<String>> = request.path.split('/').skip(1).map(percent_decoded).collect();
        let segments = segments.unwrap_or_default();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let reply = match segments[..] {
            [number, "simple", project, ""] | [number, "simple", project] => {
                number.parse().map_err(|_| Problem::Missing).and_then(|number| self.page(number, project))
            }
            [number, "files", project, key, filename] => number
                .parse()
                .map_err(|_| Problem::Missing)
                .and_then(|number| self.file((number, project, key, filename), request.is_head)),
            ["direct", sha256, filename] => self.direct(sha256, filename),
            _ => Err(Problem::Missing),
        };
        reply.unwrap_or_else(|problem| match problem {
            Problem::Missing => Reply::refusal(404, "not found"),
            Problem::Denied(_) => Reply::refusal(403, "the index wants another login"),
            Problem::Trouble(_) => Reply::refusal(502, "the index does not answer as it should"),
        })
    }

    fn page(&self, number: usize, project: &str) -> Result<Reply, Problem> {
        let listing = self.listing(number, project)?;
        let page = self.pages.get((number, project.to_owned()), || {
            let page = listing.page(project, &format!("/{number}/files/{project}"));
            page.map(Arc::new).map_err(|error| Problem::Trouble(error.to_string()))
        })?;
        Ok(Reply::bytes(200, PAGE, page.to_vec()))
    }

    fn listing(&self, number: usize, project: &str) -> Result<Arc<Listing>, Problem> {
        if !is_normalized(project) || number >= self.index.sources.len() {
            return Err(Problem::Missing);
        }
        let asked = (project.to_owned(), number);
        if let Some(place) = self.refused.get(project) {
            self.note(|all| drop(all.refused.insert(project.to_owned(), place.clone())));
            return Err(Problem::Missing);
        }
        let made = self.listings.get((number, project.to_owned()), || {
            let page = self.index.page(number, project)?;
            Ok(Arc::new(Listing::of(&page, project, self.exclude_newer)))
        });
        self.note(|all| match &made {
            Ok(listing) => {
                if listing.has_undated {
                    all.undated.insert(asked.clone());
                }
                all.projects.insert(asked);
            }
            Err(Problem::Missing) => drop(all.missing.insert(asked)),
            Err(problem) => self.note_trouble(all, number, project, problem),
        });
        made
    }

    /// Trouble with a project or a file of index number `number`.
    fn note_trouble(&self, all: &mut Asked, number: usize, what: &str, problem: &Problem) {
        let Some(source) = self.index.sources.get(number) else { return };
        all.trouble.insert(format!("{}, {what}: {problem}", source.words(number)));
    }

    fn file(&self, (number, project, key, filename): FileKey<'_>, is_head: bool) -> Result<Reply, Problem> {
        let (filename, is_metadata) = match filename.strip_suffix(".metadata") {
            Some(filename) => (filename, true),
            None => (filename, false),
        };
        let listing = self.listing(number, project)?;
        let entry = listing.find(key, filename).ok_or(Problem::Missing)?;
        if is_head && !is_metadata {
            // uv asks whether it may have a part of the file, and takes it whole when nothing says so.
            return Ok(Reply { status: 200, content_type: FILE, body: Body::Unknown, is_immutable: false });
        }
        match (&entry.what, is_metadata) {
            (What::Wheel, false) => self.wheel(number, project, entry),
            (What::Wheel, true) => {
                self.wheel_metadata(number, &entry.file).map(|text| Reply::bytes(200, FILE, text))
            }
            (What::Source, _) => Err(Problem::Missing),
            (What::StandIn { .. }, false) => Ok(self.stand_in(number, project, entry)),
            (What::StandIn { sibling }, true) => {
                let near = sibling.as_ref().and_then(|sibling| self.wheel_metadata(number, sibling).ok());
                match near {
                    Some(text) => Ok(Reply::bytes(200, FILE, text)),
                    None => Ok(self.metadata(number, project, entry)),
                }
            }
        }
    }

    /// A wheel of the index.
    fn wheel(&self, number: usize, project: &str, entry: &Entry) -> Result<Reply, Problem> {
        let stored = self.fetch(number, &entry.file)?;
        self.note_served(number, project, entry, &stored.sha256);
        Ok(file(stored, entry.file.hashes.contains_key("sha256")))
    }

    /// The wheel that was built of a source distribution.
    fn stand_in(&self, number: usize, project: &str, entry: &Entry) -> Reply {
        match self.build(number, project, entry) {
            Ok(wheel) => {
                self.note_served(number, project, entry, &wheel.sha256);
                file(Stored { path: wheel.path, sha256: wheel.sha256 }, false)
            }
            Err(reply) => reply,
        }
    }

    /// The metadata of a source distribution: its own where that is settled, else that of its wheel.
    fn metadata(&self, number: usize, project: &str, entry: &Entry) -> Reply {
        let Ok(stored) = self.fetch(number, &entry.file) else {
            return Reply::refusal(502, "the index does not answer as it should");
        };
        if let Some(text) = metadata::of_sdist(&stored.path, &entry.file.filename) {
            return Reply::bytes(200, FILE, text);
        }
        match self.build(number, project, entry) {
            Ok(wheel) => Reply::bytes(200, FILE, wheel.metadata),
            Err(reply) => reply,
        }
    }

    /// Builds the wheel of a source distribution, once.
    fn build(&self, number: usize, project: &str, entry: &Entry) -> Result<WheelFile, Reply> {
        let fetched = self.fetch(number, &entry.file);
        let stored = fetched.map_err(|_| Reply::refusal(502, "the index does not answer as it should"))?;
        let (version, sdist_sha256) = (entry.version.to_string(), stored.sha256.clone());
        let known_as = format!("{project}=={version}");
        let made: Result<_, std::convert::Infallible> = self.built.get(stored.sha256.clone(), || {
            if self.building.contains(&known_as) {
                let chain = self.building.join(" needs ");
                return Ok(Err(format!("it needs itself to be built: {chain} needs {known_as}")));
            }
            if self.building.len() >= DEEPEST {
                let chain = self.building.join(" needs ");
                return Ok(Err(format!("too much is needed to build it: {chain} needs {known_as}")));
            }
            let building = self.building.iter().cloned().chain([known_as.clone()]).collect();
            Ok(self.wheels.wheel(&Sdist {
                name: project.to_owned(),
                version: version.clone(),
                filename: entry.file.filename.clone(),
                sha256: stored.sha256,
                path: stored.path,
                building,
            }))
        });
        let Ok(made) = made;
        self.note(|all| match &made {
            Ok(wheel) => {
                let (name, wheel_sha256) = (project.to_owned(), wheel.sha256.clone());
                all.built.insert(Built { name, version, sdist_sha256, wheel_sha256 });
            }
            Err(reason) => drop(all.failed.insert(known_as, reason.clone())),
        });
        made.map_err(|_| Reply::refusal(422, "no wheel can be built of this source distribution"))
    }

    fn fetch(&self, number: usize, file: &super::file::File) -> Result<Stored, Problem> {
        let fetched = self.index.file(number, file);
        fetched
            .inspect_err(|problem| self.note(|all| self.note_trouble(all, number, &file.filename, problem)))
    }

    fn wheel_metadata(&self, number: usize, file: &super::file::File) -> Result<Vec<u8>, Problem> {
        let found = self.index.metadata(number, file);
        found.inspect_err(|problem| self.note(|all| self.note_trouble(all, number, &file.filename, problem)))
    }

    fn note_served(&self, index: usize, project: &str, entry: &Entry, sha256: &str) {
        let served = Served {
            name: project.to_owned(),
            version: entry.version.to_string(),
            filename: entry.filename.clone(),
            index,
            sha256: sha256.to_owned(),
            is_dated: entry.file.uploaded.is_some(),
        };
        self.note(|all| {
            all.files.insert(served);
        });
    }

    fn direct(&self, sha256: &str, filename: &str) -> Result<Reply, Problem> {
        let key = (sha256.to_owned(), filename.to_owned());
        let direct = self.direct.lock().unwrap_or_else(PoisonError::into_inner);
        let path = direct.get(&key).filter(|_| is_safe(filename)).cloned().ok_or(Problem::Missing)?;
        Ok(file(Stored { path, sha256: sha256.to_owned() }, false))
    }
}

impl Service for Door {
    fn serve(&self, connection: Connection) {
        let answer = |request: &Request| self.answer(request);
        // A job that goes away in the middle of an answer is no trouble of anybody's.
        let _ = match &connection {
            Connection::Tcp(stream) => http::serve(stream, &answer),
            Connection::Unix(stream) => http::serve(stream, &answer),
        };
    }
}

/// Where a job finds its door.
fn base() -> String {
    format!("http://127.0.0.1:{SERVICE_PORT}")
}

fn file(stored: Stored, is_immutable: bool) -> Reply {
    Reply { status: 200, content_type: FILE, body: Body::File(stored.path), is_immutable }
}
