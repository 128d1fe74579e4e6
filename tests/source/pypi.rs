//! `pypi` sources: against an index that answers from memory and, when asked for, the real one.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gistmill::config::SourceSpec;
use gistmill::error::Result;
use gistmill::record::id::sha256_hex;
use gistmill::record::source::Origin;
use gistmill::source::{IndexTool, UvIndex};

use super::sample::{Desk, files};
use super::server::Server;

/// Answers with one text, and counts how often it was asked.
struct Fake {
    answer: String,
    asked: Cell<usize>,
}

impl IndexTool for Fake {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        assert_eq!(requirement, "demo==1.0");
        self.asked.set(self.asked.get() + 1);
        Ok(self.answer.clone())
    }
}

fn fake(address: &str, sha256: &str) -> Fake {
    let answer = format!(
        "lock-version = \"1.0\"\n[[packages]]\nname = \"demo\"\nversion = \"1.0\"\nsdist = {{ url = \"{address}\", \
         upload-time = 2024-01-02T03:04:05.678Z, hashes = {{ sha256 = \"{sha256}\" }} }}\n"
    );
    Fake { answer, asked: Cell::new(0) }
}

fn spec(project: &str, version: &str, sha256: &str) -> SourceSpec {
    SourceSpec::Pypi { project: project.to_owned(), version: version.to_owned(), sha256: sha256.to_owned() }
}

/// Writes `demo-1.0.tar.gz` and gives its hash.
fn sdist(folder: &Path) -> String {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in [
        ("demo-1.0/PKG-INFO", "Metadata-Version: 2.4\nName: demo\nLicense-Expression: MIT\n"),
        ("demo-1.0/demo/__init__.py", ""),
    ] {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    let bytes = builder.into_inner().unwrap().finish().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::File::create(folder.join("demo-1.0.tar.gz")).unwrap().write_all(&bytes).unwrap();
    sha256_hex(&bytes)
}

#[test]
fn a_release_is_fetched_once_and_then_found() {
    let desk = Desk::new();
    let hash = sdist(&desk.path("files"));
    let server = Server::files(&desk.path("files"));
    let index = fake(&server.url("demo-1.0.tar.gz"), &hash);
    let pinned = desk.pin_with(spec("demo", "1.0", &hash), &index).unwrap();
    assert_eq!(files(&pinned.tree), ["PKG-INFO", "demo/__init__.py"]);
    assert_eq!(pinned.commit, format!("sha256:{hash}"));
    assert_eq!(pinned.pinned_at, "2024-01-02T03:04:05Z");
    assert_eq!(
        (pinned.license.as_deref(), pinned.license_source.as_deref()),
        (Some("MIT"), Some("PKG-INFO"))
    );
    let connections = server.connections();
    assert_eq!(desk.pin_with(spec("demo", "1.0", &hash.to_uppercase()), &index).unwrap(), pinned);
    assert_eq!((index.asked.get(), server.connections()), (1, connections), "nobody is asked twice");
    let Origin::Pypi { sha256, .. } = &pinned.origin else { panic!("{:?}", pinned.origin) };
    assert_eq!(sha256, &hash);
}

#[test]
fn a_file_of_this_machine_works_as_well() {
    let desk = Desk::new();
    let hash = sdist(&desk.path("files"));
    let index = fake(&format!("file://{}", desk.path("files/demo-1.0.tar.gz").display()), &hash);
    desk.pin_with(spec("demo", "1.0", &hash), &index).unwrap();
}

#[test]
fn another_hash_is_refused_with_both() {
    let desk = Desk::new();
    let hash = sdist(&desk.path("files"));
    let server = Server::files(&desk.path("files"));
    let wrong = "0".repeat(64);
    let address = server.url("demo-1.0.tar.gz");
    let error = desk.pin_with(spec("demo", "1.0", &wrong), &fake(&address, &hash)).unwrap_err();
    assert!(error.detail().unwrap().contains(&wrong) && error.detail().unwrap().contains(&hash));
    assert_eq!(server.connections(), 0, "known before the download");
    let error = desk.pin_with(spec("demo", "1.0", &wrong), &fake(&address, &wrong)).unwrap_err();
    assert!(error.to_string().contains("the downloaded file"), "{error}");
    assert!(error.detail().unwrap().contains(&hash));
}

#[test]
fn a_failing_download_names_the_address_without_its_login() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("files")).unwrap();
    let server = Server::files(&desk.path("files"));
    let hash = "0".repeat(64);
    let address = server.url_with("me:s3cr3t", "demo-1.0.tar.gz");
    let error = desk.pin_with(spec("demo", "1.0", &hash), &fake(&address, &hash)).unwrap_err();
    assert!(
        error.to_string().contains(&server.url("demo-1.0.tar.gz")) && error.to_string().contains("404"),
        "{error}"
    );
    assert!(!format!("{error:?} {:?}", desk.said.borrow()).contains("s3cr3t"));
}

/// The uv on the PATH.
fn real_index() -> UvIndex {
    UvIndex { uv: PathBuf::from("uv") }
}

#[test]
#[ignore = "needs uv on PATH, and the package index in use"]
fn real_releases_are_fetched() {
    let index = real_index();
    let desk = Desk::new();
    for (project, version, sha256, license) in [
        (
            "flask",
            "3.1.3",
            "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb",
            "BSD-3-Clause",
        ),
        (
            "requests",
            "2.34.2",
            "f288924cae4e29463698d6d60bc6a4da69c89185ad1e0bcc4104f584e960b9ed",
            "Apache-2.0",
        ),
    ] {
        let pinned = desk.pin_with(spec(project, version, sha256), &index).unwrap();
        assert_eq!(pinned.license.as_deref(), Some(license), "{project}");
        assert!(files(&pinned.tree).iter().any(|name| name.starts_with("tests/")));
        let offline = UvIndex { uv: PathBuf::from("/nowhere/uv") };
        assert_eq!(desk.pin_with(spec(project, version, sha256), &offline).unwrap(), pinned);
    }
}

#[test]
#[ignore = "needs uv on PATH, and the package index in use"]
fn real_releases_that_cannot_be_had_are_explained() {
    let index = real_index();
    for (requirement, expected) in [
        ("flask==99.1", "cannot give flask==99.1"),
        ("requests==2.32.0", "requests==2.32.0 is yanked"),
        ("no-such-project-gistmill-test==1", "cannot give"),
    ] {
        let error = index.lock_entry(requirement).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.detail().is_some() && error.hint().is_some());
    }
    let desk = Desk::new();
    let error = desk.pin_with(spec("tensorflow", "2.15.0", &"0".repeat(64)), &index).unwrap_err();
    assert!(error.to_string().contains("has no source distribution"), "{error}");
}
