//! What every step of an environment shares, and how a step's job is made and run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::step::{IN, Step};
use super::toolchain::Toolchains;
use super::uv::{self, Uv};
use crate::backend::{Backend, Finished, Job, JobLimits, Mount, retry};
use crate::environment::plan::failure::{Failure, StepError, StepResult};
use crate::environment::plan::python::Interpreter;
use crate::error::{self, Error, Result};
use crate::index::Index;
use crate::record::moment::Moment;
use crate::redact::Hosts;
use crate::store::Cache;

/// What all steps of one environment share.
#[derive(Clone)]
pub struct Tooling {
    pub backend: Arc<dyn Backend>,
    pub uv: Uv,
    pub python: Interpreter,
    pub index: Arc<Index>,
    /// Nothing uploaded later is installed.
    pub exclude_newer: Moment,
    /// Distributions that belong to the tree, and where it declares them: no index is asked for one.
    pub refused: BTreeMap<String, String>,
    pub hosts: Hosts,
    /// The environment's folder on the host.
    pub folder: PathBuf,
    /// Wheels that were built of source distributions, shared by all environments.
    pub wheels: PathBuf,
    /// The image that environments stand on; none for this machine itself.
    pub base_image: Option<String>,
    pub cache: Cache,
    /// For builds that compile Rust.
    pub toolchains: Toolchains,
}

impl Tooling {
    /// Fresh folders for one job.
    pub fn step(&self) -> Result<Step> {
        Step::new(&self.folder.join("steps"))
    }

    /// A job that sees the interpreter, the folders of its step, and these mounts.
    pub fn job(&self, argv: Vec<String>, step: &Step, more: Vec<Mount>) -> Job {
        let places = self.backend.places();
        let mut mounts = step.mounts(places);
        mounts.push(Mount::Tmpfs { inside: "/dev/shm".into(), bytes: SHARED_MEMORY });
        if self.python.prefix != Path::new("/usr") {
            mounts.push(Mount::ReadOnly {
                host: self.python.prefix.clone(),
                inside: self.python.prefix.clone(),
            });
        }
        mounts.extend(more);
        let env = [
            ("HOME", places.home.to_string_lossy().into_owned()),
            ("TMPDIR", places.tmp.to_string_lossy().into_owned()),
            ("PATH", SYSTEM_PATH.to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ];
        Job {
            argv,
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            cwd: IN.into(),
            mounts,
            may_mount: false,
            limits: JobLimits { memory: 0, processes: MOST_PROCESSES, file_size: LARGEST_FILE },
            channel: false,
            service: None,
        }
    }

    /// A full disk is nobody's but the machine's: no other plan would do better. Foreign code that speaks of one is believed
    /// only where the disk is full indeed.
    pub fn disk_trouble(&self, stage: &str, text: &str, is_foreign: bool) -> Option<Error> {
        let said = error::says_disk_is_full(text);
        let local = self.backend.shows_host_system();
        if !said || is_foreign && !(local && is_full(&self.folder)) {
            return None;
        }
        if !local {
            return Some(Error::machine(format!("{stage}: the engine's disk is full")).with_hint(
                "free space there (`gistmill clean`, `docker system prune`) and run the same command again",
            ));
        }
        let message = format!("{stage}: the disk that holds {} is full", self.folder.display());
        Some(Error::machine(message).with_hint(error::DISK_HINT))
    }

    /// Runs a job that must exit with 0.
    pub fn run(&self, stage: &str, job: &Job, limit: Duration) -> StepResult<Finished> {
        let finished = retry::run(&*self.backend, job, limit)?;
        if finished.success() {
            return Ok(finished);
        }
        let text = format!("{}\n{}", finished.stdout, finished.stderr);
        let mut output = self.hosts.tail(&text);
        if finished.timed_out {
            output = format!("{output}\ntook longer than {} minutes", limit.as_secs() / 60);
        }
        if let Some(trouble) = self.disk_trouble(stage, &text, job.service.is_none()) {
            return Err(StepError::Fatal(trouble.with_detail(output)));
        }
        let hint = if job.service.is_some() { uv::hint(&text) } else { hook_hint(&text) };
        let unknown = uv::unknown_distributions(&text);
        Err(StepError::Recoverable(Failure {
            stage: stage.to_owned(),
            output,
            hint,
            unknown,
            is_refused: false,
        }))
    }
}

/// Whether less than this is left on the disk of a folder.
const NEARLY_FULL: u64 = 64 << 20;

fn is_full(folder: &Path) -> bool {
    nix::sys::statvfs::statvfs(folder)
        .is_ok_and(|disk| disk.blocks_available().saturating_mul(disk.fragment_size()) < NEARLY_FULL)
}

/// Processes of a job, and bytes of one file that it writes.
const MOST_PROCESSES: u64 = 8192;
const LARGEST_FILE: u64 = 8 << 30;

/// Builds and the byte-code compiler use semaphores, which lie in shared memory.
const SHARED_MEMORY: u64 = 256 << 20;
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The way out of a build that speaks of Rust; the build knows better what it lacks.
pub(in crate::environment) const RUST_HINT: &str = "the build compiles Rust and has no network: it works where the source has a `Cargo.lock`, whose crates \
     are fetched and checked by its hashes, and this machine, or the image (`backend = \"docker\"`, `system_packages`), has \
     a Rust toolchain";
const HOOK_HINT: &str =
    "the tree's own build failed offline in the sandbox; see its output, and try another `python`";

/// The way out of a build that failed for want of what no wheel brings.
fn hook_hint(output: &str) -> &'static str {
    const RUST: [&str; 5] = ["puccinialin", "Rust toolchain", "Rust compiler", "cargo metadata", "rustc"];
    const C: [&str; 5] = [
        "fatal error: ",
        "cannot find -l",
        "command 'gcc' failed",
        "Unknown compiler(s)",
        // As rustc says it.
        "linker `cc` not found",
    ];
    let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if says(&RUST) && !says(&C) {
        RUST_HINT
    } else if says(&C) {
        "the build lacks a compiler, a header or a library, which its output names: install its package on this machine, or \
         set `backend = \"docker\"` with `system_packages`"
    } else {
        HOOK_HINT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_lacks_a_compiler_says_which() {
        assert_eq!(hook_hint("ModuleNotFoundError: puccinialin"), RUST_HINT);
        assert_eq!(hook_hint("error: can't find Rust compiler"), RUST_HINT);
        assert!(hook_hint("rustc --crate-name x\nerror: linker `cc` not found").contains("compiler"));
        assert!(hook_hint("x.c:1:10: fatal error: hdf5.h: No such file or directory").contains("header"));
        assert_eq!(hook_hint("ValueError: no version"), HOOK_HINT);
    }
}
