//! Requirements that name where they lie (`name @ https://…`, `name @ git+https://…`). The driver fetches them, without any
//! login: the address comes from a repository. uv is given the wheel by the door; the lock that is published keeps the
//! address, with the commit or the hash of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pep508_rs::{ExtraName, Requirement, VerbatimUrl, VersionOrUrl};

use super::tooling::Tooling;
use super::wheel::{Builder, Wheel};
use crate::beneath::Folder;
use crate::environment::declared::declarations::Files;
use crate::environment::declared::project::Project;
use crate::environment::declared::version;
use crate::environment::plan::failure::{Failure, StepError, StepResult};
use crate::environment::plan::lock::Lock;
use crate::environment::plan::markers::applies;
use crate::error::{Error, Fault, Result};
use crate::index::{Door, Index, Sdist};
use crate::requirement::{normalize, parse};
use crate::source;

/// What one environment may fetch: wheels of one server can name one more each, without end.
const MOST: usize = 200;

/// What was fetched so far.
#[derive(Debug, Default)]
pub(in crate::environment) struct Direct {
    /// By the address in the requirement.
    found: Mutex<BTreeMap<String, FetchedRequirement>>,
}

#[derive(Debug, Clone)]
struct FetchedRequirement {
    /// The address at the door.
    local: String,
    /// What a lock says in its place, and the hash that protects it, if one does.
    published: String,
    hash: Option<String>,
    /// Of the wheel.
    sha256: String,
    metadata: String,
}

/// Where requirements that name addresses are fetched for.
#[derive(Clone, Copy)]
pub(in crate::environment) struct Site<'a> {
    pub tooling: &'a Tooling,
    pub door: &'a Door,
    pub builder: &'a dyn Builder,
}

/// Requirements for uv.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::environment) struct Local {
    pub requirements: Vec<String>,
    /// What stands in the metadata of a wheel, which uv reads itself.
    pub overrides: BTreeSet<String>,
}

impl Direct {
    /// What uv gets for some requirements and for those of the tree's own wheels (name, metadata and extras of each): each
    /// that names an address names one of the door's, and so do those of the wheels that are there.
    pub(in crate::environment) fn localize(
        &self,
        site: Site<'_>,
        requirements: &[String],
        own: &[(&str, &str, Vec<String>)],
    ) -> StepResult<Local> {
        let mut local = Local::default();
        let mut wheels: Vec<(String, Vec<ExtraName>)> = Vec::new();
        for text in requirements {
            let Some((requirement, address)) = addressed(text) else {
                local.requirements.push(text.clone());
                continue;
            };
            if applies(&requirement, &site.tooling.python, None) {
                let found = self.found(site, &requirement, &address)?;
                local.requirements.push(rewritten(&requirement, &found.local));
                wheels.push((found.metadata, requirement.extras));
            }
        }
        for (_, metadata, extras) in own {
            let extras = extras.iter().filter_map(|extra| extra.parse().ok()).collect();
            wheels.push(((*metadata).to_owned(), extras));
        }
        while let Some((metadata, extras)) = wheels.pop() {
            for (mut requirement, address) in requires(&metadata) {
                // What depends on the tree gets the tree.
                let name = normalize(requirement.name.as_ref());
                let is_own = own.iter().any(|(own, ..)| *own == name);
                if is_own || !applies(&requirement, &site.tooling.python, Some(&extras)) {
                    continue;
                }
                let found = self.found(site, &requirement, &address)?;
                // It was looked at, and uv keeps the one of the wheel.
                requirement.marker = pep508_rs::MarkerTree::TRUE;
                if local.overrides.insert(rewritten(&requirement, &found.local)) {
                    wheels.push((found.metadata, requirement.extras));
                }
            }
        }
        Ok(local)
    }

    fn found(
        &self,
        site: Site<'_>,
        requirement: &Requirement<VerbatimUrl>,
        address: &str,
    ) -> StepResult<FetchedRequirement> {
        let locked = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = locked().get(address).cloned() {
            return Ok(found);
        }
        crate::interrupt::check()?;
        if locked().len() >= MOST {
            let error = Error::repository(format!("more than {MOST} requirements name an address"));
            return Err(refused(requirement, error));
        }
        let found = fetch(site, requirement, address).map_err(|error| refused(requirement, error))?;
        locked().insert(address.to_owned(), found.clone());
        Ok(found)
    }

    /// The lock as it is published.
    pub(in crate::environment) fn published(&self, lock: &Lock) -> Lock {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        lock.with_requirements(|requirement| {
            let (name, address) = requirement.split_once(" @ ")?;
            let found = found.values().find(|found| found.local == address.trim())?;
            Some((format!("{name} @ {}", found.published), found.hash.iter().cloned().collect()))
        })
    }

    /// For an entry of a published lock: the requirement as uv gets it, and the hash of its wheel.
    pub(in crate::environment) fn wheel(&self, requirement: &str) -> Option<(String, String)> {
        let (name, address) = requirement.split_once(" @ ")?;
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.values().find(|found| found.published == address.trim())?;
        Some((format!("{name} @ {}", found.local), found.sha256.clone()))
    }
}

/// A requirement that names an address, and the address.
fn addressed(text: &str) -> Option<(Requirement<VerbatimUrl>, String)> {
    let requirement = parse(text)?;
    let Some(VersionOrUrl::Url(url)) = &requirement.version_or_url else { return None };
    let address = url.to_string();
    Some((requirement, address))
}

/// Those of a wheel's metadata that are fetched.
fn requires(metadata: &str) -> Vec<(Requirement<VerbatimUrl>, String)> {
    let head = metadata.replace("\r\n", "\n");
    let head = head.split("\n\n").next().unwrap_or_default();
    let lines = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("Requires-Dist").then(|| value.trim())
    });
    let is_fetched =
        |address: &str| ["http://", "https://", "git+"].iter().any(|start| address.starts_with(start));
    lines.filter_map(addressed).filter(|(_, address)| is_fetched(address)).collect()
}

fn refused(requirement: &Requirement<VerbatimUrl>, error: Error) -> StepError {
    if !matches!(error.fault(), Fault::Repository | Fault::Usage) {
        return StepError::Fatal(error);
    }
    let detail = error.detail().map(|detail| format!("\n{detail}")).unwrap_or_default();
    StepError::Recoverable(Failure {
        stage: format!("fetching {}", requirement.name),
        output: format!("{error}{detail}"),
        hint: "an address in a requirement is fetched without any login, and from no private address unless \
               GISTMILL_ALLOW_PRIVATE_ADDRESSES=1 is set; where that does not do, name the distribution of an index \
               in `requirements`",
        unknown: Vec::new(),
        is_refused: false,
    })
}

fn rewritten(requirement: &Requirement<VerbatimUrl>, address: &str) -> String {
    let extras: Vec<&str> = requirement.extras.iter().map(AsRef::as_ref).collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    let marker = requirement.marker.contents().map(|marker| format!(" ; {marker}")).unwrap_or_default();
    format!("{}{extras} @ {address}{marker}", requirement.name)
}

fn fetch(
    site: Site<'_>,
    requirement: &Requirement<VerbatimUrl>,
    address: &str,
) -> Result<FetchedRequirement> {
    let Site { tooling, door, builder } = site;
    let name = normalize(requirement.name.as_ref());
    let (plain, fragment) = address.split_once('#').unwrap_or((address, ""));
    if let Some(repository) = plain.strip_prefix("git+") {
        return commit(site, &name, repository, fragment);
    }
    // With the fragment, which may say what the file must be.
    let fetched = tooling.index.fetch_direct(address)?;
    let published = plain.to_owned();
    let hash = Some(format!("sha256:{}", fetched.sha256));
    if fetched.filename.ends_with(".whl") {
        let metadata = Index::wheel_metadata(&fetched.path)?;
        let metadata = String::from_utf8_lossy(&metadata).into_owned();
        let local = door.add_file(fetched.path, &fetched.filename, &fetched.sha256);
        return Ok(FetchedRequirement { local, published, hash, sha256: fetched.sha256, metadata });
    }
    let built = builder.of_archive(&Sdist {
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
    let metadata = String::from_utf8_lossy(&built.metadata).into_owned();
    Ok(FetchedRequirement { local, published, hash, sha256: built.sha256, metadata })
}

/// `https://host/repository[@reference]`, and `subdirectory=…`.
fn commit(site: Site<'_>, name: &str, repository: &str, fragment: &str) -> Result<FetchedRequirement> {
    let Site { tooling, door, builder } = site;
    let start = repository.find("://").map_or(0, |index| index + 3);
    let path = repository[start..].find('/').map_or(repository.len(), |index| start + index);
    let (url, reference) = match repository[path..].rsplit_once('@') {
        Some((folder, reference)) => (format!("{}{folder}", &repository[..path]), Some(reference)),
        None => (repository.to_owned(), None),
    };
    let step = tooling.step()?;
    let target = step.folder("checkout")?;
    let commit = source::checkout(&url, reference, &tooling.cache, &tooling.index, &target)?;
    let subdirectory = fragment.split('&').find_map(|part| part.strip_prefix("subdirectory="));
    let folder = match subdirectory {
        Some(below) => folder_below(&target, Path::new(below))?,
        None => target,
    };
    let variables = pretended(&folder, reference, &commit)?;
    let wheel: Wheel = builder.of_folder(name, &folder, &variables)?;
    let local = door.add_file(wheel.file, &wheel.filename, &wheel.sha256);
    let subdirectory = subdirectory.map(|below| format!("#subdirectory={below}")).unwrap_or_default();
    Ok(FetchedRequirement {
        local,
        published: format!("git+{url}@{commit}{subdirectory}"),
        hash: None,
        sha256: wheel.sha256,
        metadata: wheel.metadata,
    })
}

/// Variables that tell a build the version that git would tell it: a checkout has no history.
fn pretended(folder: &Path, reference: Option<&str>, commit: &str) -> Result<BTreeMap<String, String>> {
    let opened = Folder::open(folder)?;
    let text = |name: &str| {
        let bytes = opened.read(Path::new(name), 1 << 20).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (setup, pyproject) = (text("setup.py"), text("pyproject.toml"));
    let files = Files::from_texts([("setup.py", setup.as_str()), ("pyproject.toml", pyproject.as_str())]);
    let project = Project::parse(&files)?;
    let tag = reference.and_then(version::of_reference);
    let unknown = format!("0.0.0+g{}", commit.get(..7).unwrap_or(commit));
    let history = version::History { tag: tag.as_ref(), commit, unknown: &unknown };
    let told = version::pretend(&files, &project, history);
    Ok(told.map(|(variables, _)| variables).unwrap_or_default())
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
        let found = FetchedRequirement {
            local: "http://127.0.0.1:3141/direct/0/a-1-py3-none-any.whl".to_owned(),
            published: "git+https://h.example/a@0123".to_owned(),
            hash: None,
            sha256: "ff".to_owned(),
            metadata: String::new(),
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

    #[test]
    fn addresses_in_metadata_are_found() {
        let metadata = "Metadata-Version: 2.1\r\nName: own\r\nRequires-Dist: a[x] @ git+https://h.example/a@main ; extra == 'e'\r\n\
                        requires-dist: b @ https://h.example/b.whl\r\nRequires-Dist: c>=1\r\n\
                        Requires-Dist: d @ file:///srv/d.whl\r\n\r\nRequires-Dist: words @ https://h.example/w.whl\r\n";
        let found: Vec<String> = requires(metadata).into_iter().map(|(_, address)| address).collect();
        assert_eq!(found, ["git+https://h.example/a@main", "https://h.example/b.whl"]);
    }

    #[test]
    fn builds_that_ask_git_are_told_the_version_of_the_reference() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[build-system]\nrequires = ['setuptools', 'setuptools-scm']\nbuild-backend = 'setuptools.build_meta'\n";
        fs_err::write(folder.path().join("pyproject.toml"), text).unwrap();
        let told = |reference| {
            let variables = pretended(folder.path(), reference, "0123456789").unwrap();
            variables.get("SETUPTOOLS_SCM_PRETEND_VERSION").cloned()
        };
        assert_eq!(told(Some("v1.2.3")).as_deref(), Some("1.2.3"));
        assert_eq!(told(Some("main")).as_deref(), Some("0.0.0+g0123456"));
        assert_eq!(told(None).as_deref(), Some("0.0.0+g0123456"));
        fs_err::write(folder.path().join("pyproject.toml"), "").unwrap();
        assert_eq!(told(Some("v1.2.3")), None);
    }
}
