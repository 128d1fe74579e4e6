//! Where repositories run: the sandbox of this machine, and a Docker engine. Each is looked for when the first
//! repository that is to run there asks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::attempt::capabilities::Capabilities;
use crate::attempt::lab::Lab;
use crate::backend::docker::image::{self, Base, Contents};
use crate::backend::docker::{self, ContainerLimits, DockerBackend, Engine};
use crate::backend::local::{LocalBackend, Strictness};
use crate::backend::{Backend, Isolation};
use crate::config::{self, BackendKind, Repo};
use crate::environment::Tools;
use crate::environment::plan::python;
use crate::environment::steps::tools::BaseImage;
use crate::error::{Error, Result};
use crate::record::engine::EngineKind;
use crate::record::environment::{Built, ImageName};
use crate::record::host::HostFacts;
use crate::record::id::RepoSlug;
use crate::record::moment::Moment;
use crate::record::source::Pinned;
use crate::store::Cache;

/// Where the environment of a repository is built, and what that can vary.
pub struct Host {
    pub backend: Arc<dyn Backend>,
    /// Interpreters of an image; none for those of this machine.
    pub tools: Option<Tools>,
    pub capabilities: Capabilities,
    docker: Option<(Arc<Engine>, Base)>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Host").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

/// Everything that a build may run on.
#[derive(Debug)]
pub struct Machine {
    /// This program, which is also the sandbox's inside.
    program: PathBuf,
    cache: Cache,
    docker: config::Docker,
    processes: u64,
    strictness: Strictness,
    /// The engine that the user asked for.
    asked: Option<EngineKind>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    local: Option<Arc<Host>>,
    engine: Option<Arc<Engine>>,
    /// By name of the base and the packages.
    bases: BTreeMap<(String, Vec<String>), Arc<Host>>,
}

impl Machine {
    /// What the selected repositories need is looked for at once, so that trouble with the machine is reported before
    /// anything long starts.
    ///
    /// # Errors
    /// The machine's.
    pub fn new(
        program: &Path,
        cache: &Cache,
        config: &config::Config,
        only: &[RepoSlug],
        (strictness, asked): (Strictness, Option<EngineKind>),
    ) -> Result<Self> {
        let machine = Machine {
            program: program.to_owned(),
            cache: cache.clone(),
            docker: config.docker.clone(),
            processes: config.limits.processes,
            strictness,
            asked,
            known: Mutex::default(),
        };
        let selected = |repo: &&Repo| only.is_empty() || only.contains(&repo.slug);
        for repo in config.repos.iter().filter(selected) {
            match repo.backend {
                BackendKind::Local => drop(machine.local()?),
                BackendKind::Docker => drop(machine.engine()?),
            }
        }
        Ok(machine)
    }

    /// A machine without an engine, whose sandbox is this one: for tests.
    #[cfg(test)]
    pub(crate) fn scripted(
        cache: &Cache,
        config: &config::Config,
        backend: Arc<dyn Backend>,
        capabilities: Capabilities,
    ) -> Self {
        let host = Host { backend, tools: None, capabilities, docker: None };
        let known = Known { local: Some(Arc::new(host)), ..Known::default() };
        Machine {
            program: PathBuf::new(),
            cache: cache.clone(),
            docker: config.docker.clone(),
            processes: config.limits.processes,
            strictness: Strictness::Best,
            asked: None,
            known: Mutex::new(known),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn local(&self) -> Result<Arc<Host>> {
        if let Some(host) = &self.known().local {
            return Ok(Arc::clone(host));
        }
        let backend = LocalBackend::with(&self.program, self.strictness)?;
        let capabilities = Capabilities::find(&self.cache, &backend)?;
        let host = Arc::new(Host { backend: Arc::new(backend), tools: None, capabilities, docker: None });
        self.known().local = Some(Arc::clone(&host));
        Ok(host)
    }

    /// The sandbox of this machine, wherever repositories run.
    ///
    /// # Errors
    /// The machine's: no sandbox.
    pub fn sandbox(&self) -> Result<Arc<dyn Backend>> {
        Ok(Arc::clone(&self.local()?.backend))
    }

    fn engine(&self) -> Result<Arc<Engine>> {
        if let Some(engine) = &self.known().engine {
            return Ok(Arc::clone(engine));
        }
        let engine = Arc::new(Engine::connect(self.asked)?);
        docker::sweep(&engine)?;
        self.known().engine = Some(Arc::clone(&engine));
        Ok(engine)
    }

    fn limits(&self) -> ContainerLimits {
        ContainerLimits {
            memory: self.docker.memory,
            // Of one attempt, and of what watches over it.
            processes: if self.processes == 0 { 0 } else { self.processes + 64 },
            milli_cpus: self.docker.milli_cpus,
        }
    }

    /// Where a repository's environment is built.
    ///
    /// # Errors
    /// The machine's: no sandbox, no engine, no base image.
    pub fn host(&self, repo: &Repo, tools: &Tools, progress: &dyn Fn(&str)) -> Result<Arc<Host>> {
        if repo.backend == BackendKind::Local {
            return self.local();
        }
        let name = repo.base.clone().unwrap_or_else(|| self.docker.base.clone());
        let key = (name.clone(), repo.system_packages.clone());
        if let Some(host) = self.known().bases.get(&key) {
            return Ok(Arc::clone(host));
        }
        let engine = self.engine()?;
        let downloads = tools.downloads()?;
        let base =
            engine.patiently(|| image::base(&engine, &name, &repo.system_packages, &downloads, progress))?;
        progress(&format!("looking at {}", base.name));
        let backend = engine.patiently(|| DockerBackend::for_builds(&engine, &base.id, self.limits()))?;
        self.strictness.accept(backend.isolation())?;
        let interpreters = python::in_backend(&backend)?;
        let base_image =
            BaseImage { name: base.name.clone(), packages: base.packages.clone(), id: base.id.clone() };
        let capabilities = Capabilities::find(&self.cache, &backend)?;
        let host = Arc::new(Host {
            backend: Arc::new(backend),
            tools: Some(tools.in_image(interpreters, base_image)?),
            capabilities,
            docker: Some((engine, base)),
        });
        self.known().bases.insert(key, Arc::clone(&host));
        Ok(host)
    }

    /// What is in force on this machine itself, where a repository runs on it.
    pub fn local_isolation(&self) -> Option<Isolation> {
        self.known().local.as_ref().map(|host| host.backend.isolation().clone())
    }

    /// Where a built environment runs its tests, and the image that it is in.
    ///
    /// # Errors
    /// The engine's: a disk that is full, an image that cannot be made.
    pub fn tests(
        &self,
        host: &Arc<Host>,
        pinned: &Pinned,
        built: &Built,
        progress: &dyn Fn(&str),
    ) -> Result<(Arc<dyn Backend>, Option<ImageName>)> {
        let Some((engine, base)) = &host.docker else { return Ok((Arc::clone(&host.backend), None)) };
        let created = Moment::parse(&pinned.pinned_at)
            .ok_or_else(|| Error::internal(format!("`{}` is not a moment", pinned.pinned_at)))?;
        let contents = Contents {
            key: built.key.clone(),
            tag: image::tag(&pinned.slug, &built.key),
            venv: built.venv.clone(),
            tree: built.tree.clone(),
            created: (pinned.pinned_at.clone(), created.seconds()),
        };
        let made = engine.patiently(|| image::ensure(engine, base, &contents, progress))?;
        engine.patiently(|| self.keep_budget(engine, &made.tag, progress))?;
        let name = ImageName { tag: made.tag.clone(), id: made.id.clone() };
        let backend = engine.patiently(|| {
            let (engine, base, contents) = (Arc::clone(engine), base.clone(), contents.clone());
            let of_restore = Arc::clone(&engine);
            let restore = move || image::ensure(&of_restore, &base, &contents, &|_| {}).map(|image| image.id);
            let places = (built.venv.as_path(), built.tree.as_path());
            DockerBackend::tests(&engine, &made.id, places, self.limits(), Box::new(restore))
        })?;
        self.strictness.accept(backend.isolation())?;
        Ok((Arc::new(backend), Some(name)))
    }

    /// The variables that the base of a host sets; none where there is no base.
    ///
    /// # Errors
    /// The engine's.
    pub fn variables(&self, host: &Host) -> Result<BTreeMap<String, String>> {
        let Some((engine, base)) = &host.docker else { return Ok(BTreeMap::new()) };
        engine.patiently(|| image::variables(engine, &base.id))
    }

    /// Images that were used longest ago make room for those that are needed.
    fn keep_budget(&self, engine: &Engine, tag: &str, progress: &dyn Fn(&str)) -> Result<()> {
        let folder = self.cache.dir("images")?;
        let mark = |tag: &str| folder.join(tag.replace(['/', ':'], "_"));
        crate::store::write_atomic(&mark(tag), b"")?;
        let used = |tag: &str| {
            let modified = fs_err::metadata(mark(tag)).ok()?.modified().ok()?;
            let since = modified.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        };
        for evicted in docker::keep_budget(engine, self.docker.disk_budget, &[tag.to_owned()], used)? {
            progress(&format!("removed the image {evicted}: over the disk budget"));
        }
        Ok(())
    }

    /// What the manifest says about isolation and worlds: of this machine when a repository runs on it, else of the
    /// first base. Where nothing ran, nothing is claimed.
    pub fn describe(&self) -> (Isolation, Capabilities) {
        let known = self.known();
        let host = known.local.as_ref().or_else(|| known.bases.values().next());
        match host {
            Some(host) => (host.backend.isolation().clone(), host.capabilities.clone()),
            None => (Isolation { kind: "none".to_owned(), missing: Vec::new() }, Capabilities::none()),
        }
    }
}

/// What of this machine can matter to the tests of a repository, beside what its environment fixes.
pub(crate) fn facts(lab: &Lab, slug: &RepoSlug) -> HostFacts {
    let kernel = |name: &str| {
        let text = fs_err::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let build = python::build_of(&lab.built.python_prefix);
    HostFacts {
        kernel: format!("{} {}", kernel("ostype"), kernel("osrelease")),
        architecture: std::env::consts::ARCH.to_owned(),
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        locale: lab.setting.env.get("LC_ALL").cloned().unwrap_or_default(),
        interpreters: build.map(|build| (slug.to_string(), build)).into_iter().collect(),
        engines: BTreeMap::new(),
    }
}
