//! An environment that an image has already: only the tree is made.

use std::collections::BTreeMap;
use std::path::Path;

use super::dockerfile;
use super::record::{self, Recipe};
use crate::config;
use crate::environment::plan::lock::Lock;
use crate::environment::steps::tools::{BaseImage, Tools};
use crate::environment::steps::tree;
use crate::error::{Error, Result};
use crate::record::environment::Built;
use crate::record::id::hash_parts;
use crate::record::source::Pinned;

/// What the record says of how it came to be.
const WHY: &str = "what runs jobs in the image: scripts of the configuration run the suite";

/// What decides about it.
pub(in crate::environment) struct Bare<'a> {
    pub pinned: &'a Pinned,
    pub repo: &'a config::Repo,
    pub tools: &'a Tools,
    pub image: &'a BaseImage,
}

impl Bare<'_> {
    /// Content address.
    pub(in crate::environment) fn key(&self, version: &str) -> String {
        let Pinned { tree_sha256, pinned_at, commit, .. } = self.pinned;
        let env = serde_json::json!(self.repo.env).to_string();
        hash_parts(&["bare", version, tree_sha256, pinned_at, commit, &env, &self.image.id])
    }

    /// Makes it in a new folder.
    ///
    /// # Errors
    /// IO errors; a machine whose image has no Python.
    pub(in crate::environment) fn make(&self, key: &str, folder: &Path) -> Result<Built> {
        let Bare { pinned, repo, tools, image } = self;
        let place = folder.join("tree");
        tree::copy(&pinned.tree, &place)?;
        let seconds = tree::seconds(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is not an RFC 3339 time", pinned.pinned_at)))?;
        let excluded = tree::EXCLUDED.map(str::to_owned);
        tree::commit(&place, &tree::list(&place)?, seconds, &excluded)?;
        fs_err::create_dir(folder.join("venv"))?;
        let python = tools.interpreters.first().ok_or_else(|| {
            Error::repository(format!("the image {} has no Python that answers", image.name))
                .with_hint("install python3 in it: gistmill's own part of a container is Python")
        })?;
        let lock = Lock::default();
        let recipe = Recipe {
            slug: pinned.slug.to_string(),
            commit: pinned.commit.clone(),
            python: python.version.clone(),
            python_reason: WHY.to_owned(),
            exclude_newer: pinned.pinned_at.clone(),
            chosen: "the image".to_owned(),
            requirements: Vec::new(),
            tree_installed: "none".to_owned(),
            members: Vec::new(),
            build_variables: BTreeMap::new(),
            env: record::published(&repo.env),
            lock_sha256: lock.sha256(),
            switched_off: Vec::new(),
            plans: Vec::new(),
            notes: Vec::new(),
            base: Some(image.name.clone()),
            system_packages: image.packages.clone(),
            made_with: BTreeMap::new(),
        };
        let title = format!("{} at {}", pinned.slug, pinned.commit);
        let text = dockerfile::bare(&title, (&image.name, &image.packages), &pinned.pinned_at, &excluded);
        record::write(&folder.join("recipe"), &recipe, (&lock, &lock), &text)?;
        Ok(Built {
            key: key.to_owned(),
            python: recipe.python,
            python_reason: recipe.python_reason,
            python_prefix: python.prefix.clone(),
            venv: folder.join("venv"),
            tree: place,
            recipe_dir: folder.join("recipe"),
            lock_sha256: recipe.lock_sha256,
            plans: Vec::new(),
            switched_off: Vec::new(),
            env: repo.env.clone(),
            tests: Vec::new(),
            notes: Vec::new(),
            guesses: Vec::new(),
            undeclared: Vec::new(),
            trial: None,
        })
    }
}
