//! The connection to a Docker engine, or to Podman's compatible service: an asynchronous client behind blocking calls,
//! and its errors in words that say the way out.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bollard::container::AttachContainerResults;
use bollard::errors::Error as ClientError;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, ResourcesUlimits};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, InspectContainerOptions,
    RemoveContainerOptionsBuilder, StartContainerOptions, WaitContainerOptions,
};
use futures_util::StreamExt;
use tokio::runtime::Runtime;

use crate::backend::retry;
use crate::error::{Error, Result, says_disk_is_full};
use crate::record::engine::EngineKind;
use crate::record::spelling::spelling;

/// The label of everything that gistmill makes in an engine; its value says what it is.
pub const LABEL: &str = "gistmill";
/// The oldest engine API with everything that is asked of it: Docker 19.03.
const OLDEST_API: (u32, u32) = (1, 40);
/// Longest wait for one answer; packing and loading an image may take that long.
const LONGEST_ANSWER: Duration = Duration::from_mins(30);
/// How long a build waits for an engine that went away, so that it can be started again.
const ABSENCE: Duration = Duration::from_mins(3);
/// The user inside, as in the local sandbox.
const USER: &str = "1000:1000";
/// Open files of a process inside: soft and hard limit.
const OPEN_FILES: (i64, i64) = (1024, 4096);
/// Processes of a user, where the engine needs to be told.
const PROCESSES: (i64, i64) = (4096, 4096);
const SECCOMP: &str = include_str!("seccomp.json");

/// Limits of one container; 0 = none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ContainerLimits {
    /// Bytes of memory, swap included.
    pub memory: u64,
    pub processes: u64,
    /// Processors, in thousandths.
    pub milli_cpus: u64,
}

/// A container to make.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    pub image: &'a str,
    pub command: Vec<String>,
    /// The engine's, for a step that fetches packages of the distribution.
    pub has_network: bool,
    /// As root, with these capabilities, for a step that only runs programs of the distribution.
    pub root: Option<&'a [&'a str]>,
    pub read_only: bool,
    /// Folders in memory, which no image keeps.
    pub tmpfs: Vec<String>,
    pub limits: ContainerLimits,
    /// Value of the label.
    pub purpose: Purpose,
}

/// An engine that answers.
#[derive(Debug)]
pub struct Engine {
    client: bollard::Docker,
    runtime: Runtime,
    /// Where it is, without credentials.
    address: String,
    /// `Docker 20.10.24 (API 1.41)`, for people.
    pub version: String,
    pub kind: EngineKind,
    /// Containers that could not be removed while the engine was away.
    left: Mutex<Vec<String>>,
}

impl Engine {
    /// Connects as `DOCKER_HOST` says, or to the usual socket: Docker's, or that of Podman where that is asked for.
    ///
    /// # Errors
    /// The machine's: no engine, no permission, an API that is too old, another engine than the one that is asked for.
    pub fn connect(asked: Option<EngineKind>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Error::from(error).at("cannot start the engine's client"))?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = address_of(asked, &variable);
        let address = crate::redact::publish(&host);
        let refused = |error: ClientError| absent(&address, asked, &error);
        let mut client =
            bollard::Docker::connect_with_host(&host).map_err(refused)?.with_timeout(Duration::from_mins(1));
        let version = runtime.block_on(client.version()).map_err(refused)?;
        let api = version.api_version.clone().unwrap_or_default();
        if parse_api(&api).is_none_or(|api| api < OLDEST_API) {
            let (major, minor) = OLDEST_API;
            return Err(Error::machine(format!(
                "the Docker engine at {address} is too old: it speaks API {api}"
            ))
            .with_hint(format!(
                "gistmill needs API {major}.{minor}, that is Docker 19.03 or Podman 4; update the engine"
            )));
        }
        client = runtime.block_on(client.negotiate_version()).map_err(refused)?;
        client.set_timeout(LONGEST_ANSWER);
        let components = version.components.unwrap_or_default();
        let is_podman = components.iter().any(|component| component.name.starts_with("Podman"));
        let kind = if is_podman { EngineKind::Podman } else { EngineKind::Docker };
        if let Some(asked) = asked.filter(|asked| *asked != kind) {
            return Err(Error::usage(format!(
                "the engine at {address} is {}, and --engine asks for {}",
                kind.name(),
                asked.name()
            ))
            .with_hint("name the other one's socket in DOCKER_HOST, or leave --engine away"));
        }
        let version = format!("{} {} (API {api})", kind.name(), version.version.unwrap_or_default());
        Ok(Engine { client, runtime, address, version, kind, left: Mutex::default() })
    }

    /// Whether it is Podman, which differs in some of its answers.
    pub fn is_podman(&self) -> bool {
        self.kind == EngineKind::Podman
    }

    /// The client itself.
    pub(super) fn client(&self) -> &bollard::Docker {
        &self.client
    }

    /// Runs to the end.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// One request, its error in words.
    ///
    /// # Errors
    /// See [`Engine::explain`].
    pub(super) fn ask<T>(
        &self,
        doing: &str,
        request: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T> {
        self.wait(request).map_err(|error| self.explain(doing, error))
    }

    /// Whether it runs on this machine, as far as its address tells.
    pub fn is_local(&self) -> bool {
        self.address.starts_with("unix://")
    }

    /// Whether it answers now.
    pub fn answers(&self) -> bool {
        let ping = async { tokio::time::timeout(Duration::from_secs(5), self.client.ping()).await };
        matches!(self.wait(ping), Ok(Ok(_)))
    }

    /// Waits until it answers; containers that are left from before go first.
    ///
    /// # Errors
    /// The machine's, when it stays away; an interruption.
    pub fn await_presence(&self) -> Result<()> {
        let deadline = Instant::now() + ABSENCE;
        while !self.answers() {
            crate::interrupt::check()?;
            if Instant::now() >= deadline {
                let minutes = ABSENCE.as_secs() / 60;
                return Err(Error::machine(format!(
                    "the engine at {} went away and is not back after {minutes} minutes",
                    self.address
                ))
                .with_hint("start it and run the same command again: what is done is kept"));
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        for id in left {
            self.remove_container(&id);
        }
        Ok(())
    }

    /// Does something again that the engine's end broke off.
    ///
    /// # Errors
    /// Those of the last time, and of [`Engine::await_presence`].
    pub fn patiently<T>(&self, act: impl Fn() -> Result<T>) -> Result<T> {
        retry::until(act, |_| true, || self.await_presence())
    }

    /// What an error of the client means: the machine's trouble where only the user can help, else the harness's, which
    /// is tried again.
    pub(super) fn explain(&self, doing: &str, error: ClientError) -> Error {
        if let ClientError::DockerResponseServerError { status_code, message } = &error {
            let message = crate::redact::publish(message.trim());
            if says_disk_is_full(&message) {
                return disk_full(doing, &message);
            }
            if *status_code == 404 && message.to_lowercase().contains("no such image") {
                return Error::harness(format!("{doing}: an image is gone from the engine"))
                    .with_detail(message);
            }
            return Error::harness(format!("{doing}: the engine says {status_code}")).with_detail(message);
        }
        let text = error.to_string();
        if says_disk_is_full(&text) {
            return disk_full(doing, &text);
        }
        Error::harness(format!("{doing}: the engine at {} does not answer", self.address)).with_source(error)
    }

    /// Makes and starts a container; gives its id and what it is attached by.
    ///
    /// # Errors
    /// See [`Engine::explain`]; nothing is left behind.
    pub(super) fn start(&self, spec: &Spec<'_>) -> Result<(String, AttachContainerResults)> {
        let body = self.body(spec);
        let doing = format!("starting a container ({})", spec.purpose.as_str());
        let made = self.ask(&doing, self.client.create_container(None::<CreateContainerOptions>, body))?;
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let started = async {
            let attached = self.client.attach_container(&made.id, Some(options)).await?;
            self.client.start_container(&made.id, None::<StartContainerOptions>).await?;
            Ok(attached)
        };
        match self.ask(&doing, started) {
            Ok(attached) => Ok((made.id, attached)),
            Err(error) => {
                self.remove_container(&made.id);
                Err(error)
            }
        }
    }

    fn body(&self, spec: &Spec<'_>) -> ContainerCreateBody {
        let number = |value: u64| (value > 0).then(|| i64::try_from(value).unwrap_or(i64::MAX));
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let mut security = vec!["no-new-privileges".to_owned()];
        if spec.root.is_none() {
            security.push("apparmor=unconfined".to_owned());
            // Podman's own profile allows namespaces, it takes none from a client, and it has words of its own for
            // /proc.
            security.push(if self.is_podman() {
                "unmask=ALL".to_owned()
            } else {
                format!("seccomp={SECCOMP}")
            });
        }
        let ulimit = |name: &str, (soft, hard): (i64, i64)| ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(soft),
            hard: Some(hard),
        };
        let mut ulimits = vec![ulimit("nofile", OPEN_FILES)];
        if self.is_podman() {
            // It would ask for more than its own limit, which not every kernel grants.
            ulimits.push(ulimit("nproc", PROCESSES));
        }
        let host_config = HostConfig {
            network_mode: Some(if spec.has_network { "host" } else { "none" }.to_owned()),
            cap_drop: Some(words(&["ALL"])),
            cap_add: spec.root.map(words),
            security_opt: Some(security),
            readonly_rootfs: Some(spec.read_only),
            memory: number(spec.limits.memory),
            memory_swap: number(spec.limits.memory),
            nano_cpus: number(spec.limits.milli_cpus * 1_000_000),
            pids_limit: number(spec.limits.processes),
            ulimits: Some(ulimits),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            tmpfs: Some(spec.tmpfs.iter().map(|path| (path.clone(), "mode=700".to_owned())).collect()),
            // A process namespace of its own inside needs a /proc that nothing covers; there it is covered again.
            masked_paths: spec.root.is_none().then(Vec::new),
            readonly_paths: spec.root.is_none().then(Vec::new),
            ..HostConfig::default()
        };
        ContainerCreateBody {
            image: Some(spec.image.to_owned()),
            cmd: Some(spec.command.clone()),
            entrypoint: Some(Vec::new()),
            user: Some(if spec.root.is_some() { "0:0" } else { USER }.to_owned()),
            working_dir: Some("/".to_owned()),
            hostname: (!spec.has_network).then(|| crate::backend::sandbox::USER.to_owned()),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            labels: Some(labels(spec.purpose.as_str())),
            host_config: Some(host_config),
            ..ContainerCreateBody::default()
        }
    }

    /// Removes a container, running or not. When the engine is away it is remembered.
    pub(super) fn remove_container(&self, id: &str) {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let result = self.wait(self.client.remove_container(id, Some(options)));
        let gone = match &result {
            Ok(()) => true,
            Err(ClientError::DockerResponseServerError { status_code, .. }) => {
                matches!(status_code, 404 | 409)
            }
            Err(_) => false,
        };
        if !gone {
            self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(id.to_owned());
        }
    }

    /// The exit code of a container that ended.
    ///
    /// # Errors
    /// See [`Engine::explain`].
    pub(super) fn exit_code(&self, id: &str) -> Result<i64> {
        let mut ends = Box::pin(self.client.wait_container(id, None::<WaitContainerOptions>));
        match self.wait(ends.next()) {
            Some(Ok(ended)) => Ok(ended.status_code),
            Some(Err(ClientError::DockerContainerWaitError { code, .. })) => Ok(code),
            Some(Err(error)) => Err(self.explain("asking how a container ended", error)),
            None => Err(Error::harness("the engine does not say how a container ended")),
        }
    }

    /// How a container ended, in words; none when the engine cannot tell.
    pub(super) fn ending(&self, id: &str) -> Option<(i64, String)> {
        let inspected = self.wait(self.client.inspect_container(id, None::<InspectContainerOptions>)).ok()?;
        let state = inspected.state?;
        let code = state.exit_code.unwrap_or_default();
        let words = if state.oom_killed == Some(true) {
            "the container ran out of memory".to_owned()
        } else if state.running == Some(true) {
            "the connection to the container broke".to_owned()
        } else {
            format!("the container ended with code {code}")
        };
        Some((code, words))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        for id in left {
            self.remove_container(&id);
        }
    }
}

spelling! {
    /// What a container is for: the value of its label. Images have other ones, which containers of them inherit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Purpose {
        Test "test",
        Build "build",
        Look "look",
        Packages "packages",
        Judge "judge",
    }
}

impl Purpose {
    /// Whether a container's label says that gistmill started it.
    pub(super) fn is_known(label: &str) -> bool {
        [Purpose::Test, Purpose::Build, Purpose::Look, Purpose::Packages, Purpose::Judge]
            .iter()
            .any(|one| one.as_str() == label)
    }
}

/// The label that says whose it is and what for.
pub(super) fn labels(purpose: &str) -> HashMap<String, String> {
    HashMap::from([(LABEL.to_owned(), purpose.to_owned())])
}

fn parse_api(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

pub(super) fn disk_full(doing: &str, detail: &str) -> Error {
    Error::machine(format!("{doing}: the engine's disk is full"))
        .with_detail(detail.to_owned())
        .with_hint("free space there (`gistmill clean`, `docker system prune`), or set a smaller `disk_budget` in [docker]")
}

/// Where Podman keeps what ends with a session: a folder of the user's.
pub(super) fn runtime_folder(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let user = nix::unistd::getuid();
    let own = || variable("XDG_RUNTIME_DIR").unwrap_or_else(|| format!("/run/user/{user}"));
    PathBuf::from(if user.is_root() { "/run".to_owned() } else { own() })
}

/// Where the engine is, by the variables of the environment.
fn address_of(asked: Option<EngineKind>, variable: &dyn Fn(&str) -> Option<String>) -> String {
    if let Some(host) = variable("DOCKER_HOST") {
        return host;
    }
    if asked != Some(EngineKind::Podman) {
        return "unix:///var/run/docker.sock".to_owned();
    }
    variable("CONTAINER_HOST")
        .unwrap_or_else(|| format!("unix://{}/podman/podman.sock", runtime_folder(variable).display()))
}

/// Why no engine can be reached.
fn absent(address: &str, asked: Option<EngineKind>, error: &ClientError) -> Error {
    let text = error_chain(error);
    if asked == Some(EngineKind::Podman) {
        return Error::machine(format!("no service of Podman answers at {address}"))
            .with_detail(root_cause(error))
            .with_hint(
                "`systemctl --user start podman.socket` or `podman system service --time 0 &` starts it; DOCKER_HOST names another \
                 socket",
            );
    }
    if text.contains("Permission denied") || text.contains("permission denied") {
        return Error::machine(format!("no permission to talk to the Docker engine at {address}")).with_hint(
            "join the group `docker` (usermod -aG docker <user>, then log in again), or use a rootless engine and name its \
             socket in DOCKER_HOST",
        );
    }
    Error::machine(format!("no Docker engine answers at {address}"))
        .with_detail(root_cause(error))
        .with_hint(way_out(std::env::var_os("DOCKER_HOST").is_some()))
}

/// What to do where no engine answers; `named` when `DOCKER_HOST` says where it should.
fn way_out(named: bool) -> &'static str {
    if named {
        "DOCKER_HOST names this address: correct it (unix:///path or tcp://host:port), or unset it for the usual socket"
    } else {
        "install and start one (Debian: apt-get install docker.io), name another in DOCKER_HOST, or set backend = \"local\""
    }
}

/// What the system said, without what the layers of the client add.
fn root_cause(error: &ClientError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    crate::redact::publish(&cause.to_string())
}

fn error_chain(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    crate::redact::publish(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    #[test]
    fn what_keeps_an_engine_from_answering_has_a_way_out() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = absent("unix:///run/x.sock", None, &ClientError::IOError { err: denied });
        assert_eq!(error.fault(), Fault::Machine);
        assert!(error.to_string().contains("no permission") && error.hint().unwrap().contains("group"));
        let gone = || ClientError::SocketNotFoundError("x".into());
        let error = absent("unix:///p.sock", Some(EngineKind::Podman), &gone());
        assert!(
            error.to_string().contains("Podman") && error.hint().unwrap().contains("podman system service")
        );
        let error = absent("tcp://h:1", None, &gone());
        assert!(error.to_string().contains("no Docker engine answers at tcp://h:1"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("DOCKER_HOST")), "{error:?}");
        assert!(way_out(false).contains("backend = \"local\""));
        let full = disk_full("loading", "write: no space left on device");
        assert_eq!(full.fault(), Fault::Machine);
    }

    #[test]
    fn an_engine_is_where_its_own_variables_say() {
        let place = |asked, set: &[(&str, &str)]| {
            let found = |name: &str| set.iter().find(|one| one.0 == name).map(|one| one.1.to_owned());
            address_of(asked, &found)
        };
        let podman = Some(EngineKind::Podman);
        assert_eq!(place(None, &[("CONTAINER_HOST", "ssh://a")]), "unix:///var/run/docker.sock");
        assert_eq!(place(podman, &[("CONTAINER_HOST", "ssh://a")]), "ssh://a");
        assert_eq!(
            place(podman, &[("DOCKER_HOST", "tcp://b:1"), ("CONTAINER_HOST", "ssh://a")]),
            "tcp://b:1"
        );
        assert!(place(podman, &[("XDG_RUNTIME_DIR", "/x")]).ends_with("/podman/podman.sock"));
    }

    #[test]
    fn versions_of_the_api_compare_as_numbers() {
        assert!(parse_api("1.9").unwrap() < OLDEST_API && parse_api("1.41").unwrap() > OLDEST_API);
        assert_eq!(parse_api("x"), None);
    }

    #[test]
    fn the_seccomp_profile_is_json_that_allows_namespaces() {
        let profile: serde_json::Value = serde_json::from_str(SECCOMP).unwrap();
        let names = profile["syscalls"][0]["names"].as_array().unwrap();
        for name in ["unshare", "clone", "clone3", "mount", "umount2", "pivot_root", "mount_setattr"] {
            assert!(!names.iter().any(|one| one == name), "{name}");
        }
        assert!(names.iter().any(|one| one == "bpf"));
    }
}
