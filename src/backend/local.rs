//! Local processes in a sandbox of kernel namespaces: no network, own processes, read-only system, no way to the
//! user's files. The work is done by [`super::sandbox`], in this same program started again.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cgroup::{ControlGroups, JobGroup};
use super::logged;
use super::retry;
use super::sandbox::{self, Part, Plan};
use super::service::{self, Serving};
use super::{Backend, Finished, Isolation, Job, LONGEST_END, Places, Process, Tail};
use crate::error::{Error, ErrorKind, Fault, Result};

/// How often, and how long after one another, a sandbox is tried again that has met a limit on namespaces.
const PROBES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// How long a sandbox may take to end by itself before it is killed.
const OWN_END: Duration = Duration::from_millis(500);
/// The kernel's word for "no more namespaces".
const NO_MORE: &str = "No space left on device";

/// What control groups give.
const MEMORY: &str =
    "a bound on the memory of all processes of a job together: gistmill can make no control groups here";

/// Runs jobs on this machine.
#[derive(Debug)]
pub struct LocalBackend {
    helper: PathBuf,
    places: Places,
    isolation: Isolation,
    without: Vec<Part>,
    /// Where the machine gives them.
    groups: Option<Arc<ControlGroups>>,
}

/// How much isolation a user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Strictness {
    /// The strongest that the machine allows; what is missing is said
    #[default]
    Best,
    /// All of it, or nothing is run
    Strict,
}

impl Strictness {
    /// Takes what is in force, or refuses it.
    ///
    /// # Errors
    /// The machine's, when something is missing and the user asks for all of it.
    pub fn accept(self, isolation: &Isolation) -> Result<()> {
        if self == Strictness::Best || isolation.missing.is_empty() {
            return Ok(());
        }
        let hint = if isolation.missing.iter().any(|one| one == MEMORY) {
            "control groups (version 2) are to be had with `systemd-run --user --scope -p Delegate=yes gistmill …`; or \
             take the strongest that the machine allows with --isolation best"
        } else {
            "give it what is missing, or take the strongest that it allows with --isolation best"
        };
        Err(Error::machine("--isolation strict: this machine does not give all of the isolation")
            .with_detail(format!("missing: {}", isolation.missing.join("\nmissing: ")))
            .with_hint(hint))
    }
}

impl LocalBackend {
    /// The strongest sandbox that the machine allows.
    ///
    /// # Errors
    /// See [`LocalBackend::with`].
    pub fn new(helper: &Path) -> Result<Self> {
        LocalBackend::with(helper, Strictness::Best)
    }

    /// Tries the sandbox, and where that does not work without the parts that the machine refuses. `helper` is the
    /// gistmill program itself.
    ///
    /// # Errors
    /// When the machine does not allow the namespaces that no sandbox can do without, and when a user who is strict would
    /// get less than all of it.
    pub fn with(helper: &Path, strictness: Strictness) -> Result<Self> {
        let mut backend = LocalBackend {
            helper: helper.to_owned(),
            places: Places::in_sandbox(),
            isolation: Isolation { kind: String::new(), missing: Vec::new() },
            without: Vec::new(),
            groups: None,
        };
        if let Err(whole) = backend.probe() {
            if whole.fault() != Fault::Machine {
                return Err(whole);
            }
            backend
                .find_missing_parts()
                .map_err(|error| if error.fault() == Fault::Machine { whole } else { error })?;
        }
        backend.bound_memory();
        backend.isolation = isolation(&backend.without, backend.groups.is_some());
        strictness.accept(&backend.isolation)?;
        Ok(backend)
    }

    /// Bounds what a job holds together, where the machine gives that.
    fn bound_memory(&mut self) {
        self.groups = ControlGroups::make().ok().map(Arc::new);
        if self.groups.is_some() && self.probe().is_err() {
            self.groups = None;
        }
    }

    /// Leaves out every part that can be done without, then takes back each that works.
    fn find_missing_parts(&mut self) -> Result<()> {
        self.without = Part::ALL.to_vec();
        self.probe()?;
        for part in Part::ALL {
            let before = self.without.clone();
            self.without.retain(|one| *one != part);
            match self.probe() {
                Ok(()) => {}
                Err(error) if error.fault() == Fault::Machine => self.without = before,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The kernel takes back the namespaces of what has ended in its own time: where their number is limited, those of
    /// the sandbox before may still count.
    fn probe(&self) -> Result<()> {
        let mut result = self.probe_once();
        for _ in 0..PROBES {
            match &result {
                Err(error) if error.kind() == Some(ErrorKind::NoMoreNamespaces) => {}
                _ => break,
            }
            std::thread::sleep(PAUSE);
            result = self.probe_once();
        }
        result
    }

    fn probe_once(&self) -> Result<()> {
        let job = Job { may_mount: true, ..Job::small(["/bin/true"]) };
        let (refused, kind) = match retry::run(self, &job, Duration::from_mins(2)) {
            Ok(finished) if finished.success() => return Ok(()),
            Ok(finished) => (finished.stderr, None),
            Err(error) if error.fault() == Fault::Harness => {
                (error.detail().unwrap_or_default().to_owned(), error.kind())
            }
            Err(error) => return Err(error),
        };
        let used_up = if refused.contains("ENOSPC") {
            "no more user namespaces are allowed here (sysctl user.max_user_namespaces, often 0 on nodes of a cluster): \
             whoever runs the machine can raise it. "
        } else {
            ""
        };
        Err(Error::machine("this machine does not allow the sandbox that repositories run in")
            .with_kind(kind)
            .with_detail(refused.trim().to_owned())
            .with_hint(format!(
                "{used_up}gistmill needs user, mount, process and network namespaces: allow unprivileged user namespaces \
                 (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0) or, in a \
                 container, start it with {CONTAINER_OPTIONS} (with --security-opt apparmor=unconfined as well where \
                 the machine has AppArmor)"
            )))
    }
}

/// What a container needs to be started with, so that the sandbox can be made in it: system calls for namespaces, and a
/// `/proc` of which nothing is covered, else the kernel lets nobody mount another one. No privileges are needed.
pub(crate) const CONTAINER_OPTIONS: &str =
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined";

/// What is in force without some parts.
fn isolation(without: &[Part], bounded: bool) -> Isolation {
    let mut missing: Vec<String> = without.iter().map(|part| part.missing().to_owned()).collect();
    if !bounded {
        missing.push(MEMORY.to_owned());
    }
    if nix::unistd::geteuid().is_root() {
        missing.push("an ordinary user as the one who starts it: gistmill was started by root".to_owned());
    }
    let names: Vec<&str> = without.iter().map(|part| part.as_str()).collect();
    let kind = if names.is_empty() {
        "namespaces".into()
    } else {
        format!("namespaces without {}", names.join(", "))
    };
    Isolation { kind, missing }
}

impl Backend for LocalBackend {
    fn places(&self) -> &Places {
        &self.places
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>> {
        let process = LocalProcess::start(&self.helper, job, &self.without, self.groups.as_ref())?;
        Ok(logged::followed(job, Box::new(process)))
    }
}

/// A job that runs on this machine.
#[derive(Debug)]
struct LocalProcess {
    child: Child,
    /// Requests, and the lifeline: when this closes the sandbox ends.
    requests: Option<ChildStdin>,
    answers: Option<ChildStdout>,
    stdout: Tail,
    stderr: Tail,
    readers: Vec<JoinHandle<()>>,
    serving: Option<Serving>,
    group: Option<JobGroup>,
}

impl LocalProcess {
    fn start(
        helper: &Path,
        job: &Job,
        without: &[Part],
        groups: Option<&Arc<ControlGroups>>,
    ) -> Result<Self> {
        service::check(job)?;
        if job.service.is_some() && without.contains(&Part::Network) {
            return Err(no_loopback());
        }
        let grouping = |error| Error::harness("cannot bound the memory of a job").with_source(error);
        let group = groups.map(|groups| groups.job(job.limits)).transpose().map_err(grouping)?;
        let pair = job.service.as_ref().map(|_| UnixStream::pair()).transpose()?;
        let (ours, theirs) = pair.unzip();
        let plan = plan(job, without, theirs.as_ref().map(AsRawFd::as_raw_fd))?;
        let mut child = spawn(helper, theirs.as_ref().map(AsRawFd::as_raw_fd))?;
        drop(theirs);
        let (stdout, stderr) = (Tail::default(), Tail::default());
        let mut readers = Vec::new();
        readers.extend(child.stderr.take().map(|stream| stderr.follow(stream)));
        let mut answers = child.stdout.take();
        if !job.channel {
            readers.extend(answers.take().map(|stream| stdout.follow(stream)));
        }
        let requests = child.stdin.take();
        let serving = None;
        let mut process = LocalProcess { child, requests, answers, stdout, stderr, readers, serving, group };
        // It waits for its plan: nothing of the job runs yet.
        if let Some(group) = &process.group {
            group.take(process.child.id()).map_err(grouping)?;
        }
        if let (Some(service), Some(ours)) = (&job.service, ours) {
            process.serving = Some(Serving::start(Arc::clone(service), ours)?);
        }
        process.hand_over(&plan)?;
        Ok(process)
    }

    /// With its lifeline gone the sandbox ends by itself, and so the processor time of all that was in it is known.
    fn let_it_end(&mut self) {
        let (deadline, mut pause) = (Instant::now() + OWN_END, Duration::from_micros(200));
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    fn hand_over(&mut self, plan: &Plan) -> Result<()> {
        let text = serde_json::to_vec(plan)
            .map_err(|error| Error::internal("cannot encode a sandbox plan").with_source(error))?;
        let length = u32::try_from(text.len()).map_err(|_| Error::internal("sandbox plan too long"))?;
        let Some(pipe) = self.requests.as_mut() else { return Ok(()) };
        pipe.write_all(&length.to_be_bytes())
            .and_then(|()| pipe.write_all(&text))
            .map_err(|error| Error::harness("cannot hand the plan to the sandbox").with_source(error))
    }
}

/// A job as the sandbox is told it; the descriptor is the one that takes its service's listening socket out.
fn plan(job: &Job, without: &[Part], service: Option<RawFd>) -> Result<Plan> {
    Ok(Plan {
        argv: job.argv.clone(),
        env: job.env.clone(),
        cwd: job.cwd.clone(),
        mounts: sandbox::mounts::planned(&job.mounts)?,
        may_mount: job.may_mount,
        limits: job.limits,
        channel: job.channel,
        service,
        without: without.to_vec(),
    })
}

/// Starts this program as a sandbox, which inherits one descriptor at most.
fn spawn(helper: &Path, inherited: Option<RawFd>) -> Result<Child> {
    let mut command = Command::new(helper);
    command
        // A job sees the command line of its first process: where this program lies is the user's.
        .arg0("gistmill")
        .arg("__sandbox")
        .env_clear()
        // Ctrl-C at the terminal is for the driver alone: it ends its jobs itself.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(descriptor) = inherited {
        // SAFETY: one system call between fork and exec, on a descriptor that the caller holds open until then.
        unsafe {
            command.pre_exec(move || {
                nix::errno::Errno::result(nix::libc::fcntl(descriptor, nix::libc::F_SETFD, 0))?;
                Ok(())
            });
        }
    }
    command.spawn().map_err(|error| Error::from(error).at(format!("cannot start {}", helper.display())))
}

fn no_loopback() -> Error {
    Error::machine("this machine gives jobs no network namespace, and dependencies are fetched through the loopback of one")
        .with_hint(format!(
            "allow network namespaces (sysctl user.max_net_namespaces above 0; in a container, start it with \
             {CONTAINER_OPTIONS}), or run in containers with backend = \"docker\""
        ))
}

impl Process for LocalProcess {
    fn take_answers(&mut self) -> Option<Box<dyn Read + Send>> {
        self.answers.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)
    }

    fn requests(&mut self) -> Option<&mut dyn Write> {
        self.requests.as_mut().map(|pipe| pipe as &mut dyn Write)
    }

    fn log(&self) -> String {
        self.stderr.text()
    }

    fn out_of_memory(&self) -> Option<(u64, u64)> {
        self.group.as_ref().map(JobGroup::out_of_memory)
    }

    fn host_process(&self) -> Option<u32> {
        Some(self.child.id())
    }

    fn code_inside(&mut self) -> Option<i32> {
        let deadline = Instant::now() + LONGEST_END;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < deadline && !crate::interrupt::requested() => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return None,
            }
        }
    }

    fn wait(mut self: Box<Self>, limit: Duration) -> Result<Finished> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if crate::interrupt::requested() => return Err(Error::interrupted()),
                Ok(None) if Instant::now() >= deadline => break None,
                Ok(None) => std::thread::sleep(pause),
                Err(error) => return Err(Error::harness("cannot wait for a job").with_source(error)),
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        crate::interrupt::check()?;
        self.end();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let code = status.and_then(|status| status.code());
        if code == Some(sandbox::SETUP_FAILED) && stderr.contains(sandbox::TROUBLE) {
            let kind = stderr.contains(NO_MORE).then_some(ErrorKind::NoMoreNamespaces);
            return Err(Error::harness("the sandbox could not be set up")
                .with_kind(kind)
                .with_detail(stderr));
        }
        Ok(Finished { code: code.filter(|code| *code < 128), timed_out: status.is_none(), stdout, stderr })
    }

    fn end(&mut self) {
        self.serving = None;
        self.requests = None;
        self.let_it_end();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        self.end();
    }
}
