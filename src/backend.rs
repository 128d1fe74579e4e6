//! Backends: a [`Job`] goes in, a running [`Process`] comes out. A backend serves stages and names none of them.

mod cgroup;
pub mod clock;
pub mod docker;
pub mod local;
pub(crate) mod logged;
pub mod retry;
pub mod sandbox;
mod service;
mod shown;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Where things lie as the code of a repository sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Root of the tree, `/testbed` in a sandbox.
    pub root: PathBuf,
    /// The virtual environment, `/opt/venv` in a sandbox.
    pub venv: PathBuf,
    pub home: PathBuf,
    pub tmp: PathBuf,
    /// The embedded runner's directory.
    pub runner: PathBuf,
    /// Private space of the runner for overlay layers.
    pub scratch: PathBuf,
}

impl Places {
    /// Where things lie in a sandbox, in the base world.
    pub fn in_sandbox() -> Self {
        Places {
            root: "/testbed".into(),
            venv: "/opt/venv".into(),
            home: format!("/home/{}", sandbox::USER).into(),
            tmp: "/tmp".into(),
            runner: "/opt/gistmill".into(),
            scratch: "/run/scratch".into(),
        }
    }

    /// The words of a command with its program, `python` or a script of the environment, by its path.
    pub fn in_environment(&self, mut words: Vec<String>) -> Vec<String> {
        if let Some(program) = words.first_mut() {
            *program = self.venv.join("bin").join(&*program).to_string_lossy().into_owned();
        }
        words
    }
}

/// One command to run, as data. No job reaches a network: only its loopback.
#[derive(Debug, Clone)]
pub struct Job {
    /// Program (path as seen inside) and arguments.
    pub argv: Vec<String>,
    /// The complete environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Working directory as seen inside.
    pub cwd: PathBuf,
    pub mounts: Vec<Mount>,
    /// Keep the right to mount inside the sandbox's own namespace, for per-attempt overlays.
    pub may_mount: bool,
    pub limits: JobLimits,
    /// Two extra pipes: requests on descriptor 3, answers on descriptor 4.
    pub channel: bool,
    /// A service of the driver that the job reaches at [`SERVICE_PORT`] of its own loopback.
    pub service: Option<Arc<dyn Service>>,
}

/// Where a job finds its [`Service`], on 127.0.0.1 of its own network namespace.
pub const SERVICE_PORT: u16 = 3141;

/// One connection of a job to a service of the driver.
#[derive(Debug)]
pub enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Something that the driver answers while a job runs. What arrives is hostile.
pub trait Service: Send + Sync + std::fmt::Debug {
    /// Serves one connection to its end, on a thread of its own.
    fn serve(&self, connection: Connection);
}

impl Job {
    /// A program of the system that needs little: offline, in `/`, with the system's `PATH` and an empty `/tmp` of 1
    /// MiB.
    pub fn small<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Job {
            argv: argv.into_iter().map(Into::into).collect(),
            env: [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into(),
            cwd: "/".into(),
            mounts: vec![Mount::Tmpfs { inside: "/tmp".into(), bytes: 1 << 20 }],
            may_mount: false,
            limits: JobLimits::default(),
            channel: false,
            service: None,
        }
    }
}

/// Something of the host that the job sees, beyond the read-only system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mount {
    ReadOnly {
        host: PathBuf,
        inside: PathBuf,
    },
    Writable {
        host: PathBuf,
        inside: PathBuf,
    },
    /// A place to write to that nobody reads afterwards. On this machine it is the folder `host`; elsewhere it is empty at
    /// first and gone with the job.
    Scratch {
        host: PathBuf,
        inside: PathBuf,
    },
    /// Looks like `host`; what is written stays in memory, bounded in bytes, and goes with the job.
    Overlay {
        host: PathBuf,
        inside: PathBuf,
        bytes: u64,
    },
    /// Empty, private, in memory, bounded in bytes.
    Tmpfs {
        inside: PathBuf,
        bytes: u64,
    },
    /// What is installed for the interpreters below a prefix is not there: their folders of packages, and the wheels that
    /// they bring along, are empty. Their standard library stays.
    NoPackages {
        prefix: PathBuf,
    },
}

/// Limits of a job; 0 = none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLimits {
    /// Address space per process, bytes.
    pub memory: u64,
    pub processes: u64,
    pub file_size: u64,
}

/// What is in force between a repository's code and the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// `namespaces`; `docker` or `podman` for namespaces inside a container; which of them are missing.
    pub kind: String,
    /// What is missing from full isolation, in words; empty when nothing is.
    pub missing: Vec<String>,
}

/// How a job ended, and what it printed (bounded tails).
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit code; none when killed by a signal or over the time limit.
    pub code: Option<i32>,
    pub timed_out: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Whether the command exited with 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// A place where jobs run.
pub trait Backend: Send + Sync {
    /// Where things lie inside.
    fn places(&self) -> &Places;
    /// What is in force.
    fn isolation(&self) -> &Isolation;
    /// Whether jobs see the host's own system: its programs, libraries and certificates.
    fn shows_host_system(&self) -> bool {
        true
    }
    /// Whether jobs run on the processors of this machine.
    fn shares_processors(&self) -> bool {
        true
    }
    /// Starts a job; dropping the process ends it and everything that it started.
    ///
    /// # Errors
    /// The machine's or the harness's trouble; what the job itself does is no error.
    fn start(&self, job: &Job) -> Result<Box<dyn Process>>;
    /// Runs a job to its end, or to the time limit.
    ///
    /// # Errors
    /// Those of [`Backend::start`] and [`Process::wait`].
    fn run(&self, job: &Job, limit: Duration) -> Result<Finished> {
        self.start(job)?.wait(limit)
    }
}

/// A sandbox whose command has ended has ended itself after this time, however many processes are left in it.
const LONGEST_END: Duration = Duration::from_mins(2);

/// A running job. Dropping it ends the job and everything that it started.
pub trait Process: Send + std::fmt::Debug {
    /// What answers are read from, once; only for jobs with a channel.
    fn take_answers(&mut self) -> Option<Box<dyn Read + Send>>;
    /// What requests are written to; only for jobs with a channel.
    fn requests(&mut self) -> Option<&mut dyn Write>;
    /// What the job printed to stderr so far (with a channel: stdout too), the last part.
    fn log(&self) -> String;
    /// How many processes the kernel has ended so far because the job held all the memory that it may, and how much that
    /// is in bytes; none where that is not counted.
    fn out_of_memory(&self) -> Option<(u64, u64)> {
        None
    }
    /// The process of this machine below which all of the job runs; none where there is none.
    fn host_process(&self) -> Option<u32> {
        None
    }
    /// Exit code of the command in its sandbox (128 and the signal that killed it), as far as it can be told within
    /// [`LONGEST_END`].
    fn code_inside(&mut self) -> Option<i32>;
    /// Waits for the end; ends the job when the limit is over.
    ///
    /// # Errors
    /// When the job could not be set up or its end cannot be learned, or an interruption.
    fn wait(self: Box<Self>, limit: Duration) -> Result<Finished>;
    /// Ends the job and everything in it, now.
    fn end(&mut self);
}

/// Bytes of a job's stdout and stderr that are kept, each: the last ones.
const TAIL_BYTES: usize = 256 * 1024;

/// The last bytes of a stream, shared with the thread that reads it.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn push(&self, more: &[u8]) {
        let mut bytes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        bytes.extend_from_slice(more);
        if bytes.len() > 2 * TAIL_BYTES {
            let excess = bytes.len() - TAIL_BYTES;
            bytes.drain(..excess);
        }
    }

    fn follow(&self, mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let tail = self.clone();
        std::thread::spawn(move || {
            let mut buffer = [0_u8; 16 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                tail.push(&buffer[..length]);
            }
        })
    }
}
