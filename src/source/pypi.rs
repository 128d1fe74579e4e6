//! Source distributions of a package index. Where the index is and how to log in there is the business of the tool that
//! the user has configured for it ([`IndexTool`]); this page takes the address and the hash that it gives, fetches,
//! checks and unpacks.

mod archive;
mod download;
mod lock;
mod uv;

use super::{Content, Context, Request};
use crate::beneath::archive::LARGEST;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::moment::Moment;
use crate::record::source::{Origin, Pinned};

pub(crate) use archive::unpack;
pub use uv::UvIndex;

/// Asks the package index in use about a release.
pub trait IndexTool {
    /// The text of a lock file (PEP 751) with the one package that `requirement` stands for: `name==version`, or `name`
    /// for the newest release that has a source distribution.
    ///
    /// # Errors
    /// When the index cannot be reached, has no such release, or the release is yanked.
    fn lock_entry(&self, requirement: &str) -> Result<String>;

    /// Whether git may ask an address that a repository or a dataset names: a public one, reached without any login.
    /// Gives where it leads.
    ///
    /// # Errors
    /// The repository's: it may not.
    fn public_address(&self, address: &str) -> Result<String> {
        let address = crate::redact::redact(address);
        Err(Error::repository(format!("{address} is not fetched: nothing here shows whether it is public")))
    }
}

/// A release as configured.
pub(super) struct Release<'a> {
    pub project: &'a str,
    pub version: &'a str,
    pub sha256: &'a str,
}

impl Release<'_> {
    fn requirement(&self) -> String {
        format!("{}=={}", self.project, self.version)
    }

    /// # Errors
    /// When the hash found is not the configured one.
    fn check(&self, what: &str, found: &str) -> Result<()> {
        if found.eq_ignore_ascii_case(self.sha256) {
            return Ok(());
        }
        Err(Error::repository(format!("{what} of {} has another sha256 than configured", self.requirement()))
            .with_detail(format!("configured {}\nfound      {found}", self.sha256))
            .with_hint(
                "take the hash of the source distribution (not of a wheel) from a place that you trust",
            ))
    }
}

/// Version and SHA-256 of the newest source distribution of a project.
///
/// # Errors
/// When the index cannot be reached or has none.
pub fn newest(tools: &dyn IndexTool, project: &str) -> Result<(String, String)> {
    let (version, found) = lock::parse_any(&tools.lock_entry(project)?, project)?;
    Ok((version, found.sha256))
}

/// Pins a `pypi` source.
pub(super) fn pin(
    context: &Context<'_>,
    slug: &RepoSlug,
    tools: &dyn IndexTool,
    release: &Release<'_>,
) -> Result<Pinned> {
    let origin = Origin::Pypi {
        project: release.project.to_owned(),
        version: release.version.to_owned(),
        sha256: release.sha256.to_ascii_lowercase(),
    };
    context.find_or_make(slug, Request { origin, key: Vec::new() }, |target| {
        context.say(&format!("looking up {}", release.requirement()));
        let found = lock::parse(&tools.lock_entry(&release.requirement())?, release)?;
        release.check("the index's source distribution", &found.sha256)?;
        context.say(&format!("downloading {}", found.file_name()));
        let file = download::download(&found.address, context.progress)?;
        release.check("the downloaded file", &file.sha256)?;
        let newest = archive::unpack(file.file.path(), &found.file_name(), target, LARGEST)?.newest;
        let mut notes = Vec::new();
        let uploaded = found.uploaded_at.and_then(|time| Moment::parse(&time.to_string()));
        if uploaded.is_none() {
            notes.push(
                "the index gives no upload time; the time of the newest file in the archive is taken for it"
                    .to_owned(),
            );
        }
        Ok(Content {
            commit: format!("sha256:{}", file.sha256),
            pinned_at: uploaded.map_or(newest, Moment::seconds),
            notes,
        })
    })
}
