//! Reads what an [`super::IndexTool`] answered.

use std::str::FromStr;

use pep440_rs::Version;
use serde::Deserialize;
use toml::value::Datetime;

use super::Release;
use crate::error::{Error, Result};

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    version: Option<String>,
    sdist: Option<Sdist>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sdist {
    name: Option<String>,
    url: Option<String>,
    path: Option<String>,
    upload_time: Option<Datetime>,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

/// A source distribution as the index describes it.
#[derive(Debug)]
pub(super) struct SourceDistribution {
    /// An address, `file://` included, or an absolute path.
    pub address: String,
    pub sha256: String,
    pub uploaded_at: Option<Datetime>,
    name: Option<String>,
}

impl SourceDistribution {
    /// The archive's file name.
    pub(super) fn file_name(&self) -> String {
        let address = self.address.split(['?', '#']).next().unwrap_or_default();
        self.name.clone().unwrap_or_else(|| address.rsplit('/').next().unwrap_or_default().to_owned())
    }
}

/// The one source distribution in a lock's text.
///
/// # Errors
/// When the text is not a lock, is about something else, or has no source distribution.
pub(super) fn parse(text: &str, release: &Release<'_>) -> Result<SourceDistribution> {
    let package = only_package(text, &release.requirement())?;
    if let Some(version) =
        package.version.as_deref().filter(|version| !same_version(version, release.version))
    {
        return Err(Error::repository(format!(
            "the index has {version} instead of {}",
            release.requirement()
        )));
    }
    source_distribution(&package, &release.requirement())
}

/// Version and source distribution of the one release in a lock's text, whichever it is.
///
/// # Errors
/// When the text is not a lock, is about several packages, or has no source distribution.
pub(super) fn parse_any(text: &str, project: &str) -> Result<(String, SourceDistribution)> {
    let package = only_package(text, project)?;
    let found = source_distribution(&package, project)?;
    let version = package
        .version
        .ok_or_else(|| Error::harness(format!("the answer about {project} names no version")))?;
    Ok((version, found))
}

fn only_package(text: &str, asked: &str) -> Result<Package> {
    let lock: Lock = toml::from_str(text).map_err(|error| {
        Error::harness(format!("the answer about {asked} is not a lock"))
            .with_detail(error.message().to_owned())
    })?;
    let count = lock.packages.len();
    match <[Package; 1]>::try_from(lock.packages) {
        Ok([package]) => Ok(package),
        Err(_) => Err(Error::harness(format!("the answer about {asked} has {count} packages"))),
    }
}

fn source_distribution(package: &Package, asked: &str) -> Result<SourceDistribution> {
    let sdist = package.sdist.as_ref().ok_or_else(|| {
        Error::repository(format!("{asked} has no source distribution"))
            .with_hint("name the project's repository with `git` instead")
    })?;
    let address = sdist.url.clone().or_else(|| sdist.path.clone());
    match (address, sdist.hashes.sha256.clone()) {
        (Some(address), Some(sha256)) => Ok(SourceDistribution {
            address,
            sha256,
            uploaded_at: sdist.upload_time,
            name: sdist.name.clone(),
        }),
        _ => Err(Error::repository(format!("the index gives no address or sha256 of {asked}"))),
    }
}

fn same_version(a: &str, b: &str) -> bool {
    match (Version::from_str(a), Version::from_str(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Release<'_> = Release { project: "demo", version: "1.0", sha256: "aa" };

    fn lock(packages: &str) -> String {
        format!("lock-version = \"1.0\"\n{packages}")
    }

    #[test]
    fn address_hash_and_time_are_read() {
        let text = "[[packages]]\nname = \"demo\"\nversion = \"1.0.0\"\nsdist = { url = \"https://host/demo-1.0.tar.gz#x\", \
                    upload-time = 2026-02-19T05:00:57Z, size = 1, hashes = { sha256 = \"ab\" } }";
        let found = parse(&lock(text), &RELEASE).unwrap();
        assert_eq!((found.file_name().as_str(), found.sha256.as_str()), ("demo-1.0.tar.gz", "ab"));
        assert_eq!(found.uploaded_at.unwrap().to_string(), "2026-02-19T05:00:57Z");
    }

    #[test]
    fn wheels_only_other_version_and_noise_are_told_apart() {
        for (text, expected) in [
            (lock("[[packages]]\nname = \"demo\"\nversion = \"1.0\""), "no source distribution"),
            (lock("[[packages]]\nname = \"demo\"\nversion = \"2.0\""), "has 2.0 instead of demo==1.0"),
            (lock(""), "0 packages"),
            ("oops".to_owned(), "is not a lock"),
        ] {
            let message = parse(&text, &RELEASE).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
