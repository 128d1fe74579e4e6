//! Jobs in containers of a Docker engine (or Podman's compatible service), wherever it runs: nothing of the host is
//! mounted.
//!
//! A container has no network, no capability, no way to new privileges, an ordinary user and a read-only root. Inside
//! it a small program ([`inside.py`](./docker/inside.py)) makes the same sandbox that the local backend makes, so that
//! the same runner meets the same places and gives the same verdicts. What a job needs of the host goes in over the
//! attached stream.
//!
//! Environments are built in containers of the base, whose jobs are sent their folders and give them back; tests run in
//! containers of the image that was made of them.

pub mod archive;
pub mod engine;
pub mod image;
pub mod login;
mod memory;
mod oci;
pub mod one_shot;
mod plan;
mod process;
pub mod push;
mod relay;
mod unpack;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::{
    Backend, Isolation, Job, JobLimits, Mount, Places, Process, logged, retry, sandbox, service, shown,
};
use crate::error::{Error, ErrorKind, Fault, Result};
pub use engine::{ContainerLimits, Engine, Purpose};
use memory::Memory;
use plan::{Plan, Shown};
use process::ContainerProcess;

/// The program inside a container, but for the lists that it shares with the sandbox of this machine.
const INSIDE: &str = concat!(include_str!("docker/relay.py"), include_str!("docker/inside.py"));
const PROBE_LIMIT: Duration = Duration::from_mins(2);

/// The program inside a container.
pub fn program() -> String {
    shown::in_python() + INSIDE
}

/// SHA-256 of the program inside: part of every key that depends on what it does.
pub fn version_hash() -> String {
    crate::record::id::sha256_hex(program().as_bytes())
}

/// Makes an image again that somebody removed; gives its id.
pub type Restore = Box<dyn Fn() -> Result<String> + Send + Sync>;

/// Runs jobs in containers of one image.
pub struct DockerBackend {
    engine: Arc<Engine>,
    image: RwLock<String>,
    restore: Option<Mutex<Restore>>,
    places: Places,
    isolation: Isolation,
    shown: Vec<Shown>,
    limits: ContainerLimits,
    memory: Memory,
    /// Whether jobs build an environment: what they are sent is large and lies on disk.
    builds: bool,
    own_processes: bool,
}

impl std::fmt::Debug for DockerBackend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DockerBackend").field("image", &self.image).finish_non_exhaustive()
    }
}

impl DockerBackend {
    /// For building environments in containers of a base.
    ///
    /// # Errors
    /// The engine's; a sandbox that cannot be made inside.
    pub fn for_builds(engine: &Arc<Engine>, base: &str, limits: ContainerLimits) -> Result<Self> {
        let mut backend = DockerBackend::new(engine, base, limits)?;
        backend.builds = true;
        backend.probed()
    }

    /// For running tests in containers of an environment's image: `venv` and `tree` of the host lie in it.
    ///
    /// # Errors
    /// The engine's; a sandbox that cannot be made inside.
    pub fn tests(
        engine: &Arc<Engine>,
        image: &str,
        (venv, tree): (&Path, &Path),
        limits: ContainerLimits,
        restore: Restore,
    ) -> Result<Self> {
        let mut backend = DockerBackend::new(engine, image, limits)?;
        backend.restore = Some(Mutex::new(restore));
        let places = Places::in_sandbox();
        backend.show(venv, &places.venv);
        backend.show(tree, &places.root);
        backend.probed()
    }

    fn new(engine: &Arc<Engine>, image: &str, limits: ContainerLimits) -> Result<Self> {
        let memory = Memory::of(engine)?;
        Ok(DockerBackend {
            engine: Arc::clone(engine),
            image: RwLock::new(image.to_owned()),
            restore: None,
            places: Places::in_sandbox(),
            isolation: Isolation {
                kind: engine.kind.program().to_owned(),
                missing: memory.missing().into_iter().collect(),
            },
            shown: Vec::new(),
            limits,
            memory,
            builds: false,
            own_processes: true,
        })
    }

    fn show(&mut self, host: &Path, inside: &Path) {
        self.shown.push(Shown { host: host.to_owned(), inside: inside.to_owned() });
    }

    /// Tries the sandbox once, without a process namespace of its own where the engine does not allow that.
    fn probed(mut self) -> Result<Self> {
        let job = Job { may_mount: true, ..Job::small(["/bin/true"]) };
        match retry::run(&self, &job, PROBE_LIMIT) {
            Ok(done) if done.success() => return Ok(self),
            Ok(done) => return Err(no_sandbox(&done.stderr)),
            Err(error) if error.fault() != Fault::Harness => return Err(error),
            Err(error) if error.kind() != Some(ErrorKind::NoProcessNamespace) => {
                return Err(no_sandbox(error.detail().unwrap_or(&error.to_string())));
            }
            Err(_) => {}
        }
        self.own_processes = false;
        self.isolation.kind.push_str(" without process namespaces");
        self.isolation.missing.push("a process namespace for each job: only the container's".to_owned());
        match retry::run(&self, &job, PROBE_LIMIT) {
            Ok(done) if done.success() => Ok(self),
            Ok(done) => Err(no_sandbox(&done.stderr)),
            Err(error) if error.fault() != Fault::Harness => Err(error),
            Err(error) => Err(no_sandbox(error.detail().unwrap_or(&error.to_string()))),
        }
    }

    fn image(&self) -> String {
        self.image.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn plan(&self, job: &Job) -> Plan {
        let mut job = job.clone();
        // What is asked for at its own place is part of the system, such as an interpreter, and that is the image's.
        job.mounts.retain(|mount| !matches!(mount, Mount::ReadOnly { host, inside } if host == inside));
        Plan::new(&job, &self.shown, self.builds, self.own_processes)
    }

    /// What is sent must not be a link that foreign code left.
    fn check_sources(&self, job: &Job) -> Result<()> {
        for mount in &job.mounts {
            let (Mount::ReadOnly { host, .. } | Mount::Writable { host, .. } | Mount::Overlay { host, .. }) =
                mount
            else {
                continue;
            };
            let in_image = matches!(mount, Mount::ReadOnly { inside, .. } if inside == host)
                || self.shown.iter().any(|place| host.starts_with(&place.host));
            if !in_image {
                sandbox::mounts::source(host)?;
            }
        }
        Ok(())
    }

    fn start_once(&self, job: &Job) -> Result<ContainerProcess> {
        service::check(job)?;
        self.check_sources(job)?;
        let image = self.image();
        let spec = engine::Spec {
            image: &image,
            command: ["python3", "-I", "-S", "-B", "-c", &program()].map(str::to_owned).into(),
            has_network: false,
            root: None,
            read_only: !self.builds,
            tmpfs: Vec::new(),
            limits: self.memory.bound(self.limits, job.limits),
            purpose: if self.builds { Purpose::Build } else { Purpose::Test },
        };
        ContainerProcess::start(&self.engine, &spec, self.plan(job), job)
    }

    /// After a start that did not work: waits for an engine that is away, and makes an image again that is gone.
    fn recover(&self) -> Result<()> {
        self.engine.await_presence()?;
        let Some(restore) = &self.restore else { return Ok(()) };
        // One at a time: the others find it done.
        let restore = restore.lock().unwrap_or_else(PoisonError::into_inner);
        if image::inspect(&self.engine, &self.image())?.is_none() {
            let id = restore()?;
            *self.image.write().unwrap_or_else(PoisonError::into_inner) = id;
        }
        Ok(())
    }
}

fn no_sandbox(detail: &str) -> Error {
    Error::machine("the engine does not allow the sandbox that repositories run in")
        .with_detail(detail.trim().to_owned())
        .with_hint(
            "containers need unprivileged user namespaces: allow them on the engine's machine (sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0)",
        )
}

impl Backend for DockerBackend {
    fn places(&self) -> &Places {
        &self.places
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn shows_host_system(&self) -> bool {
        false
    }

    fn shares_processors(&self) -> bool {
        self.engine.is_local()
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>> {
        let started = retry::after_recovery(|| self.start_once(job), || self.recover())?;
        Ok(logged::followed(job, Box::new(started)))
    }
}

/// What [`clean`] removed.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Cleaned {
    pub containers: usize,
    pub images: Vec<String>,
    pub volumes: Vec<String>,
}

/// What [`clean`] does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaning {
    Remove,
    /// Only tells it.
    Tell,
}

/// Removes every container, image and volume of gistmill's, and nothing else. What somebody made of its images has its
/// label, too, and is theirs.
///
/// # Errors
/// The engine's.
pub fn clean(engine: &Engine, cleaning: Cleaning) -> Result<Cleaned> {
    let removes = cleaning == Cleaning::Remove;
    use bollard::query_parameters::{
        ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
    };
    let filters = std::collections::HashMap::from([("label".to_owned(), vec![engine::LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let mut cleaned = Cleaned::default();
    let is_own = |labels: Option<std::collections::HashMap<String, String>>| {
        labels.is_some_and(|all| all.get(engine::LABEL).is_some_and(|label| Purpose::is_known(label)))
    };
    for container in engine.ask("listing containers", engine.client().list_containers(Some(options)))? {
        if let Some(id) = container.id.filter(|_| is_own(container.labels)) {
            if removes {
                engine.remove_container(&id);
            }
            cleaned.containers += 1;
        }
    }
    // Images come before the bases below them.
    let mut images = image::list(engine)?;
    images.sort_by_key(|one| one.kind != "image");
    for one in images {
        if !removes || image::remove(engine, &one.tag)? {
            cleaned.images.push(one.tag);
        }
    }
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let volumes = engine.ask("listing volumes", engine.client().list_volumes(Some(options)))?;
    for volume in volumes.volumes.unwrap_or_default() {
        if removes {
            let removed = engine.client().remove_volume(&volume.name, None::<RemoveVolumeOptions>);
            engine.ask("removing a volume", removed)?;
        }
        cleaned.volumes.push(volume.name);
    }
    Ok(cleaned)
}

/// Removes containers that earlier runs left behind because they were killed: those of jobs that do not run any more.
///
/// # Errors
/// The engine's.
pub fn sweep(engine: &Engine) -> Result<()> {
    use bollard::query_parameters::ListContainersOptionsBuilder;
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    // Podman knows no containers that are dead.
    let ended: &[&str] = if engine.is_podman() { &["exited"] } else { &["exited", "dead"] };
    // One that only looks has no driver that stays with it: that of another run may be about to be read.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let before = now.saturating_sub(2 * image::LOOK_LIMIT).as_secs().cast_signed();
    let is_over = |purpose, created: Option<i64>| {
        purpose != Purpose::Look || created.is_some_and(|created| created < before)
    };
    for purpose in [Purpose::Test, Purpose::Build, Purpose::Look] {
        let filters = std::collections::HashMap::from([
            ("label".to_owned(), vec![format!("{}={}", engine::LABEL, purpose.as_str())]),
            ("status".to_owned(), words(ended)),
        ]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        for container in engine.ask("listing containers", engine.client().list_containers(Some(options)))? {
            if let Some(id) = container.id.filter(|_| is_over(purpose, container.created)) {
                engine.remove_container(&id);
            }
        }
    }
    Ok(())
}

/// Makes room: removes images of environments, the ones that were used longest ago first, until the budget holds.
/// `used` says when an image was last used (seconds since the epoch), `needed` is never removed. Gives what was
/// removed.
///
/// # Errors
/// The engine's.
pub fn keep_budget(
    engine: &Engine,
    budget: u64,
    needed: &[String],
    used: impl Fn(&str) -> Option<i64>,
) -> Result<Vec<String>> {
    if budget == 0 {
        return Ok(Vec::new());
    }
    let mut images: Vec<image::Listed> =
        image::list(engine)?.into_iter().filter(|one| one.kind == "image").collect();
    images.sort_by_key(|one| used(&one.tag).unwrap_or(one.created));
    let mut evicted = Vec::new();
    // An image is there until its last tag is gone.
    let mut tags: BTreeMap<String, usize> = BTreeMap::new();
    let mut total = 0;
    for one in &images {
        let tags = tags.entry(one.id.clone()).or_default();
        *tags += 1;
        total += one.own_bytes.filter(|_| *tags == 1).unwrap_or_default();
    }
    let is_needed = |one: &image::Listed| needed.contains(&one.tag);
    let kept: BTreeSet<String> =
        images.iter().filter(|one| is_needed(one)).map(|one| one.id.clone()).collect();
    for one in images {
        if total <= budget {
            break;
        }
        if kept.contains(&one.id) || !image::remove(engine, &one.tag)? {
            continue;
        }
        if let Some(tags) = tags.get_mut(&one.id) {
            *tags -= 1;
            total -= one.own_bytes.filter(|_| *tags == 0).unwrap_or_default();
        }
        evicted.push(one.tag);
    }
    Ok(evicted)
}
