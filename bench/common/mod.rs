//! What the benchmarks share: a prepared repository, and passes over its groups.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Instant;

use gistmill::attempt::pool::Event;
use gistmill::attempt::tasks;
use gistmill::backend::local::Strictness;
use gistmill::config;
use gistmill::environment::Tools;
use gistmill::machine::Machine;
use gistmill::pipeline::Request;
use gistmill::pipeline::prepare::{Preparation, Prepared};
use gistmill::pipeline::session::Session;
use gistmill::progress::Progress;
use gistmill::record::collected::Group;
use gistmill::record::id::sha256_hex;
use gistmill::rules::RuleSet;
use gistmill::runner::protocol::TraceMode;
use gistmill::store::Cache;

pub type AnyError = Box<dyn std::error::Error>;

/// A session on a prepared repository.
pub struct Subject(Session);

impl Deref for Subject {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl DerefMut for Subject {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.0
    }
}

impl Subject {
    /// The config that the command line names, or bench/flask.toml; cache and output are below the target directory.
    pub fn from_arguments(jobs: usize) -> Result<Self, AnyError> {
        let named = crate::arguments().into_iter().find(|argument| !argument.starts_with("--"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = named.map_or_else(|| root.join("bench/flask.toml"), PathBuf::from);
        Self::open(&path, &folder().join("cache"), jobs)
    }

    /// A config and a cache of one's own.
    pub fn open(config: &Path, cache: &Path, jobs: usize) -> Result<Self, AnyError> {
        let cache = Cache::open(cache)?;
        let config = config::load(config, &|_, _| None)?;
        let program = Path::new(env!("CARGO_BIN_EXE_gistmill"));
        Ok(Subject(Session {
            machine: Machine::new(program, &cache, &config, &[], (Strictness::Best, None))?,
            public_config: config::to_public_json(&config),
            config,
            tools: Tools::find(&cache)?,
            rules: RuleSet::shipped(),
            progress: Progress::for_terminal(),
            request: Request::whole(folder().join("output"), jobs),
            cache,
            config_name: None,
        }))
    }

    /// The first repository of the config, collected; its name and size are printed.
    pub fn prepare(&self) -> Result<Prepared, AnyError> {
        let repo = self.config.repos.first().ok_or("the config has no repository")?;
        let prepared = Preparation::new(&self.pipeline(), repo).run()?;
        println!(
            "{} at {}: {} cases in {} groups, Python {}, pytest {}",
            repo.slug,
            &prepared.pinned.commit[..12.min(prepared.pinned.commit.len())],
            prepared.collected.node_ids.len(),
            prepared.collected.groups.len(),
            prepared.lab.built.python,
            prepared.collected.pytest,
        );
        Ok(prepared)
    }
}

/// Where benchmarks keep what they make.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench")
}

/// Milliseconds per attempt when every group is run once in the base world: interpreters, conftests and files included.
pub fn fork(prepared: &Prepared, trace: TraceMode) -> Result<f64, AnyError> {
    let world = prepared.lab.base();
    let pool = prepared.lab.pool(&prepared.collected.groups, &world);
    let wanted: Vec<(usize, u32)> = (0..pool.groups.len()).map(|group| (group, 1)).collect();
    let tasks = tasks(pool.groups, &wanted, &BTreeMap::new(), 0, trace, pool.expected());
    let (started, mut done) = (Instant::now(), 0);
    pool.run(tasks, |event| {
        if let Event::Broken(error) = event {
            Err(error)
        } else {
            done += 1;
            Ok(())
        }
    })?;
    Ok(milliseconds(started) / f64::from(done))
}

/// Milliseconds per cold run of the literal entry command.
pub fn cold(prepared: &Prepared, sample: &[(usize, &Group)]) -> Result<f64, AnyError> {
    let started = Instant::now();
    prepared.lab.cold(sample, &|_| true, |_, _| Ok(()))?;
    Ok(milliseconds(started) / sample.len() as f64)
}

/// The same groups every time, spread over the suite by hash.
pub fn sample(groups: &[Group], size: usize) -> Vec<(usize, &Group)> {
    let mut sample: Vec<(usize, &Group)> = groups.iter().enumerate().collect();
    sample.sort_by_key(|(_, group)| sha256_hex(group.group_id.as_bytes()));
    sample.truncate(size);
    sample
}

pub fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}
