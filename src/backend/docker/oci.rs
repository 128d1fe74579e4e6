//! Archives of images as OCI lays them out, made of what an engine saves: a description, and files by their hashes. The list of
//! old archives goes along, so that every engine loads them, with the same id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::archive::{Hashing, header, manifest, unreadable};
use crate::error::Result;

/// Bytes that the configuration of an image may have.
const LARGEST_CONFIG: u64 = 16 << 20;
/// What compressed files begin with: by gzip, by zstd, by bzip2 and xz.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const OTHERS: [&[u8]; 2] = [b"BZh", &[0xfd, b'7', b'z', b'X', b'Z', 0]];

/// A file of the archive that goes by its hash.
struct Blob {
    file: File,
    hash: String,
    bytes: u64,
}

impl Blob {
    /// What `fill` writes.
    fn new(fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<Self> {
        let mut writer = Hashing { inner: tempfile::tempfile()?, hash: Sha256::new(), bytes: 0 };
        fill(&mut writer)?;
        let Hashing { inner: file, hash, bytes } = writer;
        Ok(Blob { file, hash: hex::encode(hash.finalize()), bytes })
    }

    fn name(&self) -> String {
        format!("blobs/sha256/{}", self.hash)
    }

    fn described(&self, kind: &str) -> Value {
        json!({ "mediaType": kind, "digest": format!("sha256:{}", self.hash), "size": self.bytes })
    }
}

/// What an engine saved of one image.
struct Saved {
    config: Blob,
    /// Bottom first; equal ones are there once.
    layers: Vec<PathBuf>,
    blobs: BTreeMap<PathBuf, Blob>,
}

/// Writes the archive of an image that an engine saved under a tag.
///
/// # Errors
/// The engine's archive cannot be read; IO errors.
pub(super) fn write(saved: &File, tag: &str, out: impl Write) -> Result<()> {
    let saved = read(saved).map_err(unreadable)?;
    let layer = |path: &PathBuf| saved.blobs[path].described("application/vnd.oci.image.layer.v1.tar+gzip");
    let description = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": saved.config.described("application/vnd.oci.image.config.v1+json"),
        "layers": saved.layers.iter().map(layer).collect::<Vec<_>>(),
    });
    let description = Blob::new(|file| file.write_all(description.to_string().as_bytes()))?;
    let mut entry = description.described("application/vnd.oci.image.manifest.v1+json");
    entry["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/{tag}"),
        "org.opencontainers.image.ref.name": tag,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let names: Vec<String> = saved.layers.iter().map(|path| saved.blobs[path].name()).collect();
    let list = json!([{ "Config": saved.config.name(), "RepoTags": [tag], "Layers": names }]);
    let mut archive = tar::Builder::new(out);
    let text = |archive: &mut tar::Builder<_>, name: &str, text: String| {
        put(archive, name, text.len() as u64, text.as_bytes())
    };
    text(&mut archive, "oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let mut written = BTreeSet::new();
    for blob in [&saved.config, &description].into_iter().chain(saved.blobs.values()) {
        if written.insert(&blob.hash) {
            put(&mut archive, &blob.name(), blob.bytes, at_start(&blob.file)?)?;
        }
    }
    text(&mut archive, "index.json", index.to_string())?;
    text(&mut archive, "manifest.json", list.to_string())?;
    archive.into_inner()?.flush()?;
    Ok(())
}

fn put(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    bytes: u64,
    from: impl Read,
) -> std::io::Result<()> {
    let mut header = header(0o644, 0, 0);
    header.set_size(bytes);
    archive.append_data(&mut header, name, from)
}

fn at_start(mut file: &File) -> std::io::Result<&File> {
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn read(saved: &File) -> std::io::Result<Saved> {
    let list = manifest(at_start(saved)?)?;
    let missing =
        |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, format!("it has no {what}"));
    let named = list[0]["Layers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named: Vec<PathBuf> = named.map(PathBuf::from).collect();
    let config = Path::new(list[0]["Config"].as_str().ok_or_else(|| missing("configuration"))?);
    // Old engines make the second of two equal layers a link to the first.
    let mut links = BTreeMap::new();
    for entry in tar::Archive::new(BufReader::new(at_start(saved)?)).entries()? {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        if let Some(target) = entry.link_name()? {
            let folder = path.parent().filter(|_| !entry.header().entry_type().is_hard_link());
            links.insert(path.clone(), plain(&folder.unwrap_or(Path::new("")).join(target)));
        }
    }
    let layers: Vec<PathBuf> =
        named.into_iter().map(|path| links.get(&path).cloned().unwrap_or(path)).collect();
    let mut found = None;
    let mut blobs = BTreeMap::new();
    for entry in tar::Archive::new(BufReader::new(at_start(saved)?)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if !entry.header().entry_type().is_file() {
            continue;
        }
        if path == config {
            let mut bytes = Vec::new();
            entry.by_ref().take(LARGEST_CONFIG).read_to_end(&mut bytes)?;
            found = Some(Blob::new(|file| file.write_all(&bytes))?);
        } else if layers.contains(&path) && !blobs.contains_key(&path) {
            blobs.insert(path, Blob::new(|file| pack(&mut entry, file))?);
        }
    }
    if let Some(path) = layers.iter().find(|path| !blobs.contains_key(*path)) {
        return Err(missing(&path.to_string_lossy()));
    }
    Ok(Saved { config: found.ok_or_else(|| missing("configuration"))?, layers, blobs })
}

/// A layer, compressed as its media type says, which every engine reads: without a time, so that the same one gives the same
/// bytes. What is so already stays; engines that keep images as they were pulled also have layers compressed by zstd.
///
/// # Errors
/// A layer compressed in another way. IO errors.
fn pack(layer: &mut impl Read, out: &mut dyn Write) -> std::io::Result<()> {
    let mut layer = BufReader::new(layer);
    let start = layer.fill_buf()?;
    if start.starts_with(GZIP) {
        return std::io::copy(&mut layer, out).map(drop);
    }
    if OTHERS.iter().any(|other| start.starts_with(other)) {
        let why = "a layer is compressed by neither gzip nor zstd";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
    }
    let is_zstd = start.starts_with(ZSTD);
    let mut packer = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    if is_zstd {
        std::io::copy(&mut zstd::Decoder::with_buffer(layer)?, &mut packer)?;
    } else {
        std::io::copy(&mut layer, &mut packer)?;
    }
    packer.finish().map(drop)
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::docker::archive::tags;

    /// As an old engine saves an image, with a layer that appears twice.
    fn saved<B: AsRef<[u8]>>(files: &[(&str, B)]) -> File {
        let mut out = tar::Builder::new(tempfile::tempfile().unwrap());
        for (name, bytes) in files {
            let bytes = bytes.as_ref();
            match bytes.strip_prefix(b"->") {
                None => put(&mut out, name, bytes.len() as u64, bytes).unwrap(),
                Some(target) => {
                    let mut link = header(0o777, 0, 0);
                    link.set_entry_type(tar::EntryType::Symlink);
                    out.append_link(&mut link, name, std::str::from_utf8(target).unwrap()).unwrap();
                }
            }
        }
        out.into_inner().unwrap()
    }

    const LIST: &str = r#"[{"Config": "c.json", "RepoTags": null, "Layers": ["1/layer.tar", "2/layer.tar", "3/layer.tar"]}]"#;
    const FILES: [(&str, &str); 6] = [
        ("1/layer.tar", "layer"),
        ("2/layer.tar", "->../1/layer.tar"),
        ("3/layer.tar", "other"),
        ("1/json", "{}"),
        ("c.json", "{\"rootfs\": {}}"),
        ("manifest.json", LIST),
    ];

    fn contents(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries().unwrap() {
            let (mut entry, mut bytes) = (entry.unwrap(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            assert!(all.insert(name.clone(), bytes).is_none(), "{name} twice");
        }
        all
    }

    #[test]
    fn every_file_goes_by_its_hash_and_the_configuration_stays_as_it_is() {
        let mut out = Vec::new();
        write(&saved(&FILES), "gistmill/a__b:1", &mut out).unwrap();
        assert_eq!(tags(out.as_slice()).unwrap(), ["gistmill/a__b:1"]);
        let all = contents(&out);
        for (name, bytes) in &all {
            let Some(hash) = name.strip_prefix("blobs/sha256/") else { continue };
            assert_eq!(hash, hex::encode(Sha256::digest(bytes)), "{name}");
        }
        let of = |value: &Value| -> Vec<u8> {
            let hash = value["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = all[&format!("blobs/sha256/{hash}")].clone();
            assert_eq!(value["size"], bytes.len());
            bytes
        };
        let index: Value = serde_json::from_slice(&all["index.json"]).unwrap();
        let description: Value = serde_json::from_slice(&of(&index["manifests"][0])).unwrap();
        assert_eq!(of(&description["config"]), FILES[4].1.as_bytes());
        let layers: Vec<String> = description["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|layer| std::io::read_to_string(flate2::read::GzDecoder::new(&*of(layer))).unwrap())
            .collect();
        assert_eq!(layers, ["layer", "layer", "other"]);
        assert_eq!(all.len(), 7, "equal layers are there once: {:?}", all.keys());
        let mut again = Vec::new();
        write(&saved(&FILES), "gistmill/a__b:1", &mut again).unwrap();
        assert_eq!(out, again);
    }

    #[test]
    fn a_layer_is_written_as_its_media_type_says_however_it_was_compressed() {
        let packed = |bytes: &[u8]| -> std::io::Result<Vec<u8>> {
            let mut out = Vec::new();
            pack(&mut &*bytes, &mut out).map(|()| out)
        };
        let plain = packed(b"layer").unwrap();
        let two_frames =
            [zstd::encode_all(&b"lay"[..], 3).unwrap(), zstd::encode_all(&b"er"[..], 3).unwrap()].concat();
        assert_eq!(packed(&two_frames).unwrap(), plain);
        assert_eq!(packed(&plain).unwrap(), plain);
        let mut text = String::new();
        flate2::read::GzDecoder::new(plain.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "layer");
        assert!(packed(b"BZh91AY").unwrap_err().to_string().contains("neither gzip nor zstd"));
        assert!(packed(&two_frames[..8]).is_err(), "cut off");
        let list = r#"[{"Config": "c.json", "RepoTags": null, "Layers": ["1", "2"]}]"#;
        let files: [(&str, &[u8]); 4] =
            [("1", b"layer"), ("2", &two_frames), ("c.json", b"{}"), ("manifest.json", list.as_bytes())];
        let mut out = Vec::new();
        write(&saved(&files), "gistmill/a__b:1", &mut out).unwrap();
        assert_eq!(contents(&out).len(), 6, "the same layer in two forms is there once");
    }

    #[test]
    fn what_an_archive_lacks_is_named() {
        let error = write(&saved(&FILES[1..]), "gistmill/a__b:1", &mut Vec::new()).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(source.contains("1/layer.tar"), "{error}: {source}");
    }
}
