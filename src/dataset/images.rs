//! `images.json`: where the images of environments were pushed to. It is beside the dataset's files and not one of them: it is
//! written after them, and tied to each environment by hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Dataset;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::registry::{ImagePlace, is_digest};
use crate::store::write_json;

/// Its name.
pub(crate) const FILE: &str = "images.json";
const FORMAT: u32 = 1;
/// Largest one that is read, in bytes.
const LARGEST: u64 = 16 << 20;
const AGAIN: &str = "`gistmill image push` writes it anew; remove it to go without";

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Images {
    format_version: u32,
    name: String,
    version: String,
    /// By slug, one for each architecture.
    #[serde(rename = "images")]
    pub(crate) of: BTreeMap<RepoSlug, Vec<PushedImage>>,
}

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PushedImage {
    /// As images have it: `amd64`, `arm64`.
    pub(crate) architecture: String,
    /// Registry and path.
    pub(crate) place: String,
    pub(crate) tag: String,
    /// Of its manifest.
    pub(crate) digest: String,
    /// As the engine that pushed it calls it.
    pub(crate) image_id: String,
    /// What it was made of, as the manifest of the dataset has it.
    #[serde(flatten)]
    pub(crate) of: Link,
}

/// What an image is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) environment: String,
    pub(crate) lock_sha256: String,
    pub(crate) tree_sha256: String,
}

impl Images {
    /// Remembers an image, in place of that of the same architecture, and forgets what belongs to other environments.
    pub(crate) fn add(&mut self, slug: &RepoSlug, image: PushedImage) {
        let all = self.of.entry(slug.clone()).or_default();
        all.retain(|one| one.architecture != image.architecture && one.of == image.of);
        all.push(image);
        all.sort_by(|a, b| a.architecture.cmp(&b.architecture));
    }

    /// What was not pushed of these repositories: any image, or that of an architecture that others have.
    pub(crate) fn lacking<'s>(
        &'s self,
        slugs: &'s BTreeSet<RepoSlug>,
    ) -> Vec<(&'s RepoSlug, Option<&'s str>)> {
        let of = |slug: &'s RepoSlug| self.of.get(slug).map(Vec::as_slice).unwrap_or_default();
        let architectures: BTreeSet<&str> =
            slugs.iter().flat_map(of).map(|one| one.architecture.as_str()).collect();
        let lacks = |slug: &'s RepoSlug| -> Vec<(&'s RepoSlug, Option<&'s str>)> {
            let pushed = of(slug);
            if pushed.is_empty() {
                return vec![(slug, None)];
            }
            let missing =
                architectures.iter().filter(|name| pushed.iter().all(|one| one.architecture != **name));
            missing.map(|name| (slug, Some(*name))).collect()
        };
        slugs.iter().flat_map(lacks).collect()
    }

    /// Writes it into the folder of the dataset.
    ///
    /// # Errors
    /// IO errors with the path.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(FILE), self)
    }

    fn check(&self) -> Result<(), String> {
        if self.format_version != FORMAT {
            return Err(format!("its format is {}, and not {FORMAT}", self.format_version));
        }
        let is_word = |text: &str| {
            !text.is_empty()
                && text.len() <= 128
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        for (slug, image) in self.of.iter().flat_map(|(slug, all)| all.iter().map(move |one| (slug, one))) {
            if !is_digest(&image.digest) {
                return Err(format!("an image of {slug} has no digest"));
            }
            if !is_word(&image.tag) || !is_word(&image.architecture) {
                return Err(format!("an image of {slug} has a tag or an architecture that is not one"));
            }
            ImagePlace::parse(&image.place).map_err(|error| format!("an image of {slug}: {error}"))?;
        }
        Ok(())
    }
}

/// What images call a machine's architecture.
fn architecture_of(machine: &str) -> &str {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl PushedImage {
    /// Where it is.
    ///
    /// # Errors
    /// It was checked when it was read.
    pub(crate) fn place(&self) -> Result<ImagePlace> {
        ImagePlace::parse(&self.place)
    }
}

impl Dataset {
    /// What is known of pushed images; nothing where none were pushed.
    ///
    /// # Errors
    /// Usage errors: the file is not one that was written here.
    pub(crate) fn images(&self) -> Result<Images> {
        let none = || Images {
            format_version: FORMAT,
            name: self.manifest.name.to_string(),
            version: self.manifest.version.to_string(),
            of: BTreeMap::new(),
        };
        let Some(text) = self.folder()?.read_if_there(Path::new(FILE), LARGEST)? else { return Ok(none()) };
        let damaged = |why: String| {
            Error::usage(format!("{} is damaged: {why}", self.directory.join(FILE).display()))
                .with_hint(AGAIN)
        };
        let images: Images = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        images.check().map_err(damaged)?;
        Ok(images)
    }

    /// What an image of this repository is made of.
    ///
    /// # Errors
    /// Usage errors: the manifest says nothing about it.
    pub(crate) fn link(&self, slug: &RepoSlug) -> Result<Link> {
        let environment = self.environment(slug)?;
        let source = self.manifest.sources.get(slug.as_str());
        Ok(Link {
            environment: environment.key.clone(),
            lock_sha256: environment.lock_sha256.clone(),
            tree_sha256: source.map(|source| source.tree_sha256.clone()).unwrap_or_default(),
        })
    }

    /// The image of this repository that was pushed, of an architecture; none where none of the repository was.
    ///
    /// # Errors
    /// Usage errors: those that were pushed are of another environment, or of other architectures alone.
    pub(crate) fn pushed<'i>(
        &self,
        images: &'i Images,
        slug: &RepoSlug,
        architecture: Option<&str>,
    ) -> Result<Option<&'i PushedImage>> {
        let Some(all) = images.of.get(slug).filter(|all| !all.is_empty()) else { return Ok(None) };
        let link = self.link(slug)?;
        let refused = |why: String, hint: &str| {
            Err(Error::usage(format!("{}, {slug}: {why}", self.directory.join(FILE).display()))
                .with_hint(hint))
        };
        let ours: Vec<&PushedImage> = all.iter().filter(|one| one.of == link).collect();
        if ours.is_empty() {
            return refused(
                "the pushed images are of another environment than the dataset's".to_owned(),
                AGAIN,
            );
        }
        let own = architecture.unwrap_or_else(|| architecture_of(&self.manifest.machine.architecture));
        let found = ours.iter().find(|one| one.architecture == own);
        // Who asks for none takes the only one.
        let found = found.or_else(|| ours.first().filter(|_| architecture.is_none() && ours.len() == 1));
        if let Some(found) = found {
            return Ok(Some(found));
        }
        let names: Vec<&str> = ours.iter().map(|one| one.architecture.as_str()).collect();
        refused(
            format!("no image for {own} was pushed; there are those for {}", names.join(", ")),
            "name one of them with --architecture, or push from a machine of that kind",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    fn with_dataset(test: impl FnOnce(&Dataset, &RepoSlug)) {
        let (folder, made_up) = (tempfile::tempdir().unwrap(), MadeUp::new(&[3]));
        crate::testing::write(&folder.path().join("d"), &made_up.input()).unwrap();
        let dataset = Dataset::open(&folder.path().join("d")).unwrap();
        let slug = dataset.instances().unwrap().remove(0).slug.clone();
        test(&dataset, &slug);
    }

    fn image(dataset: &Dataset, slug: &RepoSlug, architecture: &str) -> PushedImage {
        PushedImage {
            architecture: architecture.to_owned(),
            place: "h.io/me/a".to_owned(),
            tag: format!("1-{architecture}"),
            digest: format!("sha256:{}", "a".repeat(64)),
            image_id: "sha256:1".to_owned(),
            of: dataset.link(slug).unwrap(),
        }
    }

    #[test]
    fn each_architecture_has_an_image_and_is_named_where_there_are_several() {
        with_dataset(|dataset, slug| {
            let mut images = dataset.images().unwrap();
            assert_eq!(dataset.pushed(&images, slug, None).unwrap(), None);
            images.add(slug, image(dataset, slug, "riscv64"));
            images.save(&dataset.directory).unwrap();
            let mut images = dataset.images().unwrap();
            let found = |images: &Images, asked| {
                dataset.pushed(images, slug, asked).map(|one| one.map(|one| one.architecture.clone()))
            };
            assert_eq!(found(&images, None).unwrap().as_deref(), Some("riscv64"), "the only one");
            images.add(slug, image(dataset, slug, "s390x"));
            assert_eq!(found(&images, Some("s390x")).unwrap().as_deref(), Some("s390x"));
            for asked in [None, Some("arm64")] {
                let error = found(&images, asked).unwrap_err();
                assert!(error.to_string().contains("those for riscv64, s390x"), "{error}");
            }
        });
    }

    #[test]
    fn what_was_not_pushed_is_named_by_repository_and_architecture() {
        with_dataset(|dataset, slug| {
            let (mut images, other) = (dataset.images().unwrap(), RepoSlug::new("a/other").unwrap());
            let slugs = BTreeSet::from([slug.clone(), other.clone()]);
            images.add(slug, image(dataset, slug, "amd64"));
            assert_eq!(images.lacking(&slugs), [(&other, None)]);
            images.add(&other, image(dataset, slug, "amd64"));
            images.add(&other, image(dataset, slug, "arm64"));
            assert_eq!(images.lacking(&slugs), [(slug, Some("arm64"))]);
        });
    }

    #[test]
    fn images_of_another_environment_are_refused_and_replaced() {
        with_dataset(|dataset, slug| {
            let mut images = dataset.images().unwrap();
            let mut old = image(dataset, slug, "amd64");
            old.of.lock_sha256 = "another".to_owned();
            images.add(slug, old);
            let error = dataset.pushed(&images, slug, None).unwrap_err();
            assert!(error.to_string().contains("another environment"), "{error}");
            images.add(slug, image(dataset, slug, "arm64"));
            assert_eq!(images.of[slug].len(), 1);
        });
    }

    #[test]
    fn what_was_not_written_here_is_refused() {
        with_dataset(|dataset, slug| {
            let mut images = dataset.images().unwrap();
            images.add(slug, image(dataset, slug, "amd64"));
            let good = serde_json::to_string(&images).unwrap();
            for (from, to) in [
                ("h.io/me/a", "h.io/me/$(x)"),
                ("sha256:a", "sha256:z"),
                ("1-amd64", "-v /:/x"),
                ("\"format_version\":1", "\"format_version\":9"),
            ] {
                let bad = good.replace(from, to);
                assert_ne!(bad, good, "{from}");
                fs_err::write(dataset.directory.join(FILE), bad).unwrap();
                let error = dataset.images().unwrap_err();
                assert!(error.hint().is_some_and(|hint| hint.contains("image push")), "{to}: {error}");
            }
        });
    }
}
