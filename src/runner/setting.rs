//! What a runner needs to start: environment, tree, world and limits, and the job that they make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::protocol::RunnerWorld;
use crate::backend::{Job, JobLimits, Mount, Places};
use crate::record::limits::EMPTIED;

/// Bytes of each in-memory file system inside.
const TMPFS_BYTES: u64 = 1 << 30;
/// What an attempt may write to its tree, in bytes.
pub const TREE_BYTES: u64 = 2 << 30;

/// Everything that a runner needs to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Where things are inside.
    pub places: Places,
    /// The environment and tree to run in.
    pub python_prefix: PathBuf,
    pub venv: PathBuf,
    pub tree: PathBuf,
    /// The complete environment of the world.
    pub env: BTreeMap<String, String>,
    /// Directory of the embedded runner.
    pub runner: PathBuf,
    pub limits: JobLimits,
    pub output_bytes: u64,
    /// Whether attempts see the tree through overlays; off only to warm byte code up.
    pub overlays: bool,
    /// What the world shows in place of, or beside, what exists.
    pub more_mounts: Vec<Mount>,
    /// Further places where tests may write.
    pub more_writable: Vec<PathBuf>,
    /// What the runner itself does to make the world.
    pub world: RunnerWorld,
}

impl Setting {
    /// Directories where tests may write, beside the tree.
    pub fn writable(&self) -> Vec<PathBuf> {
        let mut writable = vec![self.places.tmp.clone(), self.places.home.clone()];
        writable.extend(EMPTIED.map(PathBuf::from));
        writable.extend(self.more_writable.iter().cloned());
        let mut seen = std::collections::BTreeSet::new();
        writable.retain(|path| seen.insert(path.clone()));
        writable
    }

    /// The mounts that every run of tests sees, the tree as given.
    pub fn mounts(&self, tree: Mount) -> Vec<Mount> {
        let tmpfs = |inside: PathBuf| Mount::Tmpfs { inside, bytes: TMPFS_BYTES };
        let mut mounts: Vec<Mount> = self.writable().into_iter().map(tmpfs).collect();
        if !self.python_prefix.starts_with("/usr") {
            let prefix = self.python_prefix.clone();
            mounts.push(Mount::ReadOnly { host: prefix.clone(), inside: prefix });
        }
        // What the machine has installed is not part of the environment: neither what tests may find nor what they may copy.
        let mut prefixes =
            vec![PathBuf::from("/usr"), PathBuf::from("/usr/local"), self.python_prefix.clone()];
        prefixes.dedup();
        mounts.extend(prefixes.into_iter().map(|prefix| Mount::NoPackages { prefix }));
        mounts.push(Mount::ReadOnly { host: self.venv.clone(), inside: self.places.venv.clone() });
        mounts.push(tree);
        mounts.extend(self.more_mounts.iter().cloned());
        mounts
    }

    /// A setting for a tree with its environment, in the conditions of `env`.
    pub fn for_tree(
        places: &Places,
        python_prefix: &Path,
        venv: &Path,
        tree: &Path,
        env: BTreeMap<String, String>,
        runner: &Path,
        limits: &crate::record::limits::Limits,
    ) -> Self {
        Setting {
            places: places.clone(),
            python_prefix: python_prefix.to_owned(),
            venv: venv.to_owned(),
            tree: tree.to_owned(),
            env,
            runner: runner.to_owned(),
            limits: JobLimits {
                memory: limits.memory,
                processes: limits.processes,
                file_size: limits.file_size,
            },
            output_bytes: limits.output,
            overlays: true,
            more_mounts: Vec::new(),
            more_writable: Vec::new(),
            world: RunnerWorld::default(),
        }
    }

    /// The job of a command in the tree; what it writes there is gone with it.
    pub fn command(&self, argv: Vec<String>) -> Job {
        let (host, inside) = (self.tree.clone(), self.places.root.clone());
        Job {
            argv,
            env: self.env.clone(),
            cwd: inside.clone(),
            mounts: self.mounts(Mount::Overlay { host, inside, bytes: TREE_BYTES }),
            may_mount: false,
            limits: self.limits,
            channel: false,
            service: None,
        }
    }

    /// The job that starts a runner.
    pub fn job(&self) -> Job {
        let places = &self.places;
        let (host, inside) = (self.tree.clone(), places.root.clone());
        let tree =
            if self.overlays { Mount::ReadOnly { host, inside } } else { Mount::Writable { host, inside } };
        let mut mounts = self.mounts(tree);
        mounts.push(Mount::Tmpfs { inside: places.scratch.clone(), bytes: TREE_BYTES });
        mounts.push(Mount::ReadOnly { host: self.runner.clone(), inside: places.runner.clone() });
        let main = places.runner.join("gistmill_runner/__main__.py");
        Job {
            argv: vec![
                places.venv.join("bin/python").to_string_lossy().into_owned(),
                // The keeper runs nothing that is in the environment.
                "-I".into(),
                "-S".into(),
                main.to_string_lossy().into_owned(),
                "--in-fd".into(),
                "3".into(),
                "--out-fd".into(),
                "4".into(),
            ],
            env: self.env.clone(),
            cwd: places.root.clone(),
            mounts,
            may_mount: self.overlays,
            limits: self.limits,
            channel: true,
            service: None,
        }
    }
}
