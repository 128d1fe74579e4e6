//! One repository's way through the stages.

mod codetaste;
mod recube;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::beside::{Other, Tracing, beside};
use super::prepare::{Preparation, Prepared};
use super::release::Former;
use super::{Pipeline, RepositoryFacts, Stage, shards};
use crate::attempt::lab::Lab;
use crate::config::Repo;
use crate::dataset::assemble;
use crate::environment::require_whole;
use crate::error::{Error, Fault, Result};
use crate::family::sample::{self, Choice};
use crate::ledger::Step;
use crate::machine;
use crate::packed::Packed;
use crate::record::collected::{Collected, Group, Uncollected};
use crate::record::environment::{Built, PlanResult};
use crate::record::evidence::{CollectionFacts, GroupEvidence, OnTrial, RepositoryEvidence};
use crate::record::family::{Family, Unit};
use crate::record::id::InstanceId;
use crate::record::instance::{Contribution, TestSource};
use crate::record::outcome::{Attempt, CaseResult, Outcome};
use crate::record::shard::Shard;
use crate::record::source::Pinned;
use crate::record::strength::Strength;
use crate::record::trace::{FunctionCalls, Traced, is_test_path, test_roots};
use crate::record::verdict::Verdict;
use crate::record::witness::Witness;
use crate::referee::gistify::original::Original;
use crate::referee::gistify::self_check::SelfChecks;
use crate::referee::gistify::strength::{Mutations, Tested};
use crate::referee::gistify::variants::{Count, Variants};
use crate::referee::gistify::witness::kept;
use crate::referee::texts::Runs;
use crate::rules::{Applied, Subject as RuleSubject};
use crate::screen::considered::Depth;
use crate::screen::decide::ScreenPolicy;
use crate::screen::ruling::{RuledVerdict, after_trace, after_trace_of, rule_use, whole_totals};
use crate::screen::{Screening, Subject, golden, verdict};
use crate::source;
use crate::text::shell_quote;
use crate::trace::{ToTrace, Traces, Which};

/// One repository and what it works with.
pub(crate) struct Repository<'a> {
    pipeline: &'a Pipeline<'a>,
    repo: &'a Repo,
    stage: Stage,
    found: RepositoryFacts,
    /// What was fetched while another repository was screened.
    ahead: Option<Result<Pinned>>,
    /// The dataset that is replaced.
    former: Option<&'a Former>,
    /// What no step within the stage accounts for.
    rest: Step<'a>,
}

/// A repository whose groups were collected, with all that is known about them.
struct Work<'a> {
    prepared: &'a Prepared,
    screening: Screening<'a>,
    traces: Traces,
    on_trial: SelfChecks,
    variants: Variants,
    /// The target of each test file that was written for one.
    written_for: BTreeMap<String, String>,
}

impl<'a> Repository<'a> {
    /// A repository at the start of its way.
    pub(crate) fn new(pipeline: &'a Pipeline<'a>, repo: &'a Repo) -> Self {
        let rest = Self::rest(pipeline, repo, Stage::Source);
        Repository {
            pipeline,
            repo,
            stage: Stage::Source,
            found: RepositoryFacts::default(),
            ahead: None,
            former: None,
            rest,
        }
    }

    /// The repository with its source, or why that cannot be had, and the dataset that must not be made of another one.
    pub(super) fn with_source(self, ahead: Option<Result<Pinned>>, former: Option<&'a Former>) -> Self {
        Repository { ahead, former, ..self }
    }

    fn rest(pipeline: &'a Pipeline<'a>, repo: &Repo, stage: Stage) -> Step<'a> {
        pipeline.progress.ledger().begin(&format!("{} {}, gistmill itself", repo.slug, stage.as_str()))
    }

    /// Goes all the way (or until the stage that was asked for).
    ///
    /// # Errors
    /// The stage that failed, and why.
    pub(super) fn run(mut self) -> Result<(Option<Contribution>, RepositoryFacts), (Stage, Error)> {
        let record = self.stages().map_err(|error| (self.stage, error))?;
        Ok((record, self.found))
    }

    fn family(&self) -> Family {
        self.pipeline.config.dataset.family
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.rest = Self::rest(self.pipeline, self.repo, stage);
        self.pipeline.progress.enter(stage as usize + 1);
    }

    fn stages(&mut self) -> Result<Option<Contribution>> {
        let repo = self.repo;
        if let Some(pair) = &repo.pair {
            return self.stages_of_pair(pair);
        }
        let until = self.pipeline.request.until;
        let preparation = Preparation::new(self.pipeline, self.repo);
        let pinned = self.ahead.take().unwrap_or_else(|| preparation.source())?;
        if let Some(former) = self.former {
            former.check_pin(&pinned.slug, &pinned.commit, Some(&pinned.tree_sha256))?;
        }
        if let Ok(Some(warning)) = source::secrets_warning(&pinned) {
            self.pipeline.progress.say(&format!("{}: {warning}", repo.slug));
        }
        self.found.source = Some(pinned.origin.describe());
        if until == Stage::Source {
            return Ok(None);
        }
        self.enter(Stage::Environment);
        let built = preparation.environment(&pinned)?;
        self.found.add_environment(&built);
        if until == Stage::Environment {
            return Ok(None);
        }
        let cache = self.pipeline.cache;
        for used in [&pinned.tree, &built.tree, &built.venv] {
            cache.uses(used.clone())?;
        }
        self.stages_of_tests(&preparation, pinned, built.clone()).map_err(|error| {
            let is_told = matches!(error.fault(), Fault::Repository | Fault::Harness);
            let changed = is_told.then(|| require_whole(&built, cache).err()).flatten();
            changed.unwrap_or(error)
        })
    }

    /// The stages that run tests.
    pub(super) fn stages_of_tests(
        &mut self,
        preparation: &Preparation<'_>,
        pinned: Pinned,
        built: Built,
    ) -> Result<Option<Contribution>> {
        let until = self.pipeline.request.until;
        self.enter(Stage::Collect);
        let prepared = preparation.collect(pinned, built)?;
        self.pipeline.cache.uses(prepared.journals.clone())?;
        self.found.add_collected(&prepared.collected);
        if until == Stage::Collect {
            return Ok(None);
        }
        let all: Vec<usize> = (0..prepared.collected.groups.len()).collect();
        self.enter(Stage::Screen);
        let options = self.replay_options();
        let mut work = self.work(&prepared, &options)?;
        if let Some(shard) = self.pipeline.request.shards.made() {
            return self.shard(shard, &mut work).map(|()| None);
        }
        self.take_over_shards(&mut work)?;
        self.screen(&mut work, &all)?;
        if until == Stage::Screen {
            return Ok(None);
        }
        if self.family().unit() == Unit::File {
            return self.stages_of_targets(&mut work, &all);
        }
        let mut unfit = Unfit::default();
        let contribution = loop {
            self.enter(Stage::Trace);
            self.trace_passing(&mut work, &all)?;
            if until == Stage::Trace {
                return Ok(None);
            }
            self.enter(Stage::Select);
            let choice = self.choose(&work, &unfit);
            if until == Stage::Select {
                return Ok(None);
            }
            self.enter(Stage::Confirm);
            if !self.confirm(&mut work, &choice)? {
                continue;
            }
            work.screening.cold(&self.parity_groups(&work), 1)?;
            let contribution = self.contribution(&work, choice)?;
            let witnesses = self.witnesses(&prepared.lab, &contribution)?;
            let before = unfit.len();
            if self.pipeline.config.witness.required {
                let without = witnesses.iter().filter(|(_, witness)| !witness.columns.is_made());
                unfit.without_witness.extend(without.map(|(id, witness)| (id.clone(), witness.clone())));
            }
            if !self.pipeline.config.dataset.sample_unsolvable {
                let (judged, witnesses) = (&contribution.variants, &witnesses);
                let is_left = |id: &&InstanceId| {
                    let dropped = witnesses.get(*id).map_or(0, |witness| witness.dropped_variants.len());
                    judged.get(*id).is_none_or(|variants| variants.len() > dropped)
                };
                let without = contribution.published.iter().filter(|id| !is_left(id));
                unfit.without_variants.extend(without.cloned());
            }
            if unfit.len() > before {
                continue;
            }
            let strengths = self.strengths(&prepared, &contribution)?;
            let least = self.pipeline.config.mutation.min_score;
            let score = |id: &InstanceId| strengths.get(id).and_then(|strength| strength.mutation_score);
            let weak = contribution.published.iter().filter(|id| score(id).unwrap_or_default() < least);
            unfit.weak.extend(weak.cloned());
            if unfit.len() == before {
                let witnesses: BTreeMap<_, _> = unfit.without_witness.into_iter().chain(witnesses).collect();
                let mut contribution =
                    Contribution { witnesses, strengths, ..contribution }.without_dropped_variants();
                let without = unfit.without_variants.into_iter().map(|id| (id, Vec::new()));
                contribution.variants.extend(without);
                break contribution;
            }
        };
        if until == Stage::Confirm {
            return Ok(None);
        }
        Ok(Some(contribution))
    }

    /// Screens and traces the groups of a shard.
    fn shard(&mut self, shard: Shard, work: &mut Work<'_>) -> Result<()> {
        let Prepared { collected, lab, .. } = work.prepared;
        let groups = shards::groups(shard, &self.repo.slug, collected);
        self.screen(work, &groups)?;
        self.enter(Stage::Trace);
        self.trace_passing(work, &groups)?;
        shards::finish(&lab.folder, shard, collected, groups.len())
    }

    /// Takes over what shards have made; says which are missing.
    fn take_over_shards(&self, work: &mut Work<'_>) -> Result<()> {
        let Prepared { collected, lab, .. } = work.prepared;
        let missing = shards::take_over(&lab.folder, collected, (&mut work.screening, &mut work.traces))?;
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
            self.pipeline.progress.say(&format!(
                "{}: of its shards {} missing: what they would have done is done here",
                self.repo.slug,
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// Witnesses of what is published, where the configuration asks for them.
    fn witnesses(&self, lab: &Lab, contribution: &Contribution) -> Result<BTreeMap<InstanceId, Witness>> {
        let Pipeline { config, cache, progress, .. } = self.pipeline;
        if !config.witness.make {
            return Ok(BTreeMap::new());
        }
        let instances = assemble::instances_of(contribution)?;
        let mut golden: BTreeMap<InstanceId, Vec<CaseResult>> = BTreeMap::new();
        for group in contribution.evidence.groups.iter() {
            let group = group?;
            if contribution.published.contains(&group.instance_id) {
                golden.insert(group.instance_id, group.golden);
            }
        }
        let golden = |id| golden.get(id).map(Vec::as_slice).unwrap_or_default();
        let variants = |id| contribution.variants.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut originals: Vec<Original<'_>> = Vec::new();
        for one in &instances {
            let variants = variants(&one.instance_id);
            originals.push(Original { variants, ..Original::of(one, golden(&one.instance_id)) });
        }
        let title = format!("{} witness", self.repo.slug);
        let demand = kept::Demand { file: self.family().submission(), drops_variants: true };
        kept::of_repository(lab, cache, demand, &originals, |missing| {
            let stage = progress.stage(&title, missing);
            move || stage.step()
        })
    }

    /// How strong the tests of what is published are, where the configuration asks for mutants.
    fn strengths(
        &self,
        prepared: &Prepared,
        contribution: &Contribution,
    ) -> Result<BTreeMap<InstanceId, Strength>> {
        let Pipeline { config, cache, progress, .. } = self.pipeline;
        if config.mutation.mutants == 0 {
            return Ok(BTreeMap::new());
        }
        let roots = test_roots(prepared.collected.groups.iter().map(|group| group.file.as_str()));
        let mut published = Vec::new();
        for group in contribution.evidence.groups.iter() {
            let group = group?;
            if contribution.published.contains(&group.instance_id) && group.group.entry.is_none() {
                published.push(group);
            }
        }
        let is_code = |function: &&FunctionCalls| {
            let file = &function.file;
            function.is_called() && file.ends_with(".py") && !is_test_path(file, &roots)
        };
        let tested = |group| {
            let GroupEvidence { golden, group, traced, instance_id, .. }: &GroupEvidence = group;
            let passing = golden.iter().filter(|case| case.outcome == Outcome::Passed);
            let functions = traced.iter().flat_map(|traced| &traced.functions).filter(is_code);
            let passing = passing.map(|case| case.case_id.clone()).collect();
            Tested { id: instance_id, group, passing, functions: functions.collect() }
        };
        let tested: Vec<Tested<'_>> = published.iter().map(tested).collect();
        let title = format!("{} mutants", self.repo.slug);
        let stage = progress.stage(&title, 0);
        let mutations = Mutations {
            lab: &prepared.lab,
            cache,
            runs: &Runs::open(&prepared.journals.join("mutants"))?,
            seed: config.dataset.seed,
            most: config.mutation.mutants,
        };
        mutations.strength_of(&tested, &|count| match count {
            Count::More(runs) => stage.more(runs),
            Count::Done => stage.step(),
        })
    }

    /// The verdict of every group after what every group has: its first attempts, in all worlds. Rules and traces have
    /// no say.
    ///
    /// # Errors
    /// Those of the stages up to screening.
    pub(crate) fn first_verdicts(self) -> Result<(Prepared, BTreeMap<String, Verdict>)> {
        let prepared = Preparation::new(self.pipeline, self.repo).run()?;
        let options = self.replay_options();
        let mut work = self.work(&prepared, &options)?;
        work.screening.first_of_all()?;
        let ids = prepared.collected.groups.iter().map(|group| group.group_id.clone());
        let mut verdicts: BTreeMap<String, Verdict> =
            ids.zip(work.screening.verdicts(Depth::First)).collect();
        let uncollected = prepared.collected.uncollected.iter();
        verdicts.extend(uncollected.map(|row| (row.group.group_id.clone(), verdict::uncollected(row))));
        drop(work);
        Ok((prepared, verdicts))
    }

    /// What `gistmill replay` needs to find the build's configuration again.
    fn replay_options(&self) -> String {
        let config = self.pipeline.config_name.map(|name| format!(" --config {}", shell_quote(name)));
        format!(" --only {}{}", self.repo.slug, config.unwrap_or_default())
    }

    fn work<'b>(&self, prepared: &'b Prepared, replay_options: &'b str) -> Result<Work<'b>>
    where
        'a: 'b,
    {
        let (pipeline, repo) = (self.pipeline, self.repo);
        let screen = &pipeline.config.screen;
        let subject = Subject {
            slug: &repo.slug,
            lab: &prepared.lab,
            collected: &prepared.collected,
            progress: pipeline.progress,
            tried: &prepared.tried,
            replay_options,
        };
        let policy = ScreenPolicy {
            attempts: screen.attempts,
            cold_runs: screen.cold_runs,
            partial: screen.partial_groups,
            compare: screen.compare,
            covered: prepared.lab.capabilities.covered.clone(),
        };
        let folder = &prepared.journals;
        let screening = Screening::open(subject, policy, folder)?;
        let traces = Traces::open(&folder.join("traces"))?;
        let of_commands = prepared.collected.groups.iter().filter(|group| group.entry.is_some());
        let id = |group: &Group| InstanceId::derive(&repo.slug, &prepared.pinned.commit, &group.group_id);
        let on_trial =
            SelfChecks::open(&folder.join("self-checks"), screen.compare, of_commands.map(id).collect())?;
        let variants = Variants::open(&folder.join("variants"), pipeline.config.dataset.seed)?;
        self.check_scopes(prepared)?;
        let written_for = self.written_for(prepared)?;
        Ok(Work { prepared, screening, traces, on_trial, variants, written_for })
    }

    /// The first rounds and worlds of these groups. What is known of a group then is traced while the cause of others is
    /// looked for, where tracing is asked for at all; never beside load.
    fn screen(&self, work: &mut Work<'_>, groups: &[usize]) -> Result<()> {
        work.screening.first_rounds(groups)?;
        // Of a pair nothing is traced.
        if self.pipeline.request.until <= Stage::Screen || self.repo.pair.is_some() {
            return work.screening.other_worlds(groups, Depth::First);
        }
        work.screening.loaded_worlds(groups, Depth::First)?;
        let open = work.screening.undecided(groups, Depth::First);
        let settled: Vec<usize> =
            groups.iter().copied().filter(|at| open.binary_search(at).is_err()).collect();
        let tracing = self.tracing(Which::First, work, &self.passing(work, &settled));
        let Work { screening, traces, .. } = work;
        let others: [Other<'_>; 1] = [(&tracing.title, Box::new(|| tracing.run(traces)))];
        beside(self.pipeline.progress.ledger(), others, || screening.idle_worlds(&open, Depth::First))?;
        screening.other_worlds(&open, Depth::First)
    }

    /// What passes of these groups, with rules or without.
    fn passing(&self, work: &Work<'_>, among: &[usize]) -> Vec<usize> {
        let first = work.screening.verdicts(Depth::First);
        let ruled = self.ruled(work, first.clone());
        among.iter().copied().filter(|at| first[*at].is_kept() || ruled[*at].verdict.is_kept()).collect()
    }

    /// Traces what passes of these groups. What ended otherwise then gets all attempts that publishing asks for: they say
    /// whether it does by chance.
    fn trace_passing(&self, work: &mut Work<'_>, among: &[usize]) -> Result<()> {
        let passing = self.passing(work, among);
        let tracing = self.tracing(Which::First, work, &passing);
        tracing.run(&mut work.traces)?;
        let doubtful: Vec<usize> = passing.into_iter().filter(|at| work.is_doubtful(*at)).collect();
        if doubtful.is_empty() {
            return Ok(());
        }
        work.screening.deepen(&doubtful)?;
        work.screening.other_worlds(&doubtful, Depth::All)
    }

    /// Those of these groups that still lack this traced attempt.
    fn tracing<'w>(&self, which: Which, work: &Work<'w>, among: &[usize]) -> Tracing<'w>
    where
        'a: 'w,
    {
        let prepared = work.prepared;
        let missing = work.traces.lacking(which, &prepared.collected.groups, among.iter().copied());
        let history = work.screening.history();
        let untraced = |at: usize| {
            history.of(at).iter().find(|attempt| attempt.is_reference()).map(Attempt::outcome_hash)
        };
        let name = match which {
            Which::First => "trace",
            Which::Second => "second trace",
        };
        Tracing {
            title: format!("{} {name}", self.repo.slug),
            progress: self.pipeline.progress,
            prepared,
            wanted: ToTrace {
                which,
                durations: if missing.is_empty() { BTreeMap::new() } else { history.durations() },
                groups: missing.into_iter().map(|at| (at, untraced(at))).collect(),
            },
        }
    }

    /// The groups to be published, as far as is known now.
    fn choose(&self, work: &Work<'_>, unfit: &Unfit) -> Choice {
        let Pipeline { config, .. } = self.pipeline;
        let first = self.ruled(work, work.screening.verdicts(Depth::First));
        let all = self.ruled(work, work.screening.verdicts(Depth::All));
        let ids = self.instance_ids(work);
        let groups = &work.prepared.collected.groups;
        let kinds = config.dataset.kinds.as_ref();
        let is_asked =
            |group: &Group| kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind == group.command().kind()));
        let kept = groups.iter().enumerate();
        let kept = kept.filter(|(at, group)| first[*at].verdict.is_kept() && is_asked(group));
        let candidates = kept
            .filter_map(|(at, group)| {
                self.family().candidate(&self.repo.slug, &ids[at], work.traces.totals(&group.group_id)?)
            })
            .collect();
        let is_whole = |at: usize| work.traces.totals(&groups[at].group_id).is_none_or(Traced::is_whole);
        let fit: BTreeSet<&InstanceId> = (0..ids.len())
            .filter(|at| all[*at].verdict.is_kept() && is_whole(*at))
            .map(|at| &ids[at])
            .collect();
        sample::settle(candidates, config.dataset.per_repo, &config.tier, config.dataset.seed, |id| {
            let is_solvable = config.dataset.sample_unsolvable || work.is_solvable(id);
            fit.contains(id) && is_solvable && !unfit.has(id)
        })
    }

    /// Gives what is chosen all attempts that publishing asks for, while it is traced once more and the referee judges its
    /// originals. False when that changed what is known, so that the choice has to be made again.
    fn confirm(&self, work: &mut Work<'_>, choice: &Choice) -> Result<bool> {
        let before = work.screening.made();
        let ids = self.instance_ids(work);
        let chosen: Vec<usize> = (0..ids.len()).filter(|at| choice.chosen.contains(&ids[*at])).collect();
        let groups = &work.prepared.collected.groups;
        if work.traces.forget_damaged(chosen.iter().map(|at| groups[*at].group_id.as_str()))? {
            return Ok(false);
        }
        // A build that was stopped may know why one of them is out before all was made that is made at the same time.
        let is_begun = |at: &usize| {
            choice.chosen.contains(&ids[*at])
                || work.on_trial.has(&ids[*at])
                || work.traces.totals(&groups[*at].group_id).is_some_and(|traced| traced.second.is_some())
                || choice.reached.contains(&ids[*at]) && work.screening.is_deepened(*at)
        };
        let begun: Vec<usize> = (0..ids.len()).filter(is_begun).collect();
        let golden = self.untried(work, &begun);
        let submission = self.family().submission();
        let originals: Vec<Original<'_>> =
            golden.iter().map(|(at, cases)| Original::of_group(&ids[*at], &groups[*at], cases)).collect();
        let tracing = self.tracing(Which::Second, work, &begun);
        let Work { prepared, screening, traces, on_trial, variants, .. } = work;
        let title = format!("{} self-check", self.repo.slug);
        let judge = || {
            if originals.is_empty() {
                return Ok(());
            }
            let fresh: Vec<Original<'_>> =
                originals.iter().filter(|one| !on_trial.has(one.id)).cloned().collect();
            let stage = self.pipeline.progress.stage(&title, fresh.len() as u64);
            on_trial.make((&prepared.lab, self.pipeline.cache), submission, &fresh, &mut || stage.step())?;
            drop(stage);
            let solvable =
                |one: &&Original<'_>| variants.of(one.id).is_none() && on_trial.is_solvable(one.id);
            let solvable: Vec<&Original<'_>> = originals.iter().filter(solvable).collect();
            let title = format!("{} variants", self.repo.slug);
            let stage = self.pipeline.progress.stage(&title, solvable.len() as u64);
            variants.make(&prepared.lab, submission, &solvable, &mut |count| match count {
                Count::More(runs) => stage.more(runs),
                Count::Done => stage.step(),
            })
        };
        let others: [Other<'_>; 2] =
            [(&title, Box::new(judge)), (&tracing.title, Box::new(|| tracing.run(traces)))];
        beside(self.pipeline.progress.ledger(), others, || screening.deepen(&begun))?;
        let totals = |at: &usize| work.traces.totals(&groups[*at].group_id);
        let is_steady = |traced: &Traced| traced.stable() == Some(true) && !traced.starts_threads();
        if !tracing.wanted.groups.keys().all(|at| totals(at).is_some_and(is_steady)) {
            return Ok(false);
        }
        let dropped = |at: &usize| !work.is_solvable(&ids[*at]);
        if !self.pipeline.config.dataset.sample_unsolvable && chosen.iter().any(dropped) {
            return Ok(false);
        }
        work.screening.other_worlds(&chosen, Depth::All)?;
        let ruled = self.ruled(work, work.screening.verdicts(Depth::All));
        let steady: Vec<usize> = chosen.iter().copied().filter(|at| ruled[*at].verdict.is_kept()).collect();
        work.screening.confirm(&steady)?;
        Ok(work.screening.made() == before)
    }

    /// Those of these groups whose originals the referee has not judged, or has not edited, each with what its first attempt
    /// showed.
    fn untried(&self, work: &Work<'_>, among: &[usize]) -> Vec<(usize, Vec<CaseResult>)> {
        match self.family().unit() {
            Unit::Group => {}
            // Their gates try files and patches, not tests.
            Unit::File | Unit::Pair => return Vec::new(),
        }
        let ids = self.instance_ids(work);
        let first = |at: &usize| {
            let first = work.screening.history().of(*at).iter().find(|attempt| attempt.is_reference())?;
            Some((*at, first.cases.clone()))
        };
        among.iter().filter(|at| work.is_untried(&ids[**at])).filter_map(first).collect()
    }

    /// Verdicts after what tracing and rules say.
    fn ruled(&self, work: &Work<'_>, verdicts: Vec<Verdict>) -> Vec<RuledVerdict> {
        let groups = &work.prepared.collected.groups;
        let judge = |(index, verdict): (usize, Verdict)| {
            let group = &groups[index];
            let traced = work.traces.totals(&group.group_id);
            let verdict = after_trace(group, verdict, traced);
            let verdict = match work.written_for.get(&group.file) {
                Some(target) => after_trace_of(group, target, verdict, traced),
                None => verdict,
            };
            RuledVerdict::of(group, verdict, self.rules_on(work, index, traced))
        };
        verdicts.into_iter().enumerate().map(judge).collect()
    }

    fn rules_on(&self, work: &Work<'_>, index: usize, traced: Option<&Traced>) -> Applied {
        let group = &work.prepared.collected.groups[index];
        let totals = whole_totals(traced);
        let milliseconds = golden::duration_ms(work.screening.history().of(index));
        let rules = self.pipeline.rules;
        let file = rules.read_code().then(|| work.screening.sources.get(&group.file)).flatten();
        let code = file.as_ref().and_then(|file| file.code(group));
        rules.apply(&RuleSubject {
            code: code.as_ref(),
            duration: milliseconds
                .map(|ms| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX)),
            trace_length: totals.map(|totals| totals.trace_length),
            unique_files: totals.map(|totals| totals.files.len() as u64),
            ..RuleSubject::of(self.repo.slug.as_str(), group)
        })
    }

    /// The further groups whose cold run measures parity: the first ones in the order of sampling, whatever their
    /// verdict.
    fn parity_groups(&self, work: &Work<'_>) -> Vec<usize> {
        let seed = self.pipeline.config.dataset.seed;
        let ids = self.instance_ids(work);
        let mut groups: Vec<usize> =
            (0..ids.len()).filter(|group| !work.screening.is_unavailable(*group)).collect();
        groups.sort_by_cached_key(|group| ids[*group].sample_order(&self.repo.slug, seed));
        groups.truncate(self.pipeline.config.screen.parity_groups as usize);
        groups
    }

    /// Instance id of every group, in the order of collection.
    fn instance_ids(&self, work: &Work<'_>) -> Vec<InstanceId> {
        work.prepared.collected.groups.iter().map(|group| self.id(work, &group.group_id)).collect()
    }

    fn id(&self, work: &Work<'_>, group_id: &str) -> InstanceId {
        InstanceId::derive(&self.repo.slug, &work.prepared.pinned.commit, group_id)
    }

    fn contribution(&self, work: &Work<'_>, choice: Choice) -> Result<Contribution> {
        let Prepared { pinned, collected, image, lab, .. } = work.prepared;
        let ids = self.instance_ids(work);
        // Which attempts decide about a group.
        let is_deep = |at: usize| choice.reached.contains(&ids[at]) || work.is_doubtful(at);
        let depth = |at: usize| if is_deep(at) { Depth::All } else { Depth::First };
        let verdicts = (0..ids.len()).map(|at| work.screening.verdict(at, depth(at))).collect();
        let ruled = self.ruled(work, verdicts);
        let rules = rule_use(self.pipeline.rules.unused(), &ruled);
        let kept =
            ids.iter().zip(&ruled).filter(|(_, ruled)| ruled.verdict.is_kept()).map(|(id, _)| id.clone());
        let published: BTreeSet<InstanceId> = kept.filter(|id| choice.chosen.contains(id)).collect();
        let screened = |index: usize| {
            let (id, group_id) = (ids[index].clone(), &collected.groups[index].group_id);
            let traced = if published.contains(&id) {
                work.traces.whole(group_id)?
            } else {
                work.traces.totals(group_id).cloned()
            };
            let on_trial = work.on_trial.of(&id);
            let evidence = work.screening.evidence(index, depth(index), &ruled[index], (id, traced));
            Ok(GroupEvidence { on_trial, ..evidence })
        };
        let uncollected = |row: &Uncollected| GroupEvidence {
            slug: self.repo.slug.clone(),
            instance_id: self.id(work, &row.group.group_id),
            group: row.group.clone(),
            verdict: verdict::uncollected(row),
            attempts: Vec::new(),
            agreeing: 0,
            traced: None,
            trace_length_package: None,
            golden: Vec::new(),
            on_trial: OnTrial::default(),
        };
        // By group id, with the place of those that were screened; made one by one, when they are packed.
        let mut groups: Vec<(&str, Row<'_>)> = Vec::new();
        let rows = collected.groups.iter().enumerate();
        groups.extend(rows.map(|(at, group)| (&*group.group_id, Row::Screened(at))));
        let rows = collected.uncollected.iter();
        groups.extend(rows.map(|row| (&*row.group.group_id, Row::Uncollected(row))));
        groups.sort_by_key(|(group_id, _)| *group_id);
        let groups = groups.into_iter().map(|(_, row)| match row {
            Row::Screened(at) => screened(at),
            Row::Uncollected(row) => Ok(uncollected(row)),
        });
        let groups = Packed::of(groups)?;
        let evidence = RepositoryEvidence {
            pinned: pinned.clone(),
            built: lab.built.clone(),
            collected: CollectionFacts::of(collected),
            groups,
            parity: work.screening.parity(),
            rules,
            backend: self.repo.backend.as_str().to_owned(),
            image: image.clone(),
            host: machine::facts(lab, &self.repo.slug),
        };
        let tests = tests_of(work, &published, &ids);
        let edited = |id: &InstanceId| Some((id.clone(), work.variants.of(id)?.to_vec()));
        let untold = ids.iter().filter(|id| work.variants.of(id).is_some_and(<[_]>::is_empty));
        let variants = published.iter().chain(untold).filter_map(edited).collect();
        let witnesses = BTreeMap::new();
        let family = self.family();
        Ok(Contribution {
            family,
            evidence,
            published,
            tests,
            witnesses,
            strengths: BTreeMap::new(),
            variants,
            recube: None,
            codetaste: None,
        })
    }
}

/// Instances that are not published, whatever their groups are.
#[derive(Default)]
struct Unfit {
    without_witness: BTreeMap<InstanceId, Witness>,
    /// Those whose tests notice too little.
    weak: BTreeSet<InstanceId>,
    /// Those whose witnesses pass none of their variants.
    without_variants: BTreeSet<InstanceId>,
}

impl Unfit {
    fn has(&self, id: &InstanceId) -> bool {
        self.without_witness.contains_key(id) || self.weak.contains(id) || self.without_variants.contains(id)
    }

    fn len(&self) -> usize {
        self.without_witness.len() + self.weak.len() + self.without_variants.len()
    }
}

/// What a group of the dataset is made of.
enum Row<'a> {
    /// One that was screened, by its place.
    Screened(usize),
    Uncollected(&'a Uncollected),
}

impl Work<'_> {
    /// Whether the traced run of a group came to another end than those before it.
    fn is_doubtful(&self, at: usize) -> bool {
        let traced = self.traces.totals(&self.prepared.collected.groups[at].group_id);
        traced.is_some_and(|traced| traced.complete && traced.has_other_outcome())
    }

    /// Whether an instance can be solved without breaking a rule, and what does not solve it can be recognised, as far as is
    /// known.
    fn is_solvable(&self, id: &InstanceId) -> bool {
        self.on_trial.is_solvable(id) && self.variants.of(id).is_none_or(|variants| !variants.is_empty())
    }

    /// Whether the referee has still to judge an original, or to edit it.
    fn is_untried(&self, id: &InstanceId) -> bool {
        !self.on_trial.has(id) || self.on_trial.is_solvable(id) && self.variants.of(id).is_none()
    }
}

impl RepositoryFacts {
    /// What the environment says of itself.
    pub(super) fn add_environment(&mut self, built: &Built) {
        self.python = Some([built.python.clone(), built.python_reason.clone()]);
        let chosen = built.plans.iter().find(|plan| matches!(plan.result, PlanResult::Chosen { .. }));
        self.plan = chosen.map(|plan| [plan.name.clone(), plan.reason.clone()]);
        self.warnings = built.warnings();
    }

    /// What pytest collects.
    pub(super) fn add_collected(&mut self, collected: &Collected) {
        self.cases = Some(collected.node_ids.len());
        self.groups = Some(collected.groups.len() + collected.uncollected.len());
        let rows = collected.uncollected.iter();
        self.uncollected = rows.map(|row| [row.group.group_id.clone(), row.cause.to_string()]).collect();
    }
}

/// The definitions of the tests that are published, where their files have them.
fn tests_of(
    work: &Work<'_>,
    published: &BTreeSet<InstanceId>,
    ids: &[InstanceId],
) -> BTreeMap<InstanceId, TestSource> {
    let groups = ids.iter().zip(&work.prepared.collected.groups).filter(|(id, _)| published.contains(id));
    let source = |(id, group): (&InstanceId, &Group)| {
        let file = work.screening.sources.get(&group.file)?;
        let code = file.code(group)?;
        Some((id.clone(), TestSource { text: code.source().to_owned(), lines: code.lines() }))
    };
    groups.filter_map(source).collect()
}
