//! A repository's way up to its groups: source → environment → collect.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::capabilities::Capabilities;
use crate::attempt::cold::Cold;
use crate::attempt::lab::Lab;
use crate::attempt::pool::Admission;
use crate::attempt::world::{self, WorldSetting};
use crate::backend::{Backend, Places, docker};
use crate::beneath::Folder;
use crate::collect;
use crate::config::{self, BackendKind, EntriesMode, Repo};
use crate::discovery;
use crate::environment::{self, Wish};
use crate::error::{Error, Fault, OrWhy, Result};
use crate::record::collected::Collected;
use crate::record::environment::{Built, ImageName};
use crate::record::family::Unit;
use crate::record::id::hash_parts;
use crate::record::outcome::Attempt;
use crate::record::source::Pinned;
use crate::record::verdict::Dimension;
use crate::runner::protocol::{AtFault, CollectError, CollectErrorKind, Discovered};
use crate::runner::{self, Setting};
use crate::screen;
use crate::source;
use crate::store::{Lock, mark_used, read_sealed, write_sealed_once};

use super::trial::{self, Trial, Tried};
use super::{Pipeline, shards};
use crate::machine::Host;

/// Raised when attempts made by an older version must not be reused.
const SCREEN_VERSION: &str = "screen-11";
/// Raised when entries that an older version found, or ran, must not be reused.
const ENTRIES_VERSION: &str = "entries-3";

/// A repository that is ready to be screened.
pub struct Prepared {
    pub pinned: Pinned,
    pub collected: Collected,
    /// Where its tests run; its folder also keeps attempts and traces.
    pub lab: Lab,
    /// The image that they run in, where they do.
    pub image: Option<ImageName>,
    /// Where attempts and traces are kept: that folder, or a shard's own.
    pub journals: PathBuf,
    /// Attempts of the first round that were made when the environment was tried, by index of the group.
    pub tried: BTreeMap<usize, Attempt>,
    /// Groups that were over the limits of that, or were not run because others of their file were.
    pub late: BTreeMap<usize, Attempt>,
    /// No other build that shares the cache appends to the journals. None for what does not append to them: it may stay for
    /// days, and a build goes on beside it.
    _lock: Option<Lock>,
}

impl Prepared {
    /// Another tree in the same environment, with journals of its own.
    ///
    /// # Errors
    /// IO errors.
    pub(super) fn on(&self, lab: Lab, pinned: Pinned, collected: Collected) -> Result<Prepared> {
        let journals = self.journals.join(&lab.built.key);
        fs_err::create_dir_all(&journals)?;
        let (tried, late) = Default::default();
        Ok(Prepared { pinned, collected, lab, image: self.image.clone(), journals, tried, late, _lock: None })
    }
}

/// One repository on its way to [`Prepared`].
pub struct Preparation<'a> {
    pipeline: &'a Pipeline<'a>,
    repo: &'a Repo,
    candidates: RefCell<Vec<Candidate>>,
    admission: Arc<Admission<'static>>,
    /// Whether others that write no attempts may have the same folder.
    is_beside_others: bool,
}

/// What was collected in a candidate for the environment.
struct Candidate {
    setting: Setting,
    tests: Vec<String>,
    /// Whether nothing was left out, unseen or because it hung.
    is_whole: bool,
    found: Discovered,
    pytest: String,
    trial: Option<Trial>,
}

impl<'a> Preparation<'a> {
    /// What is varied: tests stay in their place where a submission is not one of them.
    fn capabilities(&self, host: &Host) -> Capabilities {
        let mut capabilities = host.capabilities.clone();
        if self.pipeline.config.dataset.family.unit() != Unit::Group {
            capabilities.covered.remove(&Dimension::TestFileLocation);
        }
        capabilities
    }

    /// A repository at the start of its way.
    pub fn new(pipeline: &'a Pipeline<'a>, repo: &'a Repo) -> Self {
        let admission = Arc::new(Admission::shared(pipeline.request.jobs));
        Preparation { pipeline, repo, candidates: RefCell::default(), admission, is_beside_others: false }
    }

    /// For whoever writes no attempts: others of that kind may have the same folder at the same time.
    #[must_use]
    pub fn beside_others(self) -> Self {
        Preparation { is_beside_others: true, ..self }
    }

    /// All three stages.
    ///
    /// # Errors
    /// Those of each stage.
    pub fn run(&self) -> Result<Prepared> {
        let pinned = self.source()?;
        let built = self.environment(&pinned)?;
        self.collect(pinned, built)
    }

    fn title(&self, what: &str) -> String {
        format!("{} {what}", self.repo.slug)
    }

    /// The pinned tree.
    ///
    /// # Errors
    /// See [`source::pin`].
    pub fn source(&self) -> Result<Pinned> {
        let stage = self.pipeline.progress.stage(&self.title("source"), 0);
        let Pipeline { config, cache, tools, .. } = self.pipeline;
        source::pin((self.repo, &config.apart), cache, *tools, &|text| stage.message(text))
    }

    /// The built environment.
    ///
    /// # Errors
    /// See [`environment::build`].
    pub fn environment(&self, pinned: &Pinned) -> Result<Built> {
        let stage = self.pipeline.progress.stage(&self.title("environment"), 0);
        let progress = |text: &str| stage.message(text);
        let Pipeline { cache, tools, machine, .. } = *self.pipeline;
        let host = machine.host(self.repo, tools, &progress)?;
        let known = RefCell::new(Vec::new());
        let gate = |candidate: &environment::Candidate<'_>| self.gate(&host, &known, candidate, &progress);
        let tools = host.tools.as_ref().unwrap_or(tools);
        if self.repo.is_scripted {
            return environment::in_image(pinned, self.repo, (cache, tools), &progress);
        }
        environment::build(pinned, self.repo, cache, &host.backend, tools, &gate, &progress)
    }

    /// Collects in a candidate environment: does it hold what the tests import? What is written goes with the runner.
    /// Files that hang are `known` from then on, and not imported in the next candidate.
    pub(super) fn gate(
        &self,
        host: &Host,
        known: &RefCell<Vec<AtFault>>,
        candidate: &environment::Candidate<'_>,
        say: &dyn Fn(&str),
    ) -> Result<environment::GateReport> {
        let number = match candidate.wish {
            Wish::Run(number) => number,
            Wish::Collect | Wish::CollectAndRun => match self.candidate(host, known, candidate)? {
                Ok(number) => number,
                Err(failure) => {
                    let removed = environment::plan::removed::removed(&failure);
                    return Ok(environment::GateReport {
                        failure: Some(failure),
                        removed,
                        ..Default::default()
                    });
                }
            },
        };
        let mut candidates = self.candidates.borrow_mut();
        let collected =
            candidates.get_mut(number).ok_or_else(|| Error::internal("that candidate was not collected"))?;
        let mut report = environment::GateReport { collection: Some(number), ..report(&collected.found) };
        if candidate.wish != Wish::Collect {
            let timeouts = self.pipeline.config.screen.timeouts();
            let Candidate { setting, found, .. } = &*collected;
            let limits = (timeouts, &*self.admission);
            collected.trial =
                Some(trial::run(&host.backend, setting.clone(), found, limits, &mut report, say)?);
            report.trial = Some(number);
        }
        Ok(report)
    }

    /// Collects in a candidate environment, and gives its number, or why pytest finds nothing there.
    fn candidate(
        &self,
        host: &Host,
        known: &RefCell<Vec<AtFault>>,
        candidate: &environment::Candidate<'_>,
    ) -> Result<OrWhy<usize>> {
        let backend = &*host.backend;
        let runner = runner::unpack(self.pipeline.cache)?;
        let env = world::base_environment(backend.places(), candidate.env);
        let setting = Setting::for_tree(
            backend.places(),
            candidate.python_prefix,
            candidate.venv,
            candidate.tree,
            env,
            &runner,
            &self.pipeline.config.limits,
        );
        let wanted = collect::Wanted { tests: candidate.tests, options: &[], limit: self.import_limit() };
        let knew = !known.borrow().is_empty();
        let (found, pytest) = match self.discover(backend, &setting, &wanted, &known.borrow()) {
            Ok(found) => found,
            Err(error) if error.fault() == Fault::Repository => {
                return Ok(Err(format!("{error}\n{}", error.detail().unwrap_or_default())));
            }
            Err(error) => return Err(error),
        };
        let late = found.at_fault.iter().filter(|one| one.kind == CollectErrorKind::TimedOut);
        known.replace(late.cloned().collect());
        let (tests, is_whole) = (candidate.tests.to_vec(), !knew && found.at_fault.is_empty());
        let mut candidates = self.candidates.borrow_mut();
        candidates.push(Candidate { setting, tests, is_whole, found, pytest, trial: None });
        Ok(Ok(candidates.len() - 1))
    }

    /// What pytest collects; nothing where tests are left out.
    fn discover(
        &self,
        backend: &dyn Backend,
        setting: &Setting,
        wanted: &collect::Wanted<'_>,
        known: &[AtFault],
    ) -> Result<(Discovered, String)> {
        if self.repo.tests.as_ref().is_some_and(Vec::is_empty) {
            return Ok((Discovered::default(), String::new()));
        }
        collect::discover(backend, setting, wanted, known)
    }

    /// Adds the entries to what was collected.
    fn add_entries(
        &self,
        backend: &dyn Backend,
        (tree, setting): (&Folder, &Setting),
        collected: &mut Collected,
        say: &dyn Fn(&str),
    ) -> Result<()> {
        let entries = &self.repo.entries;
        if !entries.are_wanted() {
            return Ok(());
        }
        let scripts = collect::entries::scripts(&setting.venv)?;
        collect::entries::check(entries.asked(), tree, &scripts)?;
        let mut all = entries.asked().to_vec();
        if entries.mode == EntriesMode::Discover {
            let found = discovery::discover(tree, Some(&scripts))?;
            collected.notes.extend(collect::entries::join(&mut all, found.candidates, found.rejects.len()));
        }
        say("asking entries for their help");
        let cold = Cold {
            backend,
            setting,
            options: &[],
            group_timeout: self.pipeline.config.screen.case_timeout,
            jobs: self.pipeline.request.jobs,
            ends: &|_| false,
        };
        let looked_for = entries.mode == EntriesMode::Discover;
        collect::entries::add(collected, all, looked_for, &cold, &screen::command::printed)
    }

    /// What importing a file may take: as long as running one of its groups.
    fn import_limit(&self) -> Duration {
        self.pipeline.config.screen.group_timeout
    }

    fn setting(&self, built: &Built) -> Result<Setting> {
        let runner = runner::unpack(self.pipeline.cache)?;
        let places = Places::in_sandbox();
        let env = world::base_environment(&places, &built.env);
        Ok(Setting::for_tree(
            &places,
            &built.python_prefix,
            &built.venv,
            &built.tree,
            env,
            &runner,
            &self.pipeline.config.limits,
        ))
    }

    /// The variables of the tests; where an image has the environment, those that it sets are part of it.
    fn variables(&self, host: &Host, built: &Built) -> Result<BTreeMap<String, String>> {
        let own = world::base_environment(&Places::in_sandbox(), &built.env);
        if !self.repo.is_scripted {
            return Ok(own);
        }
        let of_image = self.pipeline.machine.variables(host)?;
        let path = of_image.get("PATH").cloned().map(|path| ("PATH".to_owned(), path));
        Ok(of_image.into_iter().chain(own).chain(path).collect())
    }

    /// Where attempts and traces are kept: the key names all that can change them.
    fn screen_folder(&self, host: &Host, built: &Built) -> Result<PathBuf> {
        let config = self.pipeline.config;
        let limits = serde_json::to_string(&config.limits)
            .map_err(|error| Error::internal("cannot encode the limits").with_source(error))?;
        let mut isolation = host.backend.isolation().kind.clone();
        if self.repo.backend == BackendKind::Docker {
            let config::Docker { memory, milli_cpus, .. } = config.docker;
            isolation = format!("{isolation} {} {memory} {milli_cpus}", docker::version_hash());
        }
        let mut parts = vec![
            SCREEN_VERSION.to_owned(),
            built.key.clone(),
            runner::version_hash(),
            self.capabilities(host).key(),
            isolation,
            format!("{:?} {:?}", config.screen.case_timeout, config.screen.group_timeout),
            limits,
            built.tests.join("\0"),
            built.quiet_options().join("\0"),
            format!("{:?}", built.env),
        ];
        if self.repo.entries.are_wanted() {
            // Where they are in the configuration changes nothing.
            let mut entries = self.repo.entries.clone();
            entries.configured.iter_mut().for_each(|entry| entry.origin.line = None);
            parts.push(format!("{} {:?} {:?}", ENTRIES_VERSION, entries, self.repo.tests));
        }
        let key = hash_parts(&parts);
        Ok(self.pipeline.cache.dir("screens")?.join(&key[..32]))
    }

    /// The lock of the journals; what is not collected yet is collected by one. None where that exists and nothing else is
    /// written.
    fn lock(&self, journals: &Path, collected: &Path) -> Result<Option<Lock>> {
        let (path, say) = (journals.with_extension("lock"), || {
            self.pipeline.progress.say(
                &self.title("waits for another command that writes what is known of it, such as a build"),
            );
        });
        if self.is_beside_others {
            let _lock = Lock::wait_shared(&path, say)?;
            if read_sealed::<Collected>(collected)?.is_some() {
                return Ok(None);
            }
        }
        Ok(Some(Lock::wait(&path, say)?))
    }

    /// What pytest collects, kept beside the attempts.
    ///
    /// # Errors
    /// pytest cannot be configured, or finds no tests; IO errors; the harness's trouble.
    pub fn collect(&self, pinned: Pinned, built: Built) -> Result<Prepared> {
        let stage = self.pipeline.progress.stage(&self.title("collect"), 0);
        let progress = |text: &str| stage.message(text);
        let host = self.pipeline.machine.host(self.repo, self.pipeline.tools, &progress)?;
        let folder = self.screen_folder(&host, &built)?;
        let (backend, image) = self.pipeline.machine.tests(&host, &pinned, &built, &progress)?;
        let setting = Setting { env: self.variables(&host, &built)?, ..self.setting(&built)? };
        let normalizer = WorldSetting::base(&setting).normalizer;
        let shard = self.pipeline.request.shards.made();
        let journals = shard.map_or_else(|| folder.clone(), |shard| shards::folder(&folder, shard));
        fs_err::create_dir_all(&journals)?;
        let path = folder.join("collected.json");
        let lock = self.lock(&journals, &path)?;
        let candidates = self.candidates.take();
        let candidate = built.trial.and_then(|number| candidates.into_iter().nth(number));
        let collected = if let Some(collected) = read_sealed::<Collected>(&path)? {
            mark_used(&folder);
            tracing::info!("{}: collected groups are reused", self.repo.slug);
            collected
        } else if self.repo.is_scripted {
            write_sealed_once(&path, &Collected::default())?;
            Collected::default()
        } else {
            let options = built.quiet_options();
            let wanted =
                collect::Wanted { tests: &built.tests, options: &options, limit: self.import_limit() };
            let is_same = |one: &Candidate| {
                let trial = one.trial.as_ref();
                one.is_whole
                    && options.is_empty()
                    && one.tests == built.tests
                    && trial.is_some_and(|trial| trial.was_in(&backend, &setting, &options))
            };
            let (found, pytest) = if let Some(one) = candidate.as_ref().filter(|one| is_same(one)) {
                (one.found.clone(), one.pytest.clone())
            } else {
                stage.message("pytest collects");
                self.discover(&*backend, &setting, &wanted, &[])?
            };
            let mut collected =
                collect::collected(&found, pytest, &normalizer, self.repo.entries.are_wanted())?;
            let tree = Folder::open(&pinned.tree)?;
            collect::keep_files_of(&tree, &mut collected);
            self.add_entries(&*backend, (&tree, &setting), &mut collected, &|text| stage.message(text))?;
            // Shards on other machines may collect at the same time: all go by what was written first.
            write_sealed_once(&path, &collected)?;
            read_sealed(&path)?.unwrap_or(collected)
        };
        let lock = lock.filter(|_| !self.is_beside_others);
        let screen = &self.pipeline.config.screen;
        let lab = Lab {
            backend,
            options: built.quiet_options(),
            built,
            setting,
            capabilities: self.capabilities(&host),
            folder,
            timeouts: screen.timeouts(),
            admission: Arc::clone(&self.admission),
            compare: screen.compare,
        };
        let Tried { in_time: tried, late } = candidate
            .and_then(|one| one.trial)
            .map(|trial| trial.in_the_base_world(&lab, &collected.groups))
            .unwrap_or_default();
        Ok(Prepared { pinned, collected, lab, image, journals, tried, late, _lock: lock })
    }
}

/// What a collection says of its environment.
fn report(found: &Discovered) -> environment::GateReport {
    let files: BTreeSet<String> = found.items.iter().map(|item| item.file.clone()).collect();
    let (skips, errors): (Vec<&CollectError>, Vec<&CollectError>) =
        found.errors.iter().partition(|error| error.kind == CollectErrorKind::Skipped);
    let skip = |error: &CollectError| environment::Complaint {
        who: error.file.clone(),
        text: error.text.clone(),
        is_skip: true,
    };
    environment::GateReport {
        collected: found.items.len(),
        collection_errors: errors.len(),
        missing_modules: found.errors.iter().filter_map(|error| error.missing_module.clone()).collect(),
        implied: found
            .errors
            .iter()
            .flat_map(|error| environment::plan::missing::implied(&error.text))
            .collect(),
        removed: errors.iter().find_map(|error| environment::plan::removed::removed(&error.text)),
        files: files.into_iter().collect(),
        complaints: skips.into_iter().map(skip).collect(),
        switched_off: found.switched_off.clone(),
        ..environment::GateReport::default()
    }
}
