//! Requirements that name where they lie (`name @ https://…`, `name @ git+https://…`). The driver fetches them, without any
//! login: the address comes from a repository. uv is given the wheel by the door; the lock that is published keeps the
//! address, with the commit or the hash of the file.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pep508_rs::{Requirement, VerbatimUrl, VersionOrUrl};

use super::building::{Building, Wheel};
use super::install::{Attempt, Failure, Tooling, Trouble};
use super::lock::Lock;
use super::requirements_files::{normalize, parse};
use crate::error::{Error, Fault, Result};
use crate::index::{Door, Sdist};
use crate::source;

/// What was fetched so far.
#[derive(Debug, Default)]
pub struct Direct {
    /// By the address in the requirement.
    found: Mutex<BTreeMap<String, Found>>,
}

#[derive(Debug, Clone)]
struct Found {
    /// The address at the door.
    local: String,
    /// What a lock says in its place, and the hash that protects it, if one does.
    published: String,
    hash: Option<String>,
    /// Of the wheel.
    sha256: String,
}

impl Direct {
    /// The requirement as uv gets it: what names an address names one of the door's.
    pub fn local(&self, tooling: &Tooling, door: &Door, text: &str) -> Attempt<String> {
        let Some(requirement) = parse(text) else { return Ok(text.to_owned()) };
        let Some(VersionOrUrl::Url(url)) = &requirement.version_or_url else { return Ok(text.to_owned()) };
        let address = url.to_string();
        let known = self.found.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned();
        let found = match known {
            Some(found) => found,
            None => {
                fetch(tooling, door, &requirement, &address).map_err(|error| refused(&requirement, error))?
            }
        };
        let local = rewritten(&requirement, &found.local);
        self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(address, found);
        Ok(local)
    }

    /// The lock as it is published.
    pub fn published(&self, lock: &Lock) -> Lock {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        lock.with_requirements(|requirement| {
            let (name, address) = requirement.split_once(" @ ")?;
            let found = found.values().find(|found| found.local == address.trim())?;
            Some((format!("{name} @ {}", found.published), found.hash.iter().cloned().collect()))
        })
    }

    /// For an entry of a published lock: the requirement as uv gets it, and the hash of its wheel.
    pub fn wheel(&self, requirement: &str) -> Option<(String, String)> {
        let (name, address) = requirement.split_once(" @ ")?;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.values().find(|found| found.published == address.trim())?;
        Some((format!("{name} @ {}", found.local), found.sha256.clone()))
    }
}

fn refused(requirement: &Requirement<VerbatimUrl>, error: Error) -> Trouble {
    if !matches!(error.fault(), Fault::Repository | Fault::Usage) {
        return Trouble::Stop(error);
    }
    let detail = error.detail().map(|detail| format!("\n{detail}")).unwrap_or_default();
    Trouble::Step(Failure {
        stage: format!("fetching {}", requirement.name),
        output: format!("{error}{detail}"),
        hint: "an address in a requirement is fetched without any login; where that does not do, name the \
               distribution of an index in `requirements`",
        unknown: Vec::new(),
    })
}

fn rewritten(requirement: &Requirement<VerbatimUrl>, address: &str) -> String {
    let extras: Vec<&str> = requirement.extras.iter().map(AsRef::as_ref).collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    let marker = requirement.marker.contents().map(|marker| format!(" ; {marker}")).unwrap_or_default();
    format!("{}{extras} @ {address}{marker}", requirement.name)
}

fn fetch(
    tooling: &Tooling,
    door: &Door,
    requirement: &Requirement<VerbatimUrl>,
    address: &str,
) -> Result<Found> {
    let name = normalize(requirement.name.as_ref());
    let (plain, fragment) = address.split_once('#').unwrap_or((address, ""));
    if let Some(repository) = plain.strip_prefix("git+") {
        return commit(tooling, door, &name, repository, fragment);
    }
    let fetched = tooling.index.fetch_direct(plain)?;
    let published = plain.to_owned();
    let hash = Some(format!("sha256:{}", fetched.sha256));
    if fetched.filename.ends_with(".whl") {
        let local = door.add_file(fetched.path, &fetched.filename, &fetched.sha256);
        return Ok(Found { local, published, hash, sha256: fetched.sha256 });
    }
    let built = Building::new(tooling.clone()).of_archive(&Sdist {
        name: name.clone(),
        version: String::new(),
        filename: fetched.filename,
        sha256: fetched.sha256,
        path: fetched.path,
        building: vec![name.clone()],
    })?;
    let version = metadata_field(&built.metadata, "Version")
        .ok_or_else(|| Error::repository(format!("{plain}: its wheel has no version")))?;
    let filename = format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"));
    let local = door.add_file(built.path, &filename, &built.sha256);
    Ok(Found { local, published, hash, sha256: built.sha256 })
}

/// `https://host/repository[@reference]`, and `subdirectory=…`.
fn commit(tooling: &Tooling, door: &Door, name: &str, repository: &str, fragment: &str) -> Result<Found> {
    let start = repository.find("://").map_or(0, |index| index + 3);
    let path = repository[start..].find('/').map_or(repository.len(), |index| start + index);
    let (url, reference) = match repository[path..].rsplit_once('@') {
        Some((folder, reference)) => (format!("{}{folder}", &repository[..path]), Some(reference)),
        None => (repository.to_owned(), None),
    };
    let step = tooling.step()?;
    let target = step.folder("checkout")?;
    let commit = source::checkout(&url, reference, &tooling.cache, &target)?;
    let subdirectory = fragment.split('&').find_map(|part| part.strip_prefix("subdirectory="));
    let folder = match subdirectory {
        Some(below) => folder_below(&target, Path::new(below))?,
        None => target,
    };
    let wheel: Wheel = Building::new(tooling.clone()).of_folder(name, &folder)?;
    let local = door.add_file(wheel.file, &wheel.filename, &wheel.sha256);
    let subdirectory = subdirectory.map(|below| format!("#subdirectory={below}")).unwrap_or_default();
    Ok(Found {
        local,
        published: format!("git+{url}@{commit}{subdirectory}"),
        hash: None,
        sha256: wheel.sha256,
    })
}

/// A folder of a checkout, whose links lead anywhere.
fn folder_below(root: &Path, below: &Path) -> Result<PathBuf> {
    let mut folder = root.to_owned();
    for part in below.components() {
        folder.push(part);
        let is_folder = folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if !is_folder || !matches!(part, Component::Normal(_)) {
            let message = format!("`{}` is not a folder of the repository", below.display());
            return Err(Error::repository(message));
        }
    }
    Ok(folder)
}

fn metadata_field(metadata: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(metadata);
    let head = text.split("\n\n").next()?;
    head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_keeps_its_extras_and_its_marker() {
        let requirement = parse("a[x,y] @ git+https://h.example/a@main ; python_version >= '3.8'").unwrap();
        assert_eq!(
            rewritten(&requirement, "http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl"),
            "a[x,y] @ http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl ; python_full_version >= '3.8'"
        );
    }

    #[test]
    fn a_lock_is_published_with_the_address_and_installed_from_the_door() {
        let direct = Direct::default();
        let found = Found {
            local: "http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl".to_owned(),
            published: "git+https://h.example/a@0123".to_owned(),
            hash: None,
            sha256: "ff".to_owned(),
        };
        direct.found.lock().unwrap().insert("git+https://h.example/a@main".to_owned(), found);
        let lock = Lock::parse(
            "a @ http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl --hash=sha256:ff\nb==1 --hash=sha256:bb\n",
        );
        let published = direct.published(&lock);
        assert_eq!(published.direct(), "a @ git+https://h.example/a@0123\n");
        assert_eq!(
            direct.wheel("a @ git+https://h.example/a@0123"),
            Some(("a @ http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl".to_owned(), "ff".to_owned()))
        );
        assert_eq!(direct.wheel("b==1"), None);
    }
}
