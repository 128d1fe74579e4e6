//! `CodeTaste`: from a pair of commits to an instance that is proved, or the first cause why it is not one.

mod refactoring;
mod suites;

use std::collections::BTreeSet;

use super::{Repository, Work};
use crate::attempt::lab::Lab;
use crate::beneath::Folder;
use crate::config::{Golden, Locked, Pair, Repo};
use crate::environment::plan::lock::Lock;
use crate::error::{Error, Fault, OrWhy, Result};
use crate::family::sample::Choice;
use crate::history;
use crate::pipeline::prepare::{Preparation, Prepared};
use crate::pipeline::{Pipeline, Stage};
use crate::record::codetaste::{Dropped, LockFrom, PairCause, PairRow, PublishedPair, Scripts};
use crate::record::environment::Built;
use crate::record::id::InstanceId;
use crate::record::instance::Contribution;
use crate::record::moment::Cutoff;
use crate::record::source::Pinned;
use crate::referee::codetaste::judge::{Class, Ground, Instance, Judged};
use crate::referee::codetaste::suite::{SuiteLab, Suites, collected, with_overlay};
use crate::screen::considered::Depth;
use crate::source;
use refactoring::Refactoring;
use suites::Measured;

/// What a pair comes to at a point of its way: a value, or why it is not an instance.
type OrDropped<T> = OrWhy<T, Dropped>;

/// Longest lock that is read, in bytes.
const LONGEST_LOCK: u64 = 64 << 20;

/// The base in an environment, and what the suite showed there on both trees.
struct Candidate {
    lock_from: LockFrom,
    prepared: Prepared,
    measured: Measured,
}

/// The two trees of a pair, and the golden one as a repository.
struct Trees {
    base: Pinned,
    golden: Pinned,
    golden_repo: Repo,
}

impl Repository<'_> {
    /// All stages of a pair.
    pub(super) fn stages_of_pair(&mut self, pair: &Pair) -> Result<Option<Contribution>> {
        let until = self.pipeline.request.until;
        if self.pipeline.request.shards.made().is_some() {
            return Err(Error::usage("shards are not made in the family codetaste")
                .with_hint("build on one machine, or name a part of the pairs with --only"));
        }
        let trees = match self.trees(pair)? {
            Ok(trees) => trees,
            Err(dropped) => return Ok(self.dropped(pair, dropped)),
        };
        if until == Stage::Source {
            return Ok(None);
        }
        let settings = &self.pipeline.config.codetaste;
        let refactoring =
            match Refactoring::of((&trees.base.tree, &trees.golden.tree), pair, settings, &|| {
                self.pipeline.machine.sandbox()
            })? {
                Ok(refactoring) => refactoring,
                Err(dropped) => return Ok(self.dropped(pair, dropped)),
            };
        self.enter(Stage::Environment);
        let candidate = match self.candidate(&trees, &refactoring)? {
            Ok(candidate) => candidate,
            Err(dropped) => return Ok(self.dropped(pair, dropped)),
        };
        let Candidate { lock_from, prepared, measured } = candidate;
        self.found.add_environment(&prepared.lab.built);
        self.found.add_collected(&prepared.collected);
        if until <= Stage::Collect {
            return Ok(None);
        }
        self.enter(Stage::Screen);
        let options = self.replay_options();
        let mut work = self.work(&prepared, &options)?;
        let all: Vec<usize> = (0..prepared.collected.groups.len()).collect();
        if !self.repo.is_scripted {
            self.screen(&mut work, &all)?;
        }
        if until < Stage::Confirm {
            return Ok(None);
        }
        let on_golden = match self.kept_on_golden(&prepared, &trees, &refactoring) {
            Err(error) if error.fault() == Fault::Repository => {
                let evidence = format!("on golden, once more: {error}");
                return Ok(self.dropped(pair, Dropped { cause: PairCause::SuiteCrashes, evidence }));
            }
            made => made?,
        };
        self.enter(Stage::Confirm);
        let must_pass: BTreeSet<String> = kept_cases(&work)
            .filter(|case| on_golden.contains(*case) && measured.passes_always(case))
            .map(str::to_owned)
            .collect();
        let judged = self.gates(&prepared, &refactoring, (&measured, &must_pass))?;
        let flags = match judged {
            Ok(()) => [refactoring.flags.clone(), measured.flags()].concat(),
            Err(dropped) => return Ok(self.dropped(pair, dropped)),
        };
        if until == Stage::Confirm {
            return Ok(None);
        }
        let published = PublishedPair {
            row: self.row(pair, None),
            lock_from,
            bounds: measured.bounds,
            must_pass,
            failing: measured.failing(),
            runs: measured.runs,
            precision: refactoring.rates(),
            patterns: refactoring.rows,
            pattern_files: refactoring.files,
            opengrep: refactoring.opengrep,
            scripts: pair.scripts.clone(),
            golden_patch: refactoring.text,
            shape: refactoring.shape,
            description: pair.description.clone(),
            open_description: pair.open_description.clone(),
            flags,
        };
        self.found.pair = Some(published.row.clone());
        let mut contribution = self.contribution(&work, Choice::default())?;
        let engine = refactoring.engine.map(|engine| (self.repo.slug.to_string(), engine));
        contribution.evidence.host.engines.extend(engine);
        Ok(Some(Contribution { codetaste: Some(published), ..contribution }))
    }

    fn row(&self, pair: &Pair, dropped: Option<Dropped>) -> PairRow {
        let (base, golden) = (pair.base.as_str(), pair.golden.name());
        PairRow {
            instance_id: InstanceId::of_pair(&pair.repo, base, &golden),
            slug: self.repo.slug.clone(),
            repo: pair.repo.clone(),
            base: base.to_owned(),
            golden,
            dropped,
        }
    }

    fn dropped(&mut self, pair: &Pair, dropped: Dropped) -> Option<Contribution> {
        let said = format!("{}: {}: {}", self.repo.slug, dropped.cause.as_str(), dropped.evidence);
        self.pipeline.progress.say(said.lines().next().unwrap_or_default());
        self.found.pair = Some(self.row(pair, Some(dropped)));
        None
    }

    fn trees(&mut self, pair: &Pair) -> Result<OrDropped<Trees>> {
        let preparation = Preparation::new(self.pipeline, self.repo);
        let base = self.ahead.take().unwrap_or_else(|| preparation.source())?;
        if let Some(former) = self.former {
            former.check_pin(&base.slug, &base.commit, Some(&base.tree_sha256))?;
        }
        self.found.source = Some(base.origin.describe());
        let mut golden_repo = Repo { pair: None, ..self.repo.clone() };
        let golden = match &pair.golden {
            Golden::Commit(commit) => {
                golden_repo.source = self.repo.source.at(commit);
                Preparation::new(self.pipeline, &golden_repo).source()?
            }
            Golden::Patch(text) => match history::apply(&Folder::open(&base.tree)?, text)? {
                Ok(patch) => source::patched(&base, &patch, self.pipeline.cache)?,
                Err(why) => return Ok(Err(Dropped { cause: PairCause::PatchDiffers, evidence: why })),
            },
        };
        Ok(Ok(Trees { base, golden, golden_repo }))
    }

    /// The first environment in which both trees pass the gates and golden fails no more than the base; where in none it
    /// does, the one with most passing.
    fn candidate(&self, trees: &Trees, refactoring: &Refactoring) -> Result<OrDropped<Candidate>> {
        let later = trees.base.pinned_at.as_str().max(&trees.golden.pinned_at);
        let exclude_newer = self.repo.exclude_newer.clone().or_else(|| Cutoff::parse(later));
        let locks: &[LockFrom] = match () {
            // What an image has is not locked by a tree.
            () if self.repo.is_scripted => &[LockFrom::Base],
            () if refactoring.changes_declarations => &[LockFrom::Both, LockFrom::Golden, LockFrom::Base],
            () => &[LockFrom::Base, LockFrom::Golden],
        };
        let (mut best, mut refused): (Option<Candidate>, Vec<(LockFrom, Dropped)>) = (None, Vec::new());
        for &lock_from in locks {
            let base = Repo { exclude_newer: exclude_newer.clone(), ..self.repo.clone() };
            let golden = Repo { exclude_newer: exclude_newer.clone(), ..trees.golden_repo.clone() };
            let known = best.as_ref().map(|best| best.prepared.lab.built.key.clone());
            let made = self.in_environment(trees, (&base, &golden, lock_from), refactoring, known.as_deref());
            match kept(made)? {
                // The same environment once more: nothing else would be seen, and its journals are in use.
                Ok(None) => {}
                Ok(Some(candidate)) => {
                    let is_clean = candidate.measured.golden_fails_no_more();
                    if best
                        .as_ref()
                        .is_none_or(|best| best.measured.bounds.passed < candidate.measured.bounds.passed)
                    {
                        best = Some(candidate);
                    }
                    if is_clean {
                        break;
                    }
                }
                Err(dropped) => refused.push((lock_from, dropped)),
            }
        }
        Ok(best.ok_or_else(|| match &refused[..] {
            [(_, only)] if self.repo.is_scripted => only.clone(),
            all => none_of(all),
        }))
    }

    /// The base in the environment that one of the trees declares, and the suite on both trees there.
    fn in_environment(
        &self,
        trees: &Trees,
        (base, golden, lock_from): (&Repo, &Repo, LockFrom),
        refactoring: &Refactoring,
        known: Option<&str>,
    ) -> Result<OrDropped<Option<Candidate>>> {
        let pipeline = self.pipeline;
        let repo = if lock_from == LockFrom::Base {
            base.clone()
        } else {
            let built = Preparation::new(pipeline, golden).environment(&trees.golden)?;
            let mut lock = lock_of(&built)?;
            let on_its_python = Repo { python: Some(built.python), ..base.clone() };
            if lock_from == LockFrom::Both {
                let both = lock
                    .and(&lock_of(&Preparation::new(pipeline, &on_its_python).environment(&trees.base)?)?);
                // Golden's alone is tried next.
                if both == lock {
                    return Ok(Ok(None));
                }
                lock = both;
            }
            let locked = Locked { text: lock.text(), asked_python: base.python.clone() };
            Repo { locked: Some(locked), ..on_its_python }
        };
        let preparation = Preparation::new(pipeline, &repo);
        let built = preparation.environment(&trees.base)?;
        if known == Some(built.key.as_str()) {
            return Ok(Ok(None));
        }
        for used in [&trees.base.tree, &trees.golden.tree, &built.tree, &built.venv] {
            pipeline.cache.uses(used.clone())?;
        }
        let prepared = preparation.collect(trees.base.clone(), built)?;
        pipeline.cache.uses(prepared.journals.clone())?;
        let mut runs = Suites::open(&prepared.journals.join("codetaste"))?;
        let place = self.place(&prepared.lab);
        let title = format!("{} suite", self.repo.slug);
        let stage = pipeline.progress.stage(&title, 2);
        let settings = &pipeline.config.codetaste;
        let measured = Measured::of(place, &refactoring.patch, settings, (&mut runs, &mut || stage.step()))?;
        Ok(measured.map(|measured| Some(Candidate { lock_from, prepared, measured })))
    }

    /// Where patches are laid over the tree of a lab, and what runs the suite there.
    fn place<'b>(&'b self, lab: &'b Lab) -> SuiteLab<'b> {
        static NONE: Scripts = Scripts::new();
        let scripts = self.repo.pair.as_ref().map_or(&NONE, |pair| &pair.scripts);
        let Pipeline { cache, config, .. } = self.pipeline;
        SuiteLab { lab, cache, scripts, limit: config.codetaste.suite_timeout }
    }

    /// Cases of the groups that screening keeps on the golden tree.
    fn kept_on_golden(
        &self,
        prepared: &Prepared,
        trees: &Trees,
        refactoring: &Refactoring,
    ) -> Result<BTreeSet<String>> {
        if self.repo.is_scripted {
            return Ok(BTreeSet::new());
        }
        with_overlay(self.place(&prepared.lab), &refactoring.patch, |lab| {
            let collected = collected(&lab)?;
            let all: Vec<usize> = (0..collected.groups.len()).collect();
            let golden = prepared.on(lab, trees.golden.clone(), collected)?;
            let options = self.replay_options();
            let mut work = self.work(&golden, &options)?;
            self.screen(&mut work, &all)?;
            Ok(kept_cases(&work).map(str::to_owned).collect())
        })
    }

    /// Golden and null, handed in like any submission.
    fn gates(
        &self,
        prepared: &Prepared,
        refactoring: &Refactoring,
        (measured, must_pass): (&Measured, &BTreeSet<String>),
    ) -> Result<OrDropped<()>> {
        let mut suites = Suites::open(&prepared.journals.join("codetaste"))?;
        let ground = Ground::of(&prepared.pinned.tree, &refactoring.files, &refactoring.rows, &|| {
            self.pipeline.machine.sandbox()
        })?;
        let failing = measured.failing();
        let instance = Instance {
            place: self.place(&prepared.lab),
            ground: &ground,
            rows: &refactoring.rows,
            bounds: measured.bounds,
            must_pass,
            failing: &failing,
        };
        let golden = instance.judge(&refactoring.text, &mut suites)?;
        require_run(&golden)?;
        if !is_right(&golden, 1.0) || golden.pass_set == Some(false) {
            return Ok(Err(failed(PairCause::GoldenFails, &golden)));
        }
        let null = instance.judge(b"", &mut suites)?;
        require_run(&null)?;
        let has_lines = null.numbers.is_none_or(|numbers| numbers.prec > 0.0);
        if !is_right(&null, 0.0) || has_lines {
            return Ok(Err(failed(PairCause::NullPasses, &null)));
        }
        Ok(Ok(()))
    }
}

/// The machine's trouble says nothing about a pair.
fn require_run(judged: &Judged) -> Result<()> {
    if judged.class != Class::Lost {
        return Ok(());
    }
    let why = judged.detail.clone().unwrap_or_default();
    Err(Error::harness("the suite could not be run here").with_detail(why))
}

/// Whether the suite passes, and so much of the patterns is satisfied.
fn is_right(judged: &Judged, ifr: f64) -> bool {
    judged.class == Class::Passes && judged.numbers.is_some_and(|numbers| numbers.ifr == Some(ifr))
}

fn failed(cause: PairCause, judged: &Judged) -> Dropped {
    let ifr = judged.numbers.and_then(|numbers| numbers.ifr).unwrap_or_default();
    let missing = judged.missing.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
    let evidence = format!(
        "judged {:?} with an IFR of {ifr:.3}; {}; must pass and do not: {}",
        judged.class,
        judged.detail.as_deref().unwrap_or("the suite is within its bounds"),
        if missing.is_empty() { "none" } else { &missing }
    );
    Dropped { cause, evidence }
}

/// What is the repository's trouble is a cause.
fn kept<T>(made: Result<OrDropped<T>>) -> Result<OrDropped<T>> {
    match made {
        Err(error) if error.fault() == Fault::Repository => {
            let said =
                [Some(error.to_string()), error.detail().map(str::to_owned), error.hint().map(str::to_owned)];
            let evidence = said.into_iter().flatten().collect::<Vec<_>>().join("\n");
            Ok(Err(Dropped { cause: PairCause::NeedsTwoEnvironments, evidence }))
        }
        other => other,
    }
}

/// What an environment installed.
fn lock_of(built: &Built) -> Result<Lock> {
    let lock =
        Folder::open(&built.recipe_dir)?.read(std::path::Path::new("requirements.lock"), LONGEST_LOCK)?;
    let text =
        String::from_utf8(lock).map_err(|error| Error::internal("a lock is not text").with_source(error))?;
    Ok(Lock::parse(&text))
}

/// Why no environment serves both trees: the cause that all have, or that they differ.
fn none_of(refused: &[(LockFrom, Dropped)]) -> Dropped {
    let first = refused.first().map(|(_, dropped)| dropped.cause);
    let is_one = refused.iter().all(|(_, dropped)| Some(dropped.cause) == first);
    let said = refused.iter().map(|(lock_from, dropped)| {
        format!("with what {} declares: {}: {}", lock_from.as_str(), dropped.cause.as_str(), dropped.evidence)
    });
    Dropped {
        cause: first.filter(|_| is_one).unwrap_or(PairCause::NeedsTwoEnvironments),
        evidence: said.collect::<Vec<_>>().join("\n"),
    }
}

/// Cases of the groups that screening keeps.
fn kept_cases<'w>(work: &'w Work<'_>) -> impl Iterator<Item = &'w str> {
    let verdicts = work.screening.verdicts(Depth::First);
    let kept = work.prepared.collected.groups.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_kept());
    kept.flat_map(|(group, _)| group.cases.iter().map(|case| case.case_id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_has_the_way_out() {
        let error =
            Error::repository("nothing can be collected").with_detail("E   import").with_hint("name `mock`");
        let dropped = kept::<()>(Err(error)).unwrap().unwrap_err();
        assert_eq!(dropped.cause, PairCause::NeedsTwoEnvironments);
        assert_eq!(dropped.evidence, "nothing can be collected\nE   import\nname `mock`");
    }

    #[test]
    fn the_machines_trouble_is_no_cause() {
        assert!(kept::<()>(Err(Error::machine("no space left"))).is_err());
    }
}
