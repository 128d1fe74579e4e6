//! Local processes in a sandbox of kernel namespaces: no network, own processes, read-only system, no way to the
//! user's files. The work is done by [`super::sandbox`], in this same program started again.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::sandbox::{self, Plan};
use super::{Backend, Finished, Isolation, Job, JobLimits, Mount, Network, Places, Process, Tail};
use crate::error::{Error, Result};

/// Runs jobs on this machine.
#[derive(Debug)]
pub struct LocalBackend {
    helper: PathBuf,
    places: Places,
    isolation: Isolation,
}

impl LocalBackend {
    /// Tries the sandbox once. `helper` is the gistmill program itself.
    ///
    /// # Errors
    /// When the machine does not allow the namespaces that the sandbox is made of.
    pub fn new(helper: &Path) -> Result<Self> {
        let backend = LocalBackend {
            helper: helper.to_owned(),
            places: Places::in_sandbox(),
            isolation: Isolation { kind: "namespaces".into(), missing: missing() },
        };
        backend.probe()?;
        Ok(backend)
    }

    fn probe(&self) -> Result<()> {
        let job = Job {
            argv: vec!["/bin/true".into()],
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            cwd: "/".into(),
            mounts: vec![Mount::Tmpfs { inside: "/tmp".into(), bytes: 1 << 20 }],
            network: Network::Off,
            may_mount: true,
            limits: JobLimits::default(),
            channel: false,
        };
        let finished = self.run(&job, Duration::from_secs(20))?;
        if finished.success() {
            return Ok(());
        }
        Err(Error::machine("this machine does not allow the sandbox that repositories run in")
            .with_detail(finished.stderr.trim().to_owned())
            .with_hint(
                "gistmill needs user, mount, process and network namespaces: allow unprivileged user namespaces \
                 (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0) or, in a \
                 container, start it with --privileged",
            ))
    }
}

/// What even the whole sandbox does not give on this machine.
fn missing() -> Vec<String> {
    let mut missing = vec!["source distributions of dependencies are built with the network on".to_owned()];
    if nix::unistd::geteuid().is_root() {
        missing.push("a user outside without privileges: gistmill runs as root".to_owned());
    }
    missing
}

impl Backend for LocalBackend {
    fn places(&self) -> &Places {
        &self.places
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn start(&self, job: &Job) -> Result<Box<dyn Process>> {
        Ok(Box::new(LocalProcess::start(&self.helper, job)?))
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
}

impl LocalProcess {
    fn start(helper: &Path, job: &Job) -> Result<Self> {
        let plan = Plan {
            argv: job.argv.clone(),
            env: job.env.clone(),
            cwd: job.cwd.clone(),
            mounts: job.mounts.clone(),
            network: job.network,
            may_mount: job.may_mount,
            limits: job.limits,
            channel: job.channel,
        };
        let text = serde_json::to_vec(&plan)
            .map_err(|error| Error::internal("cannot encode a sandbox plan").with_source(error))?;
        let mut child = Command::new(helper)
            .arg("__sandbox")
            .env_clear()
            // Ctrl-C at the terminal is for the driver alone: it ends its jobs itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Error::from(error).at(format!("cannot start {}", helper.display())))?;
        let mut requests = child.stdin.take();
        if let Some(pipe) = requests.as_mut() {
            let length = u32::try_from(text.len()).map_err(|_| Error::internal("sandbox plan too long"))?;
            pipe.write_all(&length.to_be_bytes())
                .and_then(|()| pipe.write_all(&text))
                .map_err(|error| Error::harness("cannot hand the plan to the sandbox").with_source(error))?;
        }
        let (stdout, stderr) = (Tail::default(), Tail::default());
        let mut readers = Vec::new();
        readers.extend(child.stderr.take().map(|stream| stderr.follow(stream)));
        let mut answers = child.stdout.take();
        if !job.channel {
            readers.extend(answers.take().map(|stream| stdout.follow(stream)));
        }
        Ok(LocalProcess { child, requests, answers, stdout, stderr, readers })
    }
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
            return Err(Error::harness("the sandbox could not be set up").with_detail(stderr));
        }
        Ok(Finished { code: code.filter(|code| *code < 128), timed_out: status.is_none(), stdout, stderr })
    }

    fn end(&mut self) {
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        self.end();
    }
}
