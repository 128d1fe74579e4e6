//! Archives of images, as `docker save` writes and `docker load` reads them: layers on top of a base, by files alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Changes whenever the same environment may give another image.
pub const VERSION: &str = "3";
/// Who owns the tree and the environment inside.
const OWNER: u64 = 1000;
/// Where they lie.
const VENV: &str = "opt/venv";
const TREE: &str = "testbed";
/// A login shell forgets the PATH of the image.
const PROFILE: (&str, &str) = ("etc/profile.d/venv.sh", "export PATH=/opt/venv/bin:$PATH\n");
/// git refuses trees of others otherwise, whoever the user is.
const GIT: (&str, &str) = ("etc/gitconfig", "[safe]\n\tdirectory = /testbed\n");

/// One layer: an archive of its own.
#[derive(Debug)]
pub struct Layer {
    file: std::fs::File,
    bytes: u64,
    /// SHA-256 of the archive, in hex.
    digest: String,
    /// What made it, in the image's history.
    history: String,
}

/// The layers of an environment.
#[derive(Debug)]
pub struct Layers(Vec<Layer>);

impl Layers {
    /// Packs the virtual environment and the tree, all dated `seconds` after 1970. The same files give the same bytes,
    /// whenever they were made.
    ///
    /// # Errors
    /// IO errors.
    pub fn new(venv: &Path, tree: &Path, seconds: i64) -> Result<Self> {
        let environment = layer("environment", |archive| {
            for (name, text) in [PROFILE, GIT] {
                append_text(archive, name, text)?;
            }
            append_folder(archive, VENV, venv, seconds)
        })?;
        Ok(Layers(vec![environment, layer("tree", |archive| append_folder(archive, TREE, tree, seconds))?]))
    }

    /// Bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|layer| layer.bytes).sum()
    }
}

type Packer = tar::Builder<Hashing<std::io::BufWriter<std::fs::File>>>;

fn layer(history: &str, fill: impl FnOnce(&mut Packer) -> std::io::Result<()>) -> Result<Layer> {
    let writer =
        Hashing { inner: std::io::BufWriter::new(tempfile::tempfile()?), hash: Sha256::new(), bytes: 0 };
    let mut archive = tar::Builder::new(writer);
    let packed = fill(&mut archive).and_then(|()| archive.into_inner());
    let packed = packed.map_err(|error| Error::from(error).at(format!("cannot pack the {history}")))?;
    let mut file = packed.inner.into_inner().map_err(|error| Error::from(error.into_error()))?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Layer {
        file,
        bytes: packed.bytes,
        digest: hex::encode(packed.hash.finalize()),
        history: history.to_owned(),
    })
}

/// Hashes and counts what passes.
pub(super) struct Hashing<W> {
    pub(super) inner: W,
    pub(super) hash: Sha256,
    pub(super) bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

pub(super) fn header(mode: u32, seconds: i64, owner: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode & 0o7777);
    header.set_mtime(u64::try_from(seconds).unwrap_or_default());
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_size(0);
    header
}

fn append_text(archive: &mut Packer, name: &str, text: &str) -> std::io::Result<()> {
    let mut header = header(0o644, 0, 0);
    header.set_size(text.len() as u64);
    archive.append_data(&mut header, name, text.as_bytes())
}

fn append_folder(archive: &mut Packer, name: &str, folder: &Path, seconds: i64) -> std::io::Result<()> {
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let place = if relative.as_os_str().is_empty() {
            Path::new(name).to_owned()
        } else {
            Path::new(name).join(relative)
        };
        let metadata = entry.path().symlink_metadata()?;
        let mut header = header(metadata.mode(), seconds, OWNER);
        if metadata.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            archive.append_data(&mut header, place, std::io::empty())?;
        } else if metadata.is_symlink() {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(&mut header, place, fs_err::read_link(entry.path())?)?;
        } else if metadata.is_file() {
            if let Some(bytes) = dated(entry.path(), relative, seconds)? {
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, place, bytes.as_slice())?;
                continue;
            }
            header.set_size(metadata.len());
            archive.append_data(&mut header, place, fs_err::File::open(entry.path())?)?;
        }
    }
    Ok(())
}

/// The bytes of a file that tells when others were made, for files of that time; none of one that does not.
fn dated(path: &Path, relative: &Path, seconds: i64) -> std::io::Result<Option<Vec<u8>>> {
    if relative == Path::new(".git/index") {
        return undated_index(path).map(Some);
    }
    let compiled = path.extension().is_some_and(|extension| extension == "pyc");
    Ok(if compiled { dated_byte_code(path, seconds)? } else { None })
}

/// Byte code that names its source's time at the end of its first twelve bytes; none when that is not how it goes
/// stale, or when it is stale.
fn dated_byte_code(path: &Path, seconds: i64) -> std::io::Result<Option<Vec<u8>>> {
    let Some(source) = source_of(path) else { return Ok(None) };
    let Ok(modified) = source.symlink_metadata().map(|metadata| metadata.mtime()) else { return Ok(None) };
    let mut bytes = fs_err::read(path)?;
    // The low half of the seconds, as the interpreter compares it.
    let stamp = |seconds: i64| (seconds as u32).to_le_bytes();
    if bytes.get(4..12) != Some([[0; 4], stamp(modified)].concat().as_slice()) {
        return Ok(None);
    }
    bytes[8..12].copy_from_slice(&stamp(seconds));
    Ok(Some(bytes))
}

/// `a/b.py` of `a/__pycache__/b.cpython-312.pyc`.
fn source_of(path: &Path) -> Option<std::path::PathBuf> {
    let folder = path.parent().filter(|folder| folder.ends_with("__pycache__"))?;
    let name = path.file_name()?.to_str()?.split_once('.')?.0;
    Some(folder.parent()?.join(format!("{name}.py")))
}

/// An index that knows nothing of the files on disk but their sizes: git compares their contents.
fn undated_index(path: &Path) -> std::io::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("index");
    let written = git2::Index::open(path).and_then(|old| {
        let mut new = git2::Index::open(&copy)?;
        let never = git2::IndexTime::new(0, 0);
        for entry in old.iter() {
            new.add(&git2::IndexEntry {
                ctime: never,
                mtime: never,
                dev: 0,
                ino: 0,
                uid: 0,
                gid: 0,
                ..entry
            })?;
        }
        new.write()
    });
    written.map_err(std::io::Error::other)?;
    fs_err::read(&copy)
}

pub(super) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::harness("the engine's archive of the base image cannot be read").with_source(error)
}

/// The archive's `manifest.json`.
pub(super) fn manifest(file: impl Read) -> std::io::Result<Value> {
    let mut lists = lists(file)?;
    lists.remove(LISTS[0]).ok_or_else(|| refused(format!("the archive has no {}", LISTS[0])))
}

/// What an archive may name its images in: as all engines write it, as old ones did, and as OCI does.
const LISTS: [&str; 3] = ["manifest.json", "repositories", "index.json"];
/// Bytes that one of these may have.
const MOST_OF_A_LIST: u64 = 16 << 20;

fn refused(words: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, words)
}

/// The lists of an archive by name. Engines unpack an archive before they read it: what could be unpacked over one of
/// them, or stand in for it, is refused.
fn lists(file: impl Read) -> std::io::Result<BTreeMap<&'static str, Value>> {
    let named =
        |path: &Path| LISTS.into_iter().find(|name| path.file_name().is_some_and(|last| last == *name));
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(file).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if entry.link_name()?.is_some_and(|target| named(&target).is_some()) {
            return Err(refused(format!("{} leads to a list of images", path.display())));
        }
        let Some(name) = named(&path) else { continue };
        let is_plain = entry.header().entry_type().is_file() && entry.size() <= MOST_OF_A_LIST;
        if !is_plain || path.strip_prefix(".").unwrap_or(&path) != Path::new(name) {
            return Err(refused(format!("{} is not a plain list of images", path.display())));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if found.insert(name, serde_json::from_slice(&bytes).map_err(std::io::Error::other)?).is_some() {
            return Err(refused(format!("the archive has {name} twice")));
        }
    }
    Ok(found)
}

/// Tags that an archive holds.
///
/// # Errors
/// It is not an archive of images, or names one that is not gistmill's: loading it would move that tag.
pub fn tags(file: impl Read) -> std::io::Result<Vec<String>> {
    let lists = lists(file)?;
    let manifest = lists.get(LISTS[0]).ok_or_else(|| refused(format!("the archive has no {}", LISTS[0])))?;
    let images = manifest.as_array().into_iter().flatten();
    let tags = images.flat_map(|image| image["RepoTags"].as_array().into_iter().flatten());
    let tags: Vec<String> = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
    let old = lists.get(LISTS[1]).and_then(Value::as_object).into_iter().flatten();
    let index = lists.get(LISTS[2]).and_then(|index| index["manifests"].as_array()).into_iter().flatten();
    let oci = index.flat_map(|one| {
        let names = &one["annotations"];
        // The second may be a tag alone, which names no image.
        let tag_or_name = names["org.opencontainers.image.ref.name"].as_str();
        let name = tag_or_name.filter(|name| name.contains(['/', ':', '@']));
        [names["io.containerd.image.name"].as_str(), name].into_iter().flatten()
    });
    let named = tags.iter().map(String::as_str).chain(old.map(|(name, _)| name.as_str())).chain(oci);
    let other = named.into_iter().find(|name| !is_own(name)).map(str::to_owned);
    match other {
        Some(other) => Err(refused(format!("it names {other}, and images of gistmill alone are loaded"))),
        None => Ok(tags),
    }
}

/// Whether a tag is one of gistmill's, as engines spell it.
pub(super) fn is_own(tag: &str) -> bool {
    let tag = ["localhost/", "docker.io/"].iter().find_map(|host| tag.strip_prefix(host)).unwrap_or(tag);
    tag.starts_with("gistmill/")
}

/// Puts layers on top of a base, of which an inspection tells what it consists of. Gives the archive, and the SHA-256
/// of the image's configuration: its id. Without the base's own archive the base's layers are only named, which is
/// enough for an engine that has them and looks there first.
///
/// # Errors
/// An archive that cannot be read; IO errors.
pub fn assemble(
    base: &Value,
    archive: Option<&std::fs::File>,
    layers: &Layers,
    tag: &str,
    created: &str,
    labels: &BTreeMap<String, String>,
) -> Result<(std::fs::File, String)> {
    let config = configuration(base, layers, created, labels);
    let config = serde_json::to_vec(&config).map_err(unreadable)?;
    let digest = hex::encode(Sha256::digest(&config));
    let mut out = tar::Builder::new(std::io::BufWriter::new(tempfile::tempfile()?));
    let mut names: Vec<String> = match archive {
        Some(mut archive) => {
            archive.seek(SeekFrom::Start(0))?;
            let manifest = manifest(archive).map_err(unreadable)?;
            let listed = manifest[0]["Layers"].as_array().into_iter().flatten();
            let names: Vec<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
            archive.seek(SeekFrom::Start(0))?;
            copy_layers(archive, &names, &mut out).map_err(unreadable)?;
            names
        }
        None => (0..base_layers(base).len()).map(|number| format!("base-{number}/layer.tar")).collect(),
    };
    for layer in &layers.0 {
        let name = format!("{}/layer.tar", layer.digest);
        let mut header = header(0o644, 0, 0);
        header.set_size(layer.bytes);
        let mut file = layer.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        out.append_data(&mut header, &name, file)?;
        names.push(name);
    }
    let config_name = format!("{digest}.json");
    let manifest = json!([{"Config": config_name, "RepoTags": [tag], "Layers": names}]).to_string();
    for (name, bytes) in [(config_name.as_str(), config.as_slice()), ("manifest.json", manifest.as_bytes())] {
        let mut header = header(0o644, 0, 0);
        header.set_size(bytes.len() as u64);
        out.append_data(&mut header, name, bytes)?;
    }
    let mut file = out.into_inner()?.into_inner().map_err(|error| Error::from(error.into_error()))?;
    file.seek(SeekFrom::Start(0))?;
    Ok((file, digest))
}

/// Digests of the base's layers.
fn base_layers(base: &Value) -> Vec<Value> {
    base["RootFS"]["Layers"].as_array().cloned().unwrap_or_default()
}

/// Copies the base's layers. Old engines make the second of two equal layers a link to the first.
fn copy_layers(
    base: &std::fs::File,
    names: &[String],
    out: &mut tar::Builder<std::io::BufWriter<std::fs::File>>,
) -> std::io::Result<()> {
    let wanted: BTreeSet<&Path> = names.iter().map(Path::new).collect();
    let mut archive = tar::Archive::new(std::io::BufReader::new(base));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if !wanted.contains(path.as_path()) {
            continue;
        }
        let mut header = entry.header().clone();
        match entry.link_name()? {
            Some(target) => out.append_link(&mut header, &path, target)?,
            None => out.append_data(&mut header, &path, &mut entry)?,
        }
    }
    Ok(())
}

/// The image's configuration: the base's system, the contract's settings.
fn configuration(base: &Value, layers: &Layers, created: &str, labels: &BTreeMap<String, String>) -> Value {
    let of_base = base["Config"]["Env"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let old_path = of_base.clone().find_map(|one| one.strip_prefix("PATH="));
    let path = old_path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let mut env: Vec<String> = of_base.filter(|one| !one.starts_with("PATH=")).map(str::to_owned).collect();
    env.insert(0, format!("PATH=/{VENV}/bin:{path}"));
    let mut digests = base_layers(base);
    let mut history: Vec<Value> = digests.iter().map(|_| json!({"created_by": "base"})).collect();
    digests.extend(layers.0.iter().map(|layer| json!(format!("sha256:{}", layer.digest))));
    history.extend(layers.0.iter().map(|layer| json!({"created": created, "created_by": layer.history})));
    let mut config = json!({
        "architecture": base["Architecture"],
        "os": base["Os"],
        "created": created,
        "config": {
            "Env": env,
            "Cmd": ["bash"],
            "WorkingDir": format!("/{TREE}"),
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": history,
    });
    if let Some(variant) = base["Variant"].as_str().filter(|variant| !variant.is_empty()) {
        config["variant"] = json!(variant);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_entry(file: impl Read, wanted: &str) -> std::io::Result<Vec<u8>> {
        let mut archive = tar::Archive::new(file);
        for entry in archive.entries()? {
            let mut entry = entry?;
            if entry.path()?.as_ref() == Path::new(wanted) {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                return Ok(bytes);
            }
        }
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, format!("the archive has no {wanted}")))
    }

    /// What an engine says about a base.
    fn inspected() -> Value {
        json!({
            "Architecture": "amd64", "Os": "linux", "Variant": "",
            "Config": {"Env": ["PATH=/bin", "LANG=C.UTF-8"], "Entrypoint": ["/x"], "Labels": {"of": "base"}},
            "RootFS": {"Type": "layers", "Layers": ["sha256:1", "sha256:1"]},
        })
    }

    /// A base as an old engine saves it, with a layer that appears twice.
    fn base() -> std::fs::File {
        let mut out = tar::Builder::new(tempfile::tempfile().unwrap());
        let manifest =
            json!([{"Config": "c.json", "RepoTags": null, "Layers": ["1/layer.tar", "2/layer.tar"]}]);
        let mut put = |name: &str, text: &str| {
            let mut header = header(0o644, 0, 0);
            header.set_size(text.len() as u64);
            out.append_data(&mut header, name, text.as_bytes()).unwrap();
        };
        put("1/layer.tar", "layer");
        put("1/json", "{}");
        put("c.json", "{}");
        put("manifest.json", &manifest.to_string());
        let mut link = header(0o777, 0, 0);
        link.set_entry_type(tar::EntryType::Symlink);
        out.append_link(&mut link, "2/layer.tar", "../1/layer.tar").unwrap();
        let mut file = out.into_inner().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn folders() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("venv/bin")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/python3", folder.path().join("venv/bin/python")).unwrap();
        fs_err::create_dir_all(folder.path().join("tree")).unwrap();
        fs_err::write(folder.path().join("tree/a.py"), "x = 1\n").unwrap();
        folder
    }

    #[test]
    fn the_same_files_give_the_same_image() {
        let folder = folders();
        let id = |archive: Option<&std::fs::File>| {
            let layers = Layers::new(&folder.path().join("venv"), &folder.path().join("tree"), 7).unwrap();
            let labels = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
            assemble(&inspected(), archive, &layers, "gistmill/y:1", "2026-01-01T00:00:00Z", &labels).unwrap()
        };
        let ((mut file, one), (mut thin, other)) = (id(Some(&base())), id(None));
        assert_eq!(one, other, "with and without the base's layers");
        thin.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(super::manifest(&thin).unwrap()[0]["Layers"].as_array().unwrap().len(), 4);
        assert!(read_entry(&file, "1/layer.tar").is_ok());
        file.seek(SeekFrom::Start(0)).unwrap();
        let manifest = manifest(&file).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["gistmill/y:1"]));
        assert_eq!(manifest[0]["Layers"].as_array().unwrap().len(), 4);
        file.seek(SeekFrom::Start(0)).unwrap();
        let config: Value =
            serde_json::from_slice(&read_entry(&file, &format!("{one}.json")).unwrap()).unwrap();
        assert_eq!(config["config"]["Env"], json!(["PATH=/opt/venv/bin:/bin", "LANG=C.UTF-8"]));
        assert_eq!(config["config"]["Entrypoint"], Value::Null);
        assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 4);
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(tags(&file).unwrap(), ["gistmill/y:1"]);
    }

    /// A tree and its byte code, made at some time.
    fn made_at(seconds: i64) -> tempfile::TempDir {
        let folder = folders();
        let tree = folder.path().join("tree");
        let source = tree.join("a.py");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(seconds).unwrap());
        std::fs::File::open(&source).unwrap().set_modified(time).unwrap();
        fs_err::create_dir_all(tree.join("__pycache__")).unwrap();
        let stamp = u32::try_from(seconds).unwrap().to_le_bytes();
        let code = [b"\xa7\r\r\n".as_slice(), &[0; 4], &stamp, &[6, 0, 0, 0], b"code"].concat();
        fs_err::write(tree.join("__pycache__/a.cpython-311.pyc"), code).unwrap();
        // Byte code that goes by a hash, and one without a source, say nothing about times.
        fs_err::write(tree.join("__pycache__/b.cpython-311.pyc"), b"\xa7\r\r\n\x03\0\0\0hashhash").unwrap();
        let repository = git2::Repository::init(&tree).unwrap();
        let mut index = repository.index().unwrap();
        index.add_path(Path::new("a.py")).unwrap();
        index.write().unwrap();
        folder
    }

    #[test]
    fn when_the_files_were_made_changes_nothing() {
        let digests = |seconds| {
            let folder = made_at(seconds);
            let layers = Layers::new(&folder.path().join("venv"), &folder.path().join("tree"), 7).unwrap();
            layers.0.iter().map(|layer| layer.digest.clone()).collect::<Vec<_>>()
        };
        assert_eq!(digests(1_000_000_000), digests(1_100_000_000));
        let folder = made_at(1_000_000_000);
        let tree = folder.path().join("tree");
        let code = |name: &str| dated_byte_code(&tree.join("__pycache__").join(name), 7).unwrap();
        assert_eq!(code("a.cpython-311.pyc").unwrap()[8..12], [7, 0, 0, 0]);
        assert_eq!(code("b.cpython-311.pyc"), None);
        fs_err::write(tree.join("a.py"), "x = 22\n").unwrap();
        assert_eq!(code("a.cpython-311.pyc"), None, "it is stale");
        let index = undated_index(&tree.join(".git/index")).unwrap();
        fs_err::write(folder.path().join("index"), index).unwrap();
        let index = git2::Index::open(&folder.path().join("index")).unwrap();
        let entry = index.get_path(Path::new("a.py"), 0).unwrap();
        assert_eq!((entry.mtime.seconds(), entry.ino, entry.file_size), (0, 0, 6));
    }

    #[test]
    fn what_is_no_archive_is_told() {
        assert!(tags(b"nothing".as_slice()).is_err());
    }

    /// What [`tags`] says of an archive with these files, in order; one whose text begins with `->` is a link.
    fn said(files: &[(&str, &str)]) -> std::result::Result<Vec<String>, String> {
        let mut out = tar::Builder::new(Vec::new());
        for (name, text) in files {
            let mut header = header(0o644, 0, 0);
            if let Some(target) = text.strip_prefix("->") {
                header.set_entry_type(tar::EntryType::Symlink);
                out.append_link(&mut header, name, target).unwrap();
            } else {
                header.set_size(text.len() as u64);
                out.append_data(&mut header, name, text.as_bytes()).unwrap();
            }
        }
        tags(out.into_inner().unwrap().as_slice()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_archive_moves_no_tag_but_those_of_gistmill() {
        const OTHER: &str = r#"[{"RepoTags": ["gistmill/a__b:1", "python:3.12"]}]"#;
        let own = ("manifest.json", r#"[{"RepoTags": ["gistmill/a__b:1"]}]"#);
        let index =
            r#"{"manifests": [{"annotations": {"io.containerd.image.name": "docker.io/library/python:3"}}]}"#;
        assert_eq!(said(&[own]).unwrap(), ["gistmill/a__b:1"]);
        let old = ("repositories", r#"{"gistmill/a__b": {"1": "id"}}"#);
        assert_eq!(said(&[own, old]).unwrap(), ["gistmill/a__b:1"]);
        let long = " ".repeat(usize::try_from(MOST_OF_A_LIST).unwrap() + 1);
        let named =
            r#"{"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "python:3.12"}}]}"#;
        let tagged = r#"{"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "1"}}]}"#;
        assert_eq!(said(&[own, ("index.json", tagged)]).unwrap(), ["gistmill/a__b:1"]);
        let cases: [(&[(&str, &str)], &str); 10] = [
            (&[own, ("index.json", named)], "python:3.12"),
            (&[("manifest.json", OTHER)], "python:3.12"),
            (&[own, ("manifest.json", OTHER)], "twice"),
            (&[own, ("./manifest.json", OTHER)], "twice"),
            (&[own, ("here/manifest.json", OTHER)], "not a plain list"),
            (&[("x", OTHER), ("manifest.json", "->x")], "not a plain list"),
            (&[own, ("x", "->manifest.json")], "leads to"),
            (&[own, ("repositories", r#"{"python": {"3.12": "id"}}"#)], "python"),
            (&[own, ("index.json", index)], "docker.io/library/python:3"),
            (&[("manifest.json", &long)], "not a plain list"),
        ];
        for (files, why) in cases {
            let words = said(files).unwrap_err();
            assert!(words.contains(why), "{words}");
        }
    }
}
