//! What the machine offers to build environments with. Found once, used for every repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::toolchain::Toolchains;
use super::uv::{self, Uv};
use crate::backend::docker::image::Downloads;
use crate::environment::plan::python::{self, Interpreter};
use crate::error::Result;
use crate::index::{Index, Settings};
use crate::source::{IndexTool, UvIndex};
use crate::store::{Cache, require_own};

/// The image that environments stand on, where they are built in containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
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
    pub(in crate::environment) variables: BTreeMap<String, String>,
    /// The door to the package indexes; opened when it is first needed.
    index: Arc<OnceLock<Arc<Index>>>,
    pub(in crate::environment) cache: Cache,
    folder: PathBuf,
    uv: Mutex<Option<Uv>>,
    /// Of this machine.
    pub(in crate::environment) toolchains: Toolchains,
    /// None on this machine itself.
    pub(in crate::environment) base_image: Option<BaseImage>,
}

/// The package index is asked through uv, which is looked for (or installed) only when it is needed.
impl IndexTool for Tools {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        UvIndex { uv: self.uv()?.executable }.lock_entry(requirement)
    }

    fn public_address(&self, address: &str) -> Result<String> {
        self.index()?.check_repository(address)
    }
}

impl Tools {
    /// Looks for interpreters (answers are kept in the cache). uv is looked for when it is first needed.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn find(cache: &Cache) -> Result<Self> {
        let folder = cache.dir("tools")?;
        // Of what is in it some is run, and all is believed.
        for name in ["interpreters.json", "uv", "uv/bin", "uv/bin/uv"] {
            let path = folder.join(name);
            if path.exists() {
                require_own(&path)?;
            }
        }
        Ok(Tools {
            interpreters: python::discover(&folder.join("interpreters.json"))?,
            variables: uv::download_variables(uv::user_variables()),
            index: Arc::default(),
            cache: cache.clone(),
            folder,
            uv: Mutex::new(None),
            toolchains: Toolchains::default(),
            base_image: None,
        })
    }

    /// These tools for environments in an image: its interpreters, this uv and its settings.
    pub fn in_image(&self, interpreters: Vec<Interpreter>, base_image: BaseImage) -> Result<Self> {
        Ok(Tools {
            interpreters,
            variables: self.variables.clone(),
            index: Arc::clone(&self.index),
            cache: self.cache.clone(),
            folder: self.folder.clone(),
            uv: Mutex::new(Some(self.uv()?)),
            toolchains: self.toolchains.clone(),
            base_image: Some(base_image),
        })
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

    /// The package indexes as the user's settings name them.
    ///
    /// # Errors
    /// Settings that cannot be used; IO errors.
    pub fn index(&self) -> Result<Arc<Index>> {
        if let Some(index) = self.index.get() {
            return Ok(Arc::clone(index));
        }
        let index = Index::new(Settings::of(&self.variables)?, self.cache.dir("index")?)?;
        Ok(Arc::clone(self.index.get_or_init(|| Arc::new(index))))
    }

    /// What each index answers now: see [`Index::probe`].
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn probe_indexes(&self) -> Result<Vec<(String, std::result::Result<&'static str, String>)>> {
        Index::probe(Settings::of(&self.variables)?)
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
            None => uv::install(&self.folder, &self.interpreters, &self.variables)?,
        };
        Ok(known.insert(uv).clone())
    }

    /// Tools that need not exist, for tests with a scripted backend.
    #[cfg(test)]
    pub(crate) fn scripted(cache: &Cache, interpreters: Vec<Interpreter>) -> Self {
        let uv = Uv { executable: "/opt/scripted/uv".into(), version: "0.0.0".to_owned() };
        let variables =
            [("UV_DEFAULT_INDEX".to_owned(), "https://me:secret@index.example/simple".to_owned())];
        Tools {
            interpreters,
            variables: variables.into(),
            index: Arc::default(),
            cache: cache.clone(),
            folder: cache.root().join("tools"),
            uv: Mutex::new(Some(uv)),
            toolchains: Toolchains::default(),
            base_image: None,
        }
    }

    /// uv, if the machine or the cache has it: for reports that must not install anything.
    pub fn installed_uv(&self) -> Option<Uv> {
        uv::find(&self.folder)
    }
}
