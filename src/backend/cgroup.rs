//! Control groups of the kernel (version 2): what all processes of a job hold together is bounded, whatever it is made
//! of: private memory, shared memory, files in memory.
//!
//! ```text
//! <parent>/gistmill-<process>-<n>/    one for a running gistmill, which holds a lock on it; all of its jobs together
//!     job-<n>                         one for a job, while it runs
//! <parent>/gistmill-driver/           gistmill itself, when the parent is its own group
//! ```
//!
//! The parent is the group that gistmill itself is in, or the nearest one above it that may be written. No bound of a
//! group is left on the way up. What a gistmill that was killed leaves is removed by the next one.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::JobLimits;
use crate::store::Lock;

const PREFIX: &str = "gistmill-";
/// Where gistmill itself moves, out of the way of its jobs.
const ASIDE: &str = "gistmill-driver";
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Processes of the sandbox itself.
const OF_THE_SANDBOX: u64 = 2;
/// How often, and how long after one another, a group is removed in which processes are still ending.
const REMOVALS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(2);

/// The group of this gistmill.
#[derive(Debug)]
pub(super) struct ControlGroups {
    folder: PathBuf,
    /// Says that this gistmill lives.
    _lock: Lock,
    /// Memory that jobs without a limit of their own may hold, each, in bytes.
    memory: u64,
    next: AtomicU64,
    /// Groups of jobs whose processes were still ending.
    left: Mutex<Vec<PathBuf>>,
}

impl ControlGroups {
    /// Makes the group of this gistmill.
    ///
    /// # Errors
    /// When the machine has no such groups, or none that this user may write.
    pub(super) fn make() -> Result<Self> {
        let mounts = fs_err::read_to_string("/proc/self/mountinfo")?;
        let own = fs_err::read_to_string("/proc/self/cgroup")?;
        let (top, own) = place(&mounts, &own)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "no control groups of version 2 are mounted"))?;
        let installed = installed_memory()?;
        move_aside(&own);
        let mut trouble = None;
        for parent in own.ancestors().take_while(|folder| folder.starts_with(&top)) {
            match Self::below(parent, &top, installed) {
                Ok(made) => return Ok(made),
                Err(error) => trouble = trouble.or(Some(error)),
            }
            if bounded(parent)? {
                break;
            }
        }
        Err(trouble.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }

    fn below(parent: &Path, top: &Path, installed: u64) -> Result<Self> {
        // Whoever moves a process must be allowed to in the group above both.
        fs_err::OpenOptions::new().write(true).open(parent.join("cgroup.procs"))?;
        give_controllers(parent)?;
        sweep(parent);
        let (folder, lock) = claim(parent)?;
        let bounds = parent.ancestors().take_while(|folder| folder.starts_with(top)).map(memory_bound);
        let most = bounds.flatten().fold(installed, u64::min);
        let group = ControlGroups {
            folder,
            _lock: lock,
            memory: (most / 4 * 3) >> 20 << 20,
            next: AtomicU64::new(0),
            left: Mutex::default(),
        };
        give_controllers(&group.folder)?;
        write(&group.folder, "memory.max", most / 8 * 7)?;
        Ok(group)
    }

    /// A group for one job.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn job(self: &std::sync::Arc<Self>, limits: JobLimits) -> Result<JobGroup> {
        self.lock_left().retain(|folder| fs_err::remove_dir(folder).is_err() && folder.exists());
        let folder = self.folder.join(format!("job-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        fs_err::create_dir(&folder)?;
        let memory = if limits.memory > 0 { limits.memory } else { self.memory };
        let group = JobGroup { folder, memory, owner: std::sync::Arc::clone(self) };
        write(&group.folder, "memory.max", memory)?;
        if group.folder.join("memory.swap.max").exists() {
            write(&group.folder, "memory.swap.max", 0)?;
        }
        if limits.processes > 0 {
            write(&group.folder, "pids.max", limits.processes.saturating_add(OF_THE_SANDBOX))?;
        }
        Ok(group)
    }

    fn lock_left(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for folder in self.lock_left().drain(..) {
            remove(&folder);
        }
        remove(&self.folder);
    }
}

/// The group of one job; dropping it ends what is left in it and removes it.
#[derive(Debug)]
pub(super) struct JobGroup {
    folder: PathBuf,
    memory: u64,
    owner: std::sync::Arc<ControlGroups>,
}

impl JobGroup {
    /// Takes a process in, and all that it starts from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn take(&self, process: u32) -> Result<()> {
        write(&self.folder, "cgroup.procs", u64::from(process))
    }

    /// How many processes the kernel ended because the job held all the memory that it may, and how much that is in
    /// bytes.
    pub(super) fn out_of_memory(&self) -> (u64, u64) {
        let events = fs_err::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
        (killed.unwrap_or(0), self.memory)
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        // Kernels before 5.14 do not have it; the sandbox ends its processes by itself.
        let _ = write(&self.folder, "cgroup.kill", 1);
        if !remove(&self.folder) {
            self.owner.lock_left().push(std::mem::take(&mut self.folder));
        }
    }
}

fn write(folder: &Path, name: &str, value: u64) -> Result<()> {
    fs_err::write(folder.join(name), value.to_string())
}

/// Removes an empty group; false when something is still in it.
fn remove(folder: &Path) -> bool {
    for _ in 0..REMOVALS {
        match fs_err::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            _ => return true,
        }
    }
    false
}

/// Where the groups are mounted, and the group of this process below that.
fn place(mounts: &str, own: &str) -> Option<(PathBuf, PathBuf)> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, target) = (words.next()?, words.next()?);
        if kind.split(' ').next() != Some("cgroup2") || target.contains('\\') {
            return None;
        }
        let below = Path::new(own).strip_prefix(root).ok()?;
        Some((PathBuf::from(target), Path::new(target).join(below)))
    })
}

/// A group with processes of its own gives its children no controllers: when gistmill is alone in its group, it moves to
/// a child of it.
fn move_aside(own: &Path) {
    let process = std::process::id();
    let alone =
        fs_err::read_to_string(own.join("cgroup.procs")).is_ok_and(|text| text.trim() == process.to_string());
    if alone && own.join("cgroup.type").exists() && !own.ends_with(ASIDE) {
        let aside = own.join(ASIDE);
        let _ = fs_err::create_dir(&aside);
        // Where that is refused it stays where it is.
        let _ = write(&aside, "cgroup.procs", u64::from(process));
    }
}

/// Has the children of a group bound memory and processes.
fn give_controllers(folder: &Path) -> Result<()> {
    let given = fs_err::read_to_string(folder.join("cgroup.subtree_control"))?;
    for name in CONTROLLERS {
        if !given.split_whitespace().any(|one| one == name) {
            fs_err::write(folder.join("cgroup.subtree_control"), format!("+{name}"))?;
        }
    }
    Ok(())
}

/// The bound on memory of a group, if it has one.
fn memory_bound(folder: &Path) -> Option<u64> {
    fs_err::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()
}

/// Whether whoever leaves this group leaves a bound.
fn bounded(folder: &Path) -> Result<bool> {
    for name in ["memory.max", "memory.high", "cpu.max"] {
        match fs_err::read_to_string(folder.join(name)) {
            Ok(text) if !text.starts_with("max") => return Ok(true),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}

/// A new group below `parent`, locked.
fn claim(parent: &Path) -> Result<(PathBuf, Lock)> {
    for number in 0..100 {
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match fs_err::create_dir(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        // Until it is locked, another gistmill may take it for one that was left.
        if let Some(lock) = lock(&folder)
            && folder.exists()
        {
            return Ok((folder, lock));
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn lock(folder: &Path) -> Option<Lock> {
    Lock::try_folder(folder).ok().flatten()
}

/// Removes what a gistmill has left that does not live any more, where nothing runs in it.
fn sweep(parent: &Path) {
    let folders = |folder: &Path, prefix: &'static str| {
        let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(move |entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    for folder in folders(parent, PREFIX) {
        let Some(_lock) = lock(&folder) else { continue };
        for job in folders(&folder, "job-") {
            let _ = fs_err::remove_dir(job);
        }
        let _ = fs_err::remove_dir(folder);
    }
}

/// Memory of this machine in bytes.
fn installed_memory() -> Result<u64> {
    let text = fs_err::read_to_string("/proc/meminfo")?;
    let kibibytes = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.map(|number| number << 10).ok_or_else(|| Error::new(ErrorKind::InvalidData, "no MemTotal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let line = "36 31 0:31 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = place(line, "4:memory:/x\n0::/user.slice/a.scope\n").unwrap();
        assert_eq!(found.0, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/unified/user.slice/a.scope"));
    }

    #[test]
    fn a_mount_that_shows_part_of_the_groups_is_followed_from_there() {
        let line = "36 31 0:31 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let found = place(line, "0::/docker/ab/inner\n").unwrap();
        assert_eq!(found.1, Path::new("/sys/fs/cgroup/inner"));
        assert_eq!(place(line, "0::/elsewhere\n"), None);
    }

    #[test]
    fn without_groups_of_version_2_there_is_no_place() {
        let line = "36 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(place(line, "0::/\n"), None);
        assert_eq!(place(line, "4:memory:/x\n"), None);
    }

    #[test]
    fn groups_are_claimed_and_what_a_gistmill_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("gistmill-1-0");
        fs_err::create_dir_all(left.join("job-3")).unwrap();
        fs_err::create_dir(parent.path().join("other")).unwrap();
        let (own, lock) = claim(parent.path()).unwrap();
        fs_err::create_dir(own.join("job-0")).unwrap();
        sweep(parent.path());
        assert!(!left.exists() && own.join("job-0").exists() && parent.path().join("other").exists());
        let (second, _lock) = claim(parent.path()).unwrap();
        assert_ne!(second, own);
        drop(lock);
        sweep(parent.path());
        assert!(!own.exists() && second.exists());
    }

    #[test]
    fn no_bound_is_left_on_the_way_up() {
        let group = tempfile::tempdir().unwrap();
        let set = |name: &str, text: &str| fs_err::write(group.path().join(name), text).unwrap();
        assert!(!bounded(group.path()).unwrap());
        for (name, none, some) in
            [("memory.max", "max\n", "4096\n"), ("cpu.max", "max 100000\n", "5000 100000\n")]
        {
            set(name, none);
            assert!(!bounded(group.path()).unwrap(), "{name}");
            set(name, some);
            assert!(bounded(group.path()).unwrap(), "{name}");
            set(name, none);
        }
        set("memory.max", "4096\n");
        assert_eq!(memory_bound(group.path()), Some(4096));
    }
}
