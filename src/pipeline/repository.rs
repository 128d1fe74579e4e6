//! One repository's way through the stages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::config::{BackendKind, Repo};
use crate::error::{Error, Result};
use crate::group::STARTS_THREADS;
use crate::record::collected::Group;
use crate::record::id::InstanceId;
use crate::record::instance::{GroupRecord, RepositoryRecord};
use crate::record::outcome::{Attempt, CaseResult, Exit, Method};
use crate::record::rule::RuleUse;
use crate::record::trace::is_test_path;
use crate::record::verdict::{Cause, Evidence, Verdict};
use crate::record::world::World;
use crate::rules::{Applied, Decision, Subject};
use crate::runner::protocol::TraceMode;
use crate::sample::{self, Candidate};
use crate::screen::attribution::CONFIRMING_ROUND;
use crate::screen::pool::Event;
use crate::screen::world::WorldSetting;
use crate::screen::{FIRST_ROUNDS, attempt_of, cold, contention, node_id, not_collected, rounds};
use crate::screen::{tasks, verdict};
use crate::tier::Difficulty;

use super::bench::{Bench, Depth, Unavailable, parity};
use super::prepare::{Preparation, Prepared};
use super::{Pipeline, Stage};

/// One repository and what it works with.
pub struct Repository<'a> {
    pipeline: &'a Pipeline<'a>,
    repo: &'a Repo,
    stage: Stage,
}

impl<'a> Repository<'a> {
    /// A repository at the start of its way.
    pub fn new(pipeline: &'a Pipeline<'a>, repo: &'a Repo) -> Self {
        Repository { pipeline, repo, stage: Stage::Source }
    }

    /// Goes all the way (or until the stage that was asked for).
    ///
    /// # Errors
    /// The stage that failed, and why.
    pub fn run(mut self) -> Result<Option<RepositoryRecord>, (Stage, Error)> {
        self.stages().map_err(|error| (self.stage, error))
    }

    fn stages(&mut self) -> Result<Option<RepositoryRecord>> {
        let until = self.pipeline.request.until;
        let preparation = Preparation { pipeline: self.pipeline, repo: self.repo };
        let pinned = preparation.source()?;
        if until == Stage::Source {
            return Ok(None);
        }
        self.stage = Stage::Environment;
        let built = preparation.environment(&pinned)?;
        if until == Stage::Environment {
            return Ok(None);
        }
        self.stage = Stage::Collect;
        let prepared = preparation.collect(pinned, built)?;
        if until == Stage::Collect {
            return Ok(None);
        }
        self.stage = Stage::Screen;
        let mut bench = Bench::open(&prepared, self.pipeline)?;
        self.first_rounds(&mut bench)?;
        let all: Vec<usize> = (0..prepared.collected.groups.len()).collect();
        self.other_worlds(&mut bench, &all, Depth::First)?;
        if until == Stage::Screen {
            return Ok(None);
        }
        let chosen = self.deepen(&mut bench, until)?;
        if until == Stage::Trace {
            return Ok(None);
        }
        let further = self.parity_groups(&bench);
        self.cold(&mut bench, &further, 1)?;
        self.stage = Stage::Dataset;
        self.record(bench, &chosen).map(Some)
    }

    /// The verdict of every group after what every group has: its first attempts, in all worlds. Rules and traces have
    /// no say.
    ///
    /// # Errors
    /// Those of the stages up to screening.
    pub fn first_verdicts(self) -> Result<(Prepared, BTreeMap<String, Verdict>)> {
        let prepared = Preparation { pipeline: self.pipeline, repo: self.repo }.run()?;
        let mut bench = Bench::open(&prepared, self.pipeline)?;
        self.first_rounds(&mut bench)?;
        let all: Vec<usize> = (0..prepared.collected.groups.len()).collect();
        self.other_worlds(&mut bench, &all, Depth::First)?;
        let ids = prepared.collected.groups.iter().map(|group| group.group_id.clone());
        let mut verdicts: BTreeMap<String, Verdict> = ids.zip(bench.verdicts(Depth::First)).collect();
        let uncollected = prepared.collected.uncollected.iter();
        verdicts.extend(uncollected.map(|row| (row.group.group_id.clone(), verdict::uncollected(row))));
        drop(bench);
        Ok((prepared, verdicts))
    }

    fn title(&self, what: &str) -> String {
        format!("{} {what}", self.repo.slug)
    }

    /// Every group gets its attempts of the first rounds.
    fn first_rounds(&self, bench: &mut Bench<'_>) -> Result<()> {
        let all: Vec<usize> = (0..bench.prepared.collected.groups.len()).collect();
        for round in FIRST_ROUNDS {
            self.attempts(bench, &all, round, 1, &format!("screen {}/2", round + 1))?;
        }
        Ok(())
    }

    /// What passes in the base world runs where everything differs; what differs there, until the cause has a name.
    fn other_worlds(&self, bench: &mut Bench<'_>, groups: &[usize], depth: Depth) -> Result<()> {
        let mut open = groups.to_vec();
        loop {
            let mut wanted: BTreeMap<World, Vec<(usize, u32)>> = BTreeMap::new();
            open.retain(|index| match bench.next_step(*index, depth) {
                Some((world, missing)) => {
                    wanted.entry(world).or_default().push((*index, missing));
                    true
                }
                None => false,
            });
            if wanted.is_empty() {
                return Ok(());
            }
            for (world, wanted) in wanted {
                let made = bench.world(&world)?;
                let round = if world == World::Base { CONFIRMING_ROUND } else { 0 };
                self.make(bench, &made, &wanted, round, &format!("world {world}"))?;
            }
        }
    }

    /// Makes the attempts of one round in the base world that are still missing.
    fn attempts(
        &self,
        bench: &mut Bench<'_>,
        groups: &[usize],
        round: u32,
        count: u32,
        name: &str,
    ) -> Result<()> {
        let missing = |group: &usize| {
            let made = bench.screened.count(*group, Method::Fork, round);
            (!bench.unavailable.contains_key(group) && made < count).then(|| (*group, count - made))
        };
        let wanted: Vec<(usize, u32)> = groups.iter().filter_map(missing).collect();
        let base = bench.base.clone();
        self.make(bench, &base, &wanted, round, name)
    }

    /// Makes attempts in a world and records them.
    fn make(
        &self,
        bench: &mut Bench<'_>,
        world: &WorldSetting,
        wanted: &[(usize, u32)],
        round: u32,
        name: &str,
    ) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let total = wanted.iter().map(|(_, count)| u64::from(*count)).sum();
        let stage = self.pipeline.progress.stage(&self.title(name), total);
        let durations = bench.screened.durations();
        let Bench { prepared, options, screened, unavailable, unavailable_journal, .. } = bench;
        let collected = &prepared.collected;
        let pool = self.pipeline.pool(prepared, world, options);
        let tasks = tasks(&collected.groups, wanted, &durations, round, TraceMode::Off, pool.jobs);
        let place = world.world.to_string();
        let _contention = world.loaded.then(contention::start).transpose()?;
        let counts: BTreeMap<usize, u32> = wanted.iter().copied().collect();
        let result = pool.run(tasks, |event| {
            match event {
                Event::Attempt { group, round, done, items, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    let attempt =
                        attempt_of(&collected.groups[group], &done, name, &world.normalizer, (&place, round));
                    screened.record(group, attempt)?;
                    stage.step();
                }
                Event::Unavailable { group, round, text } if world.world != World::Base => {
                    for _ in 0..counts.get(&group).copied().unwrap_or(1) {
                        let attempt = not_collected(
                            &collected.groups[group],
                            &text,
                            &world.normalizer,
                            (&place, round),
                        );
                        screened.record(group, attempt)?;
                        stage.step();
                    }
                }
                Event::Unavailable { group, round, text } => {
                    let group_id = collected.groups[group].group_id.clone();
                    let row = Unavailable { group_id, round, text };
                    unavailable_journal.append(&row)?;
                    unavailable.insert(group, row);
                    stage.step();
                }
                Event::Broken(error) => return Err(error),
            }
            Ok(())
        });
        screened.sync()?;
        unavailable_journal.sync()?;
        result
    }

    /// Traces what passes, chooses what is to be published and gives it the attempts that this needs; again until what
    /// is chosen has all of them.
    fn deepen(&mut self, bench: &mut Bench<'_>, until: Stage) -> Result<Choice> {
        loop {
            let screen = &self.pipeline.config.screen;
            self.stage = Stage::Trace;
            let shallow = bench.verdicts(Depth::First);
            let mut passing: Vec<usize> = kept(&shallow);
            passing.extend(kept(&self.judged(bench, shallow)));
            passing.sort_unstable();
            passing.dedup();
            self.trace(bench, &passing)?;
            if until == Stage::Trace {
                return Ok(Choice::default());
            }
            self.stage = Stage::Screen;
            let choice = self.choose(bench);
            let chosen = &choice.chosen;
            let before = bench.made();
            for (round, count) in rounds(screen.attempts) {
                let groups: Vec<usize> = chosen.iter().copied().collect();
                self.attempts(bench, &groups, round, count, &format!("attempts, round {round}"))?;
            }
            let groups: Vec<usize> = chosen.iter().copied().collect();
            self.other_worlds(bench, &groups, Depth::All)?;
            let verdicts = self.judged(bench, bench.verdicts(Depth::All));
            let steady: Vec<usize> =
                chosen.iter().copied().filter(|group| verdicts[*group].is_kept()).collect();
            self.cold(bench, &steady, self.pipeline.config.screen.cold_runs)?;
            let ids = chosen.iter().map(|group| bench.prepared.collected.groups[*group].group_id.as_str());
            let traced_again = bench.traces.forget_damaged(ids)?;
            if bench.made() == before && !traced_again {
                return Ok(choice);
            }
        }
    }

    fn trace(&self, bench: &mut Bench<'_>, groups: &[usize]) -> Result<()> {
        let missing: Vec<usize> = groups
            .iter()
            .copied()
            .filter(|group| bench.traces.totals(&bench.prepared.collected.groups[*group].group_id).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let stage = self.pipeline.progress.stage(&self.title("trace"), 2 * missing.len() as u64);
        let durations = bench.screened.durations();
        let Bench { prepared, options, screened, traces, roots, base, .. } = bench;
        traces.measure(
            &self.pipeline.pool(prepared, base, options),
            &missing,
            &durations,
            |group| {
                screened.of(group).iter().find(|attempt| attempt.method == Method::Fork && attempt.is_base())
            },
            |path| is_test_path(path, roots),
            || stage.step(),
        )
    }

    /// The groups to be published, as far as is known now.
    ///
    /// Who is dropped once it has all attempts makes room for the next one. Only those who got so far are asked for
    /// their deeper attempts: what an earlier build left in the cache for others decides nothing.
    fn choose(&self, bench: &Bench<'_>) -> Choice {
        let dataset = &self.pipeline.config.dataset;
        let first = self.judged(bench, bench.verdicts(Depth::First));
        let all = self.judged(bench, bench.verdicts(Depth::All));
        let mut by_id = BTreeMap::new();
        let mut candidates = Vec::new();
        for (index, group) in bench.prepared.collected.groups.iter().enumerate() {
            let (true, Some(traced)) = (first[index].is_kept(), bench.traces.totals(&group.group_id)) else {
                continue;
            };
            // What could not be measured is kept, but cannot be published: its difficulty is not known.
            if !traced.complete || traced.totals.trace_length == 0 {
                continue;
            }
            let instance_id =
                InstanceId::derive(&self.repo.slug, &bench.prepared.pinned.commit, &group.group_id);
            by_id.insert(instance_id.clone(), index);
            candidates.push(Candidate {
                slug: self.repo.slug.clone(),
                instance_id,
                difficulty: Difficulty {
                    trace_length: traced.totals.trace_length,
                    unique_files: traced.totals.files.len() as u64,
                },
                unsteady: !traced.stable || traced.starts_threads,
                excluded: false,
            });
        }
        let mut reached = BTreeSet::new();
        loop {
            let ids = sample::choose(&candidates, dataset.per_repo, &self.pipeline.config.tier, dataset.seed);
            let chosen: BTreeSet<usize> = ids.iter().filter_map(|id| by_id.get(id).copied()).collect();
            reached.extend(&chosen);
            let dropped: BTreeSet<&InstanceId> =
                ids.iter().filter(|id| by_id.get(id).is_some_and(|index| !all[*index].is_kept())).collect();
            if dropped.is_empty() {
                return Choice { chosen, reached };
            }
            for candidate in &mut candidates {
                candidate.excluded |= dropped.contains(&candidate.instance_id);
            }
        }
    }

    /// Verdicts after what tracing and rules say.
    fn judged(&self, bench: &Bench<'_>, verdicts: Vec<Verdict>) -> Vec<Verdict> {
        self.ruled(bench, verdicts).into_iter().map(|ruled| ruled.verdict).collect()
    }

    /// The same, with what the rules did.
    fn ruled(&self, bench: &Bench<'_>, verdicts: Vec<Verdict>) -> Vec<Ruled> {
        let groups = &bench.prepared.collected.groups;
        let traced = |index: usize| bench.traces.totals(&groups[index].group_id);
        let judge = |(index, verdict): (usize, Verdict)| {
            let group = &groups[index];
            let verdict = match traced(index) {
                // What could not be measured to its end decides nothing.
                Some(traced) if verdict.is_kept() && traced.complete && traced.totals.package_calls == 0 => {
                    verdict::no_repository_code(group, traced.totals.trace_length)
                }
                _ => verdict,
            };
            Ruled::of(group, verdict, self.rules_on(bench, index))
        };
        verdicts.into_iter().enumerate().map(judge).collect()
    }

    fn rules_on(&self, bench: &Bench<'_>, index: usize) -> Applied {
        let group = &bench.prepared.collected.groups[index];
        let totals = bench.traces.totals(&group.group_id).map(|traced| &traced.totals);
        let durations: Vec<f64> =
            // The first rounds only: what every group has.
            bench
            .screened
            .of(index)
            .iter()
            .filter(|attempt| attempt.method == Method::Fork && attempt.is_base() && FIRST_ROUNDS.contains(&attempt.round))
            .map(|attempt| attempt.duration_ms)
            .collect();
        let rules = self.pipeline.rules;
        let file = rules.read_code().then(|| bench.sources.get(&group.file)).flatten();
        let code = file.as_ref().and_then(|file| file.code(group));
        rules.apply(&Subject {
            code: code.as_ref(),
            duration: median(&durations).map(|milliseconds| Duration::from_secs_f64(milliseconds / 1000.0)),
            trace_length: totals.map(|totals| totals.trace_length),
            unique_files: totals.map(|totals| totals.files.len() as u64),
            ..Subject::of(self.repo.slug.as_str(), group)
        })
    }

    /// The further groups whose cold run measures parity: the first ones in the order of sampling, whatever their
    /// verdict.
    fn parity_groups(&self, bench: &Bench<'_>) -> Vec<usize> {
        let seed = self.pipeline.config.dataset.seed;
        let order = |index: &usize| {
            let group_id = &bench.prepared.collected.groups[*index].group_id;
            InstanceId::derive(&self.repo.slug, &bench.prepared.pinned.commit, group_id).sample_order(seed)
        };
        let mut groups: Vec<usize> = (0..bench.prepared.collected.groups.len())
            .filter(|group| !bench.unavailable.contains_key(group))
            .collect();
        groups.sort_by_key(order);
        groups.truncate(self.pipeline.config.screen.parity_groups as usize);
        groups
    }

    /// Cold runs of the literal entry command that are still missing.
    fn cold(&self, bench: &mut Bench<'_>, groups: &[usize], runs: u32) -> Result<()> {
        for run in 1..=runs {
            let Bench { prepared, options, screened, .. } = &mut *bench;
            let missing: Vec<(usize, &Group)> = groups
                .iter()
                .filter(|group| screened.count(**group, Method::Cold, 0) < run)
                .map(|group| (*group, &prepared.collected.groups[*group]))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let stage = self.pipeline.progress.stage(&self.title("cold runs"), missing.len() as u64);
            let ends: Vec<bool> = (0..prepared.collected.groups.len())
                .map(|group| {
                    screened.of(group).iter().all(|attempt| {
                        attempt.method == Method::Cold || !attempt.is_base() || attempt.exit == Exit::Finished
                    })
                })
                .collect();
            let cold = cold::Cold {
                backend: &*prepared.backend,
                setting: &prepared.setting,
                options,
                group_timeout: self.pipeline.config.screen.group_timeout,
                jobs: self.pipeline.request.jobs,
                ends: &|group| ends[group],
            };
            let result = cold.run(&missing, |group, attempt| {
                stage.step();
                screened.record(group, attempt)
            });
            screened.sync()?;
            result?;
        }
        Ok(())
    }

    fn record(&self, bench: Bench<'_>, choice: &Choice) -> Result<RepositoryRecord> {
        let groups = 0..bench.prepared.collected.groups.len();
        let verdicts = groups.map(|index| bench.verdict(index, choice.depth(index))).collect();
        let ruled = self.ruled(&bench, verdicts);
        let rules = used(self.pipeline.rules.unused(), &ruled);
        let parity = parity(&bench);
        let Prepared { pinned, built, .. } = bench.prepared;
        let mut groups = Vec::new();
        for (index, ruled) in ruled.into_iter().enumerate() {
            let mut group = bench.prepared.collected.groups[index].clone();
            let by_rule = !ruled.kept_by.is_empty();
            group.flags.extend(ruled.flags());
            let verdict = ruled.verdict;
            let published = choice.chosen.contains(&index) && verdict.is_kept();
            let traced = if published {
                bench.traces.whole(&group.group_id)?
            } else {
                bench.traces.totals(&group.group_id).cloned()
            };
            let considered: Vec<Attempt> =
                bench.considered(index, choice.depth(index)).into_iter().cloned().collect();
            let attempts = bench.screened.of(index).to_vec();
            if traced.as_ref().is_some_and(|traced| traced.starts_threads) {
                group.flags.push(STARTS_THREADS.to_owned());
            }
            groups.push(GroupRecord {
                slug: self.repo.slug.clone(),
                instance_id: InstanceId::derive(&self.repo.slug, &pinned.commit, &group.group_id),
                published,
                agreeing: match (verdict.is_kept(), by_rule) {
                    (false, _) => 0,
                    (true, false) => considered.len().try_into().unwrap_or(u32::MAX),
                    (true, true) => agreeing(&considered),
                },
                trace_length_package: traced.as_ref().map(|traced| traced.totals.package_calls),
                traced,
                golden: golden(&verdict, &considered),
                attempts,
                verdict,
                group,
            });
        }
        groups.extend(bench.prepared.collected.uncollected.iter().map(|row| GroupRecord {
            slug: self.repo.slug.clone(),
            instance_id: InstanceId::derive(&self.repo.slug, &pinned.commit, &row.group.group_id),
            group: row.group.clone(),
            verdict: verdict::uncollected(row),
            published: false,
            attempts: Vec::new(),
            agreeing: 0,
            traced: None,
            trace_length_package: None,
            golden: Vec::new(),
        }));
        Ok(RepositoryRecord {
            pinned: pinned.clone(),
            built: built.clone(),
            collected: bench.prepared.collected.clone(),
            groups,
            parity,
            rules,
            backend: match self.repo.backend {
                BackendKind::Local => "local".to_owned(),
                BackendKind::Docker => "docker".to_owned(),
            },
            image: bench.prepared.image.clone(),
        })
    }
}

/// What is to be published.
#[derive(Debug, Default)]
struct Choice {
    chosen: BTreeSet<usize>,
    /// Those who were chosen at some point, and may have been dropped since.
    reached: BTreeSet<usize>,
}

impl Choice {
    /// Which attempts decide about a group.
    fn depth(&self, group: usize) -> Depth {
        if self.reached.contains(&group) { Depth::All } else { Depth::First }
    }
}

fn kept(verdicts: &[Verdict]) -> Vec<usize> {
    verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_kept()).map(|(index, _)| index).collect()
}

/// A verdict after the rules, and what they did.
struct Ruled {
    verdict: Verdict,
    applied: Applied,
    /// The rule that dropped it.
    dropped_by: Option<String>,
    /// The rules without which it would be dropped.
    kept_by: Vec<String>,
}

impl Ruled {
    fn of(group: &Group, measured: Verdict, applied: Applied) -> Self {
        let (verdict, dropped_by, kept_by) = match applied.decide(measured.cause()) {
            Decision::Unchanged => (measured, None, Vec::new()),
            Decision::Keep { by } => (Verdict::Kept, None, by),
            Decision::Drop { id, reason } => {
                let command = group.entry_command();
                let evidence =
                    Evidence { summary: reason, seen: Vec::new(), excerpt: String::new(), command };
                (Verdict::Dropped { cause: Cause::Rule(id.clone()), evidence }, Some(id), Vec::new())
            }
        };
        Ruled { verdict, applied, dropped_by, kept_by }
    }

    /// Ids of the rules that flag it, and `kept-by:<id>` for those that keep it.
    fn flags(&self) -> impl Iterator<Item = String> {
        let kept_by = self.kept_by.iter().map(|id| format!("kept-by:{id}"));
        self.applied.flags.iter().cloned().chain(kept_by)
    }
}

/// How often each rule matched and decided.
fn used(mut rules: BTreeMap<String, RuleUse>, ruled: &[Ruled]) -> BTreeMap<String, RuleUse> {
    for one in ruled {
        for id in &one.applied.matched {
            rules.entry(id.clone()).and_modify(|rule| rule.matched += 1);
        }
        for id in one.dropped_by.iter().chain(&one.kept_by) {
            rules.entry(id.clone()).and_modify(|rule| rule.decided += 1);
        }
    }
    rules
}

/// Attempts in the fork tree that showed what the first one showed, and cold runs that agree with it.
fn agreeing(attempts: &[Attempt]) -> u32 {
    let Some(first) = attempts.iter().find(|attempt| attempt.method == Method::Fork) else { return 0 };
    let hash = first.observation_hash();
    let agrees = |attempt: &&Attempt| match attempt.method {
        Method::Fork => attempt.observation_hash() == hash,
        Method::Cold => cold::agrees(first, attempt),
    };
    attempts.iter().filter(agrees).count().try_into().unwrap_or(u32::MAX)
}

/// What every attempt in the fork tree showed; empty when they differ, and where another build could see something
/// else.
fn golden(verdict: &Verdict, attempts: &[Attempt]) -> Vec<CaseResult> {
    if let Some(Cause::NondeterministicOutcome | Cause::NondeterministicOutput) = verdict.cause() {
        return Vec::new();
    }
    let mut fork = attempts.iter().filter(|attempt| attempt.method == Method::Fork && attempt.is_base());
    let Some(first) = fork.next() else { return Vec::new() };
    let hash = first.observation_hash();
    if fork.all(|attempt| attempt.observation_hash() == hash) { first.cases.clone() } else { Vec::new() }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
