//! Images: the base with what every image needs, and one image for each environment on top of it.
//!
//! The image of an environment is put together from files that lie on the host: the base's layers, one with the virtual
//! environment, one with the tree. The same files give the same image, to the last bit; nothing is run for it, so no
//! setting of the host can end up in it. Only the packages of the distribution are installed in a container, once for
//! each base and list, with certificates and proxies handed over its stdin.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::{ContainerConfig, ImageInspect};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateImageOptionsBuilder, ImportImageOptionsBuilder,
    ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;

use super::archive::{self, Layers};
use super::engine::{ContainerLimits, Engine, LABEL, Purpose, Spec, labels};
use super::{oci, one_shot};
use crate::error::{Error, Fault, Result};
use crate::record::id::hash_parts;
use crate::redact::Hosts;

/// Programs of the contract that a base must have, and the packages that bring them.
const NEEDED: [(&str, &str); 4] = [("bash", "bash"), ("git", "git"), ("tar", "tar"), ("python3", "")];
/// Repository of bases with packages.
const BASES: &str = "gistmill/base";
/// Labels of an image: the environment's key, and bytes of its own layers.
const KEY: &str = "gistmill.key";
const BYTES: &str = "gistmill.bytes";
const INSTALL: &str = include_str!("packages.py");
const INSTALL_LIMIT: Duration = Duration::from_mins(30);
pub(super) const LOOK_LIMIT: Duration = Duration::from_mins(2);
/// What installing packages of the distribution needs.
const INSTALLER: [&str; 7] = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "SETFCAP"];

/// A base that has all that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// As the config names it.
    pub name: String,
    /// Packages that were added.
    pub packages: Vec<String>,
    /// Id of the image.
    pub id: String,
    /// Id of the image that the config names.
    pub named_id: String,
}

/// An image of an environment, in an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub tag: String,
    pub id: String,
}

/// What an image is made of.
#[derive(Debug, Clone)]
pub struct Contents {
    /// Content address of the environment.
    pub key: String,
    pub tag: String,
    pub venv: PathBuf,
    pub tree: PathBuf,
    /// RFC 3339 time of the image, and the same in seconds since 1970, which is the time of its files.
    pub created: (String, i64),
}

/// The files that packages are downloaded with: variables, and the text of a certificate bundle.
#[derive(Debug, Clone, Default)]
pub struct Downloads {
    pub variables: BTreeMap<String, String>,
    pub certificates: Option<Vec<u8>>,
}

/// The base of a repository, pulled and completed where that was not done before.
///
/// # Errors
/// The machine's: the base cannot be had, or lacks what cannot be installed.
pub fn base(
    engine: &Engine,
    name: &str,
    wanted: &[String],
    downloads: &Downloads,
    progress: &dyn Fn(&str),
) -> Result<Base> {
    let named = match inspect(engine, name)? {
        Some(found) => found,
        None => pull(engine, name, progress)?,
    };
    let named_id = named.id.clone().unwrap_or_default();
    let mut packages = missing(engine, name, &named_id)?;
    packages.extend(wanted.iter().cloned());
    packages.sort();
    packages.dedup();
    if packages.is_empty() {
        return Ok(Base { name: name.to_owned(), packages, id: named_id.clone(), named_id });
    }
    let tag = format!("{BASES}:{}", &hash_parts(&["base", &named_id, &packages.join("\0")])[..16]);
    let found = match inspect(engine, &tag)? {
        Some(found) => found,
        None => install(engine, (&named_id, &named), &packages, &tag, downloads, progress)?,
    };
    Ok(Base { name: name.to_owned(), packages, id: found.id.unwrap_or_default(), named_id })
}

/// An image by tag or id; none when the engine has none.
pub(super) fn inspect(engine: &Engine, name: &str) -> Result<Option<ImageInspect>> {
    match engine.wait(engine.client().inspect_image(name)) {
        Ok(found) => Ok(Some(found)),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
        Err(error) => Err(engine.explain(&format!("looking for the image {name}"), error)),
    }
}

/// The variables that an image sets.
///
/// # Errors
/// The engine's.
pub fn variables(engine: &Engine, name: &str) -> Result<BTreeMap<String, String>> {
    let config = inspect(engine, name)?.and_then(|found| found.config);
    let set = config.and_then(|config| config.env).unwrap_or_default();
    let split = |one: &String| one.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(set.iter().filter_map(split).collect())
}

/// Whether the engine has it.
///
/// # Errors
/// The engine's.
pub fn exists(engine: &Engine, name: &str) -> Result<bool> {
    inspect(engine, name).map(|found| found.is_some())
}

fn pull(engine: &Engine, name: &str, progress: &dyn Fn(&str)) -> Result<ImageInspect> {
    progress(&format!("pulling {name}"));
    let options = CreateImageOptionsBuilder::default().from_image(name).build();
    let pulled = engine.wait(async {
        let mut stream = Box::pin(engine.client().create_image(Some(options), None, None));
        while let Some(step) = stream.next().await {
            let step = step?;
            if let Some(error) = step.error_detail.and_then(|detail| detail.message) {
                return Err(bollard::errors::Error::DockerStreamError { error });
            }
        }
        Ok(())
    });
    if let Err(error) = pulled {
        let words = engine.explain("pulling", error);
        if words.fault() == Fault::Machine {
            return Err(words);
        }
        let detail = words.detail().map_or_else(|| words.to_string(), str::to_owned);
        return Err(Error::machine(format!("the base image {name} is not in the engine and cannot be pulled"))
            .with_detail(detail)
            .with_hint("name another with `base` in [docker] or in the repository, or load it: `docker load`, `docker import`"));
    }
    inspect(engine, name)?.ok_or_else(|| {
        Error::machine(format!(
            "the base image {name} was pulled, but the engine does not know it by that name"
        ))
        .with_hint("name it as `docker images` shows it")
    })
}

/// Packages that bring what the base lacks.
fn missing(engine: &Engine, name: &str, id: &str) -> Result<Vec<String>> {
    let programs: Vec<&str> = NEEDED.iter().map(|(program, _)| *program).collect();
    let script =
        format!("for one in {}; do command -v $one >/dev/null || echo $one; done", programs.join(" "));
    let spec = Spec {
        image: id,
        command: vec!["sh".into(), "-c".into(), script],
        has_network: false,
        root: Some(&[]),
        read_only: true,
        tmpfs: Vec::new(),
        limits: ContainerLimits::default(),
        purpose: Purpose::Look,
    };
    let done = one_shot::run(engine, &spec, b"", LOOK_LIMIT)?;
    if done.code != Some(0) {
        return Err(Error::machine(format!("the base image {name} has no shell that works"))
            .with_detail(done.stderr)
            .with_hint("use one with Python, such as an official python image"));
    }
    let lacks: Vec<&str> = done.stdout.split_whitespace().collect();
    if lacks.contains(&"python3") {
        return Err(Error::machine(format!("the base image {name} has no python3")).with_hint(
            "use one that has, such as an official python image; Python is not installed into a base",
        ));
    }
    let package = |(program, package): &(&str, &str)| lacks.contains(program).then(|| (*package).to_owned());
    Ok(NEEDED.iter().filter_map(package).collect())
}

fn install(
    engine: &Engine,
    (named_id, named): (&str, &ImageInspect),
    packages: &[String],
    tag: &str,
    downloads: &Downloads,
    progress: &dyn Fn(&str),
) -> Result<ImageInspect> {
    progress(&format!("installing {}", packages.join(", ")));
    let spec = Spec {
        image: named_id,
        command: ["python3", "-I", "-B", "-c", INSTALL].map(str::to_owned).into(),
        has_network: true,
        root: Some(&INSTALLER),
        read_only: false,
        tmpfs: vec!["/run/certificates".to_owned()],
        limits: ContainerLimits::default(),
        purpose: Purpose::Packages,
    };
    let certificates = downloads.certificates.as_deref().map(String::from_utf8_lossy);
    let told = json!({
        "packages": packages, "variables": downloads.variables, "certificates": certificates,
    });
    let told = serde_json::to_vec(&told)
        .map_err(|error| Error::internal("cannot encode a list of packages").with_source(error))?;
    let (done, container) = one_shot::run_and_keep(engine, &spec, &told, INSTALL_LIMIT)?;
    let config = named.config.clone().unwrap_or_default();
    let committed = if done.code == Some(0) {
        let (repo, tag) = tag.split_once(':').unwrap_or((tag, "latest"));
        let options = CommitContainerOptionsBuilder::default()
            .container(&container)
            .repo(repo)
            .tag(tag)
            .pause(false)
            .build();
        let config = ContainerConfig {
            env: config.env,
            cmd: config.cmd,
            entrypoint: config.entrypoint,
            working_dir: config.working_dir,
            labels: Some(labels("base")),
            ..ContainerConfig::default()
        };
        engine
            .ask("keeping the installed packages", engine.client().commit_container(options, config))
            .map(drop)
    } else {
        Err(Error::machine(format!("{} cannot be installed into the base image", packages.join(", ")))
            .with_detail(Hosts::of(&downloads.variables).tail(&done.stderr))
            .with_hint(
                "check the names of `system_packages`, and the network; or name a `base` that has them",
            ))
    };
    engine.remove_container(&container);
    committed?;
    inspect(engine, tag)?.ok_or_else(|| Error::harness("the engine did not keep the base with its packages"))
}

/// The image of an environment: found, else put together and loaded.
///
/// # Errors
/// The engine's; IO errors of the temporary folder.
pub fn ensure(engine: &Engine, base: &Base, contents: &Contents, progress: &dyn Fn(&str)) -> Result<Image> {
    if let Some(found) = inspect(engine, &contents.tag)?
        && label(&found, KEY) == Some(contents.key.as_str())
        && let Some(id) = found.id.clone()
    {
        return Ok(Image { tag: contents.tag.clone(), id });
    }
    progress(&format!("making the image {}", contents.tag));
    let found = inspect(engine, &base.id)?.ok_or_else(|| base_gone(&base.name))?;
    let found = serde_json::to_value(&found)
        .map_err(|error| Error::internal("cannot encode an inspection").with_source(error))?;
    let layers = Layers::new(&contents.venv, &contents.tree, contents.created.1)?;
    let mut of_image: BTreeMap<String, String> = labels("image").into_iter().collect();
    of_image.insert(KEY.to_owned(), contents.key.clone());
    of_image.insert(BYTES.to_owned(), layers.bytes().to_string());
    let assemble = |archive: Option<&std::fs::File>| {
        archive::assemble(&found, archive, &layers, &contents.tag, &contents.created.0, &of_image)
    };
    let kept = || Ok::<_, Error>(inspect(engine, &contents.tag)?.and_then(|found| found.id));
    // The base's layers are a hundred times the rest. Engines with another kind of store want them all the same.
    let (thin, digest) = assemble(None)?;
    let known = match if engine.is_podman() { Ok(()) } else { load(engine, thin) } {
        Ok(()) => kept()?,
        Err(error) if error.fault() == Fault::Harness => None,
        Err(error) => return Err(error),
    };
    let found = if let Some(id) = known.filter(|id| id.ends_with(&digest)) {
        id
    } else {
        load(engine, assemble(Some(&export(engine, &base.id)?))?.0)?;
        kept()?
            .ok_or_else(|| Error::harness(format!("the engine did not keep the image {}", contents.tag)))?
    };
    // An engine with another kind of store has ids of its own.
    if !found.ends_with(&digest) {
        progress(&format!("the engine calls the image {found}, its configuration is {digest}"));
    }
    Ok(Image { tag: contents.tag.clone(), id: found })
}

fn base_gone(name: &str) -> Error {
    Error::machine(format!("the base image {name} was removed from the engine meanwhile"))
        .with_hint("run the same command again")
}

fn label<'i>(image: &'i ImageInspect, name: &str) -> Option<&'i str> {
    image.config.as_ref()?.labels.as_ref()?.get(name).map(String::as_str)
}

/// Writes an image of the engine to a file that is gone when it is closed.
pub(super) fn export(engine: &Engine, name: &str) -> Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    let doing = format!("reading the image {name}");
    engine.wait(async {
        let mut stream = Box::pin(engine.client().export_image(name));
        while let Some(part) = stream.next().await {
            let part = part.map_err(|error| engine.explain(&doing, error))?;
            file.write_all(&part)?;
        }
        Ok::<_, Error>(())
    })?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Loads an archive of images.
pub(super) fn load(engine: &Engine, mut file: impl Read + Send + 'static) -> Result<()> {
    let parts = std::iter::from_fn(move || {
        let mut part = vec![0; 1 << 20];
        match file.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some(Ok(Bytes::from(part)))
            }
            Err(error) => Some(Err(error)),
        }
    });
    let body = bollard::body_try_stream(futures_util::stream::iter(parts));
    let options = ImportImageOptionsBuilder::default().quiet(true).build();
    engine.wait(async {
        let mut stream = Box::pin(engine.client().import_image(options, body, None));
        while let Some(step) = stream.next().await {
            let step = step.map_err(|error| engine.explain("loading an image", error))?;
            if let Some(error) = step.error_detail.and_then(|detail| detail.message) {
                let error = bollard::errors::Error::DockerStreamError { error };
                return Err(engine.explain("loading an image", error));
            }
        }
        Ok(())
    })
}

/// How an archive of an image is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Layout {
    /// As `docker save` writes it, compressed as a whole
    Docker,
    /// As OCI lays images out, with compressed layers: for skopeo, Podman, Apptainer and containerd, and for Docker as well
    Oci,
}

/// Writes the image of a tag, compressed.
///
/// # Errors
/// No such image; the engine's; IO errors.
pub fn save(engine: &Engine, tag: &str, path: &Path, layout: Layout) -> Result<Image> {
    let id = inspect(engine, tag)?.and_then(|found| found.id).ok_or_else(|| {
        Error::usage(format!("the engine has no image {tag}"))
            .with_hint("`gistmill image list` names those that it has")
    })?;
    let mut exported = export(engine, tag)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(folder)?;
    match layout {
        Layout::Docker => {
            // No name and no time in the header: the same image gives the same bytes.
            let mut packer = flate2::write::GzEncoder::new(&mut file, flate2::Compression::default());
            std::io::copy(&mut exported, &mut packer)?;
            packer.finish()?;
        }
        Layout::Oci => oci::write(&exported, tag, &mut file)?,
    }
    file.as_file().sync_all()?;
    fs_err::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(path)
        .map_err(|error| Error::from(error.error).at(format!("cannot write {}", path.display())))?;
    Ok(Image { tag: tag.to_owned(), id })
}

/// Loads what [`save`] wrote; gives the images in it.
///
/// # Errors
/// No such archive, or none of images; the engine's.
pub fn load_file(engine: &Engine, path: &Path) -> Result<Vec<Image>> {
    let tags = archive::tags(unpacked(path)?).map_err(|error| {
        Error::usage(format!("{} is not an archive that `gistmill image save` wrote", path.display()))
            .with_source(error)
    })?;
    load(engine, unpacked(path)?)?;
    let mut images = Vec::new();
    for tag in tags {
        let id = inspect(engine, &tag)?.and_then(|found| found.id);
        let id = id.ok_or_else(|| Error::harness(format!("the engine did not keep the image {tag}")))?;
        images.push(Image { tag, id });
    }
    Ok(images)
}

/// An archive, which is compressed as a whole or not at all.
fn unpacked(path: &Path) -> Result<Box<dyn Read + Send>> {
    let mut file = std::io::BufReader::new(fs_err::File::open(path)?);
    let is_packed = std::io::BufRead::fill_buf(&mut file)?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_packed { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// A tag of an image that gistmill made, as a list shows it: trees with the same files share an image.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    pub tag: String,
    pub id: String,
    /// `image` or `base`.
    pub kind: String,
    /// Bytes of its own layers; none for a base.
    pub own_bytes: Option<u64>,
    /// Bytes with the layers that it shares.
    pub bytes: u64,
    /// Seconds since the epoch.
    pub created: i64,
}

/// All tags of the images that gistmill made. An image that somebody made on top of one has its label, too: the tag decides.
///
/// # Errors
/// The engine's.
pub fn list(engine: &Engine) -> Result<Vec<Listed>> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
    let options = ListImagesOptionsBuilder::default().filters(&filters).build();
    let found = engine.ask("listing images", engine.client().list_images(Some(options)))?;
    let mut images: Vec<Listed> = found
        .into_iter()
        .flat_map(|one| {
            let listed = |tag: &String| Listed {
                tag: tag.clone(),
                kind: one.labels.get(LABEL).cloned().unwrap_or_default(),
                own_bytes: one.labels.get(BYTES).and_then(|text| text.parse().ok()),
                bytes: u64::try_from(one.size).unwrap_or_default(),
                created: one.created,
                id: one.id.clone(),
            };
            one.repo_tags.iter().filter(|tag| archive::is_own(tag)).map(listed).collect::<Vec<Listed>>()
        })
        .collect();
    images.sort_by(|a, b| a.tag.cmp(&b.tag));
    Ok(images)
}

/// Removes an image; false when something still uses it.
///
/// # Errors
/// The engine's, but for "in use" and "not there".
pub fn remove(engine: &Engine, name: &str) -> Result<bool> {
    let options = RemoveImageOptionsBuilder::default().force(false).build();
    match engine.wait(engine.client().remove_image(name, Some(options), None)) {
        Ok(_) => Ok(true),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(false),
        Err(error) => Err(engine.explain(&format!("removing the image {name}"), error)),
    }
}

/// The tag of an environment's image.
pub fn tag(slug: &crate::record::id::RepoSlug, key: &str) -> String {
    let name: String = slug.file_name().to_lowercase();
    // A part of a repository's name starts and ends with a letter or digit, with single dots between.
    let mut plain = String::new();
    for part in name.split(['.', '-']).map(|part| part.trim_matches('_')).filter(|part| !part.is_empty()) {
        if !plain.is_empty() {
            plain.push('-');
        }
        plain.push_str(part);
    }
    format!("gistmill/{plain}:{}", &hash_parts(&["image", archive::VERSION, key])[..16])
}
