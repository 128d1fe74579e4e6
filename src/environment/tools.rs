//! What the machine offers to build environments with. Found once, used for every repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::python::{self, Interpreter};
use super::uv::{self, Uv};
use crate::backend::docker::image::Downloads;
use crate::error::Result;
use crate::store::Cache;

/// The variable by which uv builds no source distributions.
const NO_BUILD: &str = "UV_NO_BUILD";

/// The image that environments stand on, where they are built in containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foundation {
    /// As the config names it.
    pub name: String,
    /// Packages of the distribution that were added.
    pub packages: Vec<String>,
    /// Id of the image with them.
    pub id: String,
}

/// Interpreters, uv, and the user's download settings.
#[derive(Debug)]
pub struct Tools {
    pub interpreters: Vec<Interpreter>,
    /// Variables that commands which download get, and no others.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) uv_cache: PathBuf,
    folder: PathBuf,
    uv: Mutex<Option<Uv>>,
    /// None on this machine itself.
    pub(super) foundation: Option<Foundation>,
}

impl Tools {
    /// Looks for interpreters (answers are kept in the cache). uv is looked for when it is first needed.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn find(cache: &Cache) -> Result<Self> {
        let folder = cache.dir("tools")?;
        Ok(Tools {
            interpreters: python::discover(&folder.join("interpreters.json"))?,
            variables: uv::download_variables(uv::user_variables()),
            uv_cache: cache.dir("uv")?,
            folder,
            uv: Mutex::new(None),
            foundation: None,
        })
    }

    /// The same uv and settings for environments in an image.
    ///
    /// # Errors
    /// Those of [`Tools::uv`].
    pub fn in_image(&self, interpreters: Vec<Interpreter>, foundation: Foundation) -> Result<Self> {
        Ok(Tools {
            interpreters,
            variables: self.variables.clone(),
            uv_cache: self.uv_cache.clone(),
            folder: self.folder.clone(),
            uv: Mutex::new(Some(self.uv()?)),
            foundation: Some(foundation),
        })
    }

    /// Where uv keeps its downloads.
    pub fn uv_cache(&self) -> &Path {
        &self.uv_cache
    }

    /// What installing packages of a distribution needs of the user's settings: proxies, and certificates.
    ///
    /// # Errors
    /// A certificate file that cannot be read.
    pub fn downloads(&self) -> Result<Downloads> {
        let is_proxy = |name: &str| name.to_uppercase().ends_with("_PROXY");
        let variables = self.variables.iter().filter(|(name, _)| is_proxy(name));
        let named = ["SSL_CERT_FILE", "CURL_CA_BUNDLE"].iter().find_map(|name| self.variables.get(*name));
        let certificates =
            named.map(Path::new).filter(|path| path.is_file()).map(fs_err::read).transpose()?;
        Ok(Downloads {
            variables: variables.map(|(name, value)| (name.clone(), value.clone())).collect(),
            certificates,
        })
    }

    /// uv, installed into the cache's `tools/` when the machine has none.
    ///
    /// # Errors
    /// Neither found nor installable.
    pub fn uv(&self) -> Result<Uv> {
        let mut known = self.uv.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(uv) = known.as_ref() {
            return Ok(uv.clone());
        }
        let uv = match uv::find(&self.folder) {
            Some(uv) => uv,
            None => uv::install(&self.folder, &self.interpreters)?,
        };
        Ok(known.insert(uv).clone())
    }

    /// The same, but what has no wheel is refused instead of built.
    #[must_use]
    pub fn without_builds(mut self) -> Self {
        self.variables.insert(NO_BUILD.to_owned(), "1".to_owned());
        self
    }

    /// Whether dependencies without a wheel are built.
    pub fn builds(&self) -> bool {
        !self.variables.contains_key(NO_BUILD)
    }

    /// Tools that need not exist, for tests with a scripted backend.
    #[cfg(test)]
    pub(super) fn scripted(cache: &Cache, interpreters: Vec<Interpreter>) -> Self {
        let uv = Uv { executable: "/opt/scripted/uv".into(), version: "0.0.0".to_owned() };
        let variables =
            [("UV_DEFAULT_INDEX".to_owned(), "https://me:secret@index.example/simple".to_owned())];
        Tools {
            interpreters,
            variables: variables.into(),
            uv_cache: cache.root().join("uv"),
            folder: cache.root().join("tools"),
            uv: Mutex::new(Some(uv)),
            foundation: None,
        }
    }

    /// uv, if the machine or the cache has it: for reports that must not install anything.
    pub fn installed_uv(&self) -> Option<Uv> {
        uv::find(&self.folder)
    }
}
