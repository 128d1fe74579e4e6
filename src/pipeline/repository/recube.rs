//! `ReCUBE`: from the traces of kept groups to masked files that are proved.

mod context;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;

use super::{Repository, Work};
use crate::beneath::{Folder, Kind};
use crate::config::OutsideTests;
use crate::error::{Error, Result};
use crate::family::recube::candidates::{GroupCalls, Reached, Target, candidates};
use crate::family::recube::leaks::{Bodies, is_apart};
use crate::family::recube::mask::{LONGEST, text_of_target};
use crate::family::recube::{flags, scope};
use crate::family::sample::Choice;
use crate::family::tokens;
use crate::pipeline::Stage;
use crate::pipeline::prepare::Prepared;
use crate::record::collected::Group;
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::instance::Contribution;
use crate::record::outcome::{Attempt, Outcome};
use crate::record::recube::Kind as TestKind;
use crate::record::recube::{PublishedTarget, RecubeRecord, TargetCause, TargetRow, WHOLE_TREE};
use crate::record::trace::{self, Traced, is_test_path, test_roots};
use crate::referee::recube::gates::{Candidate, Gated, Refused};
use crate::referee::texts::{Runs, TargetLab, byte_code_of};
use crate::screen::considered::Depth;
use crate::text::count;
use context::Context;

/// Targets that the gates refused, by path.
type RefusedTargets = BTreeMap<String, Refused>;
/// What the gates made of a target: an instance for each scope, or the cause.
type PublishedOrNot = std::result::Result<Vec<PublishedTarget>, Refused>;

/// The files of a tree.
struct Tree {
    /// All, by path; links too.
    paths: Vec<String>,
    /// Python files that are not tests.
    texts: BTreeMap<String, Vec<u8>>,
    test_roots: Vec<String>,
}

impl Tree {
    /// With tests from outside no other is collected: then all test files of the tree say where tests are, and the folder of those
    /// from outside is one of them.
    fn read(work: &Work<'_>, outside: Option<&OutsideTests>) -> Result<Self> {
        let collected = &work.prepared.collected;
        let folder = Folder::open(&work.prepared.lab.built.tree)?;
        let entries = folder.walk()?;
        let mut test_roots = test_roots(collected.groups.iter().map(|group| group.file.as_str()));
        if let Some(outside) = outside {
            let files = entries.iter().filter_map(|entry| entry.path.to_str());
            test_roots.extend(trace::test_roots(files.filter(|path| is_test_path(path, &[]))));
            test_roots.push(outside.at.clone());
        }
        let (mut paths, mut texts) = (Vec::new(), BTreeMap::new());
        for entry in entries {
            let Some(path) = entry.path.to_str().filter(|path| !path.starts_with(".git/")) else { continue };
            if !matches!(entry.kind, Kind::File | Kind::Link(_)) {
                continue;
            }
            if path.ends_with(".py") && !is_test_path(path, &test_roots) {
                // One that is too large is not read, and cannot be masked.
                let bytes = folder.read_through_links(Path::new(path), LONGEST as u64 + 1);
                texts.extend(bytes.ok().map(|bytes| (path.to_owned(), bytes)));
            }
            paths.push(path.to_owned());
        }
        Ok(Tree { paths, texts, test_roots })
    }

    /// Byte code of a file.
    fn byte_code(&self, target: &str) -> Vec<String> {
        byte_code_of(target, self.paths.iter().map(String::as_str))
    }

    /// Files of the tree and of the environment in which the original can be read.
    fn leaks(&self, target: &str, original: &str, venv: &BTreeMap<String, String>) -> Vec<String> {
        let bodies = Bodies::of(original);
        let others = self.texts.iter().filter(|(path, _)| *path != target);
        let others = others.filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)));
        let in_tree = others.filter(|(_, text)| bodies.are_in(text)).map(|(path, _)| path);
        let is_copy = |(path, text): &(&String, &String)| {
            bodies.are_in(text)
                || (path.contains("/site-packages/pip/_vendor/")
                    && bodies.are_released_in(target, path, text))
        };
        let installed = venv.iter().filter(is_copy);
        in_tree.chain(installed.map(|(path, _)| path)).cloned().collect()
    }

    /// What an agent does not see beside the original. `shown` are the Python files of a scope.
    fn hidden(&self, target: &str, leaks: &[String], shown: Option<&BTreeSet<String>>) -> Vec<String> {
        let tests = self.paths.iter().filter(|path| is_test_path(path, &self.test_roots)).cloned();
        let copies = leaks.iter().filter(|path| self.texts.contains_key(*path)).cloned();
        let is_apart = |path: &&String| shown.is_some_and(|shown| !shown.contains(*path));
        let apart = self.texts.keys().filter(is_apart).cloned();
        let all: BTreeSet<String> = tests.chain(self.byte_code(target)).chain(copies).chain(apart).collect();
        all.into_iter().collect()
    }
}

/// A part of a tree that is shown, and its targets.
struct Shown {
    name: String,
    /// Python files of it; none where all are.
    files: Option<BTreeSet<String>>,
    large: bool,
    targets: BTreeSet<String>,
}

/// The targets to be published, as far as is known now.
struct Selection {
    rows: Vec<TargetRow>,
    targets: Vec<(String, Target)>,
    scopes: Vec<Shown>,
    /// The groups that judge them.
    choice: Choice,
    /// These groups by ID, with those of their cases that passed.
    groups: BTreeMap<String, (Group, Vec<String>)>,
}

/// A target in a scope.
struct Published<'a> {
    target: &'a Target,
    file: &'a str,
    bytes: &'a [u8],
    leaks: &'a [String],
    scope: &'a Shown,
}

impl Repository<'_> {
    /// The stages after screening.
    pub(super) fn stages_of_targets(
        &mut self,
        work: &mut Work<'_>,
        all: &[usize],
    ) -> Result<Option<Contribution>> {
        let until = self.pipeline.request.until;
        let tree = Tree::read(work, self.repo.outside.as_ref())?;
        let mut refused = RefusedTargets::new();
        loop {
            self.enter(Stage::Trace);
            self.trace_passing(work, all)?;
            if until == Stage::Trace {
                return Ok(None);
            }
            self.enter(Stage::Select);
            let Some(selection) = self.select(work, &tree, &refused)? else { continue };
            if until == Stage::Select {
                return Ok(None);
            }
            self.enter(Stage::Confirm);
            if !self.confirm(work, &selection.choice)? {
                continue;
            }
            work.screening.cold(&self.parity_groups(work), 1)?;
            let gated = self.gate(work, &tree, &selection)?;
            if gated.iter().any(|(_, gated)| gated.is_err()) {
                refused.extend(gated.into_iter().filter_map(|(file, gated)| Some((file, gated.err()?))));
                continue;
            }
            let published = gated.into_iter().filter_map(|(_, gated)| gated.ok()).flatten().collect();
            return Ok((until != Stage::Confirm).then_some(self.of_targets(work, selection, published)?));
        }
    }

    /// Candidates, and the groups that judge those that are to be published. None where traces were damaged.
    fn select(
        &self,
        work: &mut Work<'_>,
        tree: &Tree,
        refused: &RefusedTargets,
    ) -> Result<Option<Selection>> {
        let config = self.pipeline.config;
        let groups = &work.prepared.collected.groups;
        let kept = self.kept(work);
        if work.traces.forget_damaged(kept.iter().map(|at| groups[*at].group_id.as_str()))? {
            return Ok(None);
        }
        let (mut reached, mut cases) = (Reached::default(), BTreeMap::new());
        for at in kept {
            let group = &groups[at];
            let Some(traced) = work.traces.whole(&group.group_id)?.filter(Traced::is_whole) else { continue };
            let passed = passed(work.screening.history().of(at));
            let unstable: Vec<String> = traced.unstable_functions().map(str::to_owned).collect();
            let calls = GroupCalls {
                group_id: &group.group_id,
                cases: passed.len() as u32,
                functions: &traced.functions,
                starts_threads: traced.starts_threads(),
                unstable: &unstable,
                given: work
                    .written_for
                    .get(&group.file)
                    .map(|target| (target.as_str(), self.kind(target, group))),
            };
            reached.add(calls, &tree.test_roots);
            cases.insert(group.group_id.clone(), (group.clone(), passed));
        }
        let texts = tree.texts.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        let named = &self.repo.targets;
        let (mut rows, mut targets) = candidates(&reached, &texts, (&config.recube, &tree.test_roots), named);
        self.check_named(tree, &rows)?;
        for row in &mut rows {
            if let Some((cause, evidence)) = refused.get(&row.file) {
                (row.cause, row.evidence) = (Some(*cause), Some(evidence.clone()));
            }
        }
        targets.retain(|(file, _)| !refused.contains_key(file));
        let scopes = self.scopes(tree, &targets)?;
        targets.retain(|(file, _)| scopes.iter().any(|scope| scope.targets.contains(file)));
        for row in &mut rows {
            row.published = targets.iter().any(|(file, _)| *file == row.file);
        }
        let judging: BTreeSet<&str> = targets
            .iter()
            .flat_map(|(_, target)| target.groups.iter().map(|one| one.group_id.as_str()))
            .collect();
        let chosen: BTreeSet<InstanceId> = judging.iter().map(|group| self.id(work, group)).collect();
        let groups = cases.into_iter().filter(|(id, _)| judging.contains(id.as_str())).collect();
        let choice = Choice { reached: chosen.clone(), chosen };
        Ok(Some(Selection { rows, targets, scopes, choice, groups }))
    }

    /// What is shown, and the targets of each part: the first ones that it has.
    fn scopes(&self, tree: &Tree, ranked: &[(String, Target)]) -> Result<Vec<Shown>> {
        let config = self.pipeline.config;
        let most = match config.dataset.per_repo {
            most if most > 0 && self.repo.targets.is_empty() => most as usize,
            _ => usize::MAX,
        };
        let ranked = || ranked.iter().map(|(file, _)| file.clone());
        let paths: Vec<&str> = tree.texts.keys().map(String::as_str).collect();
        let mut scopes = Vec::new();
        for scope in &self.repo.scopes {
            let files: BTreeSet<String> =
                scope::files(scope, &paths).into_iter().map(str::to_owned).collect();
            if files.is_empty() {
                let message =
                    format!("{}: the scope {} has no Python file of the tree", self.repo.slug, scope.name);
                return Err(Error::repository(message).with_hint("change its `paths`"));
            }
            let targets = ranked().filter(|file| files.contains(file)).take(most).collect();
            scopes.push(Shown {
                name: scope.name.clone(),
                files: Some(files),
                large: self.repo.large,
                targets,
            });
        }
        let whole = |large, targets| Shown { name: WHOLE_TREE.to_owned(), files: None, large, targets };
        if scopes.is_empty() {
            scopes.push(whole(self.repo.large, ranked().take(most).collect()));
        } else if config.recube.large {
            scopes.push(whole(true, scopes.iter().flat_map(|scope| scope.targets.clone()).collect()));
        }
        Ok(scopes)
    }

    /// What those who wrote a test say of its kind.
    fn kind(&self, target: &str, group: &Group) -> Option<TestKind> {
        self.repo.outside.as_ref()?.given.kinds.get(target)?.get(&group.function).copied()
    }

    /// Refuses scopes without a Python file of the tree, all at once, before anything long starts.
    pub(super) fn check_scopes(&self, prepared: &Prepared) -> Result<()> {
        let entries = if self.repo.scopes.is_empty() {
            Vec::new()
        } else {
            Folder::open(&prepared.lab.built.tree)?.walk()?
        };
        let paths = entries.iter().filter_map(|entry| entry.path.to_str());
        let paths: Vec<&str> = paths.filter(|path| path.ends_with(".py")).collect();
        let empty = self.repo.scopes.iter().filter(|scope| scope::files(scope, &paths).is_empty());
        let names: Vec<&str> = empty.map(|scope| scope.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let message = format!("{}: no Python file of the tree is in {}", self.repo.slug, names.join(", "));
        Err(Error::repository(message).with_hint("change the `paths` of these [[repo.scope]]"))
    }

    /// The target of each test file of tests from outside. Says which tests are classified and not there.
    pub(super) fn written_for(&self, prepared: &Prepared) -> Result<BTreeMap<String, String>> {
        let Some(outside) = &self.repo.outside else { return Ok(BTreeMap::new()) };
        let folder = Folder::open(&prepared.lab.built.tree)?;
        let entries = folder.walk()?;
        let paths = entries.iter().filter_map(|entry| entry.path.to_str());
        let targets = outside.given.targets(paths).map_err(|why| {
            Error::repository(format!("{}: tests_from has tests of no file", self.repo.slug))
                .with_detail(why.join("\n"))
        })?;
        let collected: BTreeSet<(&str, &str)> = (prepared.collected.groups.iter())
            .filter_map(|group| Some((targets.get(&group.file)?.as_str(), group.function.as_str())))
            .collect();
        let classified = outside.given.kinds.iter();
        let classified = classified
            .flat_map(|(target, kinds)| kinds.keys().map(move |name| (target.as_str(), name.as_str())));
        let lacking = classified.filter(|one| !collected.contains(one)).count();
        if lacking > 0 {
            self.pipeline.progress.say(&format!(
                "{}: tests_from classifies {} that no file of it has",
                self.repo.slug,
                count(lacking, "test function")
            ));
        }
        Ok(targets)
    }

    /// Groups that are kept as far as is known: by all their attempts where they have those of what is published.
    fn kept(&self, work: &Work<'_>) -> Vec<usize> {
        let first = self.ruled(work, work.screening.verdicts(Depth::First));
        let all = self.ruled(work, work.screening.verdicts(Depth::All));
        let is_kept = |at: &usize| {
            first[*at].verdict.is_kept() && (!work.screening.is_deepened(*at) || all[*at].verdict.is_kept())
        };
        (0..first.len()).filter(is_kept).collect()
    }

    /// Refuses targets of the configuration that cannot be any.
    fn check_named(&self, tree: &Tree, rows: &[TargetRow]) -> Result<()> {
        for file in &self.repo.targets {
            let row = rows.iter().find(|row| row.file == *file);
            let why = match row {
                Some(TargetRow { cause: Some(TargetCause::NotMaskable), evidence, .. }) => {
                    format!("cannot be masked: {}", evidence.as_deref().unwrap_or_default())
                }
                Some(_) => continue,
                None if is_test_path(file, &tree.test_roots) => "is a test".to_owned(),
                None if !tree.texts.contains_key(file) => "is not a file of the tree".to_owned(),
                None => "is reached by no kept group".to_owned(),
            };
            return Err(Error::repository(format!("{}: the target {file} {why}", self.repo.slug))
                .with_hint("change its [[repo.target]], or leave it out"));
        }
        Ok(())
    }

    /// Puts the selected targets to their gates. Each that passes is published once for each scope that has it.
    fn gate(
        &self,
        work: &Work<'_>,
        tree: &Tree,
        selection: &Selection,
    ) -> Result<Vec<(String, PublishedOrNot)>> {
        let prepared = work.prepared;
        let config = &self.pipeline.config.recube;
        let runs = Runs::open(&prepared.journals.join("recube"))?;
        let title = format!("{} gates", self.repo.slug);
        let stage = self.pipeline.progress.stage(&title, selection.targets.len() as u64);
        let venv = installed(&prepared.lab.built.venv)?;
        let folder = Folder::open(&prepared.lab.built.tree)?;
        let context = Context::read(tree, (&folder, &prepared.lab.built.venv), &config.context_exclude)?;
        let gated = |(file, target): &(String, Target)| {
            let byte_code = tree.byte_code(file);
            let bytes = tree.texts.get(file).map(Vec::as_slice).unwrap_or_default();
            let original = text_of_target(bytes).unwrap_or_default();
            let place = TargetLab {
                lab: &prepared.lab,
                cache: self.pipeline.cache,
                target: file,
                byte_code: &byte_code,
                waiting: None,
            };
            let seed = self.pipeline.config.dataset.seed;
            let candidate =
                Candidate { place, original, target, groups: &selection.groups, bounds: config, seed };
            let leaks = tree.leaks(file, original, &venv);
            let needed = leaks.iter().find(|path| venv.contains_key(*path) && !is_apart(path));
            let one = match needed {
                Some(copy) => Err((TargetCause::Leaks, format!("{copy} has its bodies"))),
                None => candidate.gate(&runs)?,
            };
            let published = |gated: Gated| {
                let scopes = selection.scopes.iter().filter(|scope| scope.targets.contains(file));
                let shown = |scope| Published { target, file, bytes, leaks: &leaks, scope };
                scopes
                    .map(|scope| self.published(prepared, tree, (&shown(scope), &gated, &context), selection))
                    .collect()
            };
            stage.step();
            Ok((file.clone(), one.map(published)))
        };
        selection.targets.par_iter().map(gated).collect()
    }

    /// A target as an instance of a scope.
    fn published(
        &self,
        prepared: &Prepared,
        tree: &Tree,
        (shown, gated, context): (&Published<'_>, &Gated, &Context),
        selection: &Selection,
    ) -> PublishedTarget {
        let Published { target, file, bytes, leaks, scope } = *shown;
        let commit = &prepared.pinned.commit;
        let measured = selection.rows.iter().find(|row| row.file == file).map(|row| row.measured.clone());
        let measured = measured.unwrap_or_default();
        let hidden_files = tree.hidden(file, leaks, scope.files.as_ref());
        let context = context.of(file, &target.masked.text, &hidden_files);
        let target_tokens = text_of_target(bytes).ok().and_then(tokens::count);
        PublishedTarget {
            instance_id: InstanceId::of_target(&self.repo.slug, commit, &scope.name, file),
            file: file.to_owned(),
            scope: scope.name.clone(),
            large: scope.large,
            noticed_functions: gated.noticed_functions,
            unnoticed: gated.unnoticed.clone(),
            mutants: gated.mutants,
            masked: target.masked.text.clone(),
            masked_sha256: sha256_hex(target.masked.text.as_bytes()),
            original_sha256: sha256_hex(bytes),
            flags: flags(gated.noticed_functions, measured.masked_functions, target_tokens),
            measured,
            cases: gated.cases.clone(),
            attempts: 0,
            hidden_files,
            context_tokens: tokens::count(&context),
            target_tokens,
            context,
            leaks: leaks.to_vec(),
            traces: Vec::new(),
        }
    }

    /// What the repository contributes.
    fn of_targets(
        &self,
        work: &Work<'_>,
        selection: Selection,
        mut published: Vec<PublishedTarget>,
    ) -> Result<Contribution> {
        let contribution = self.contribution(work, selection.choice)?;
        let mut agreeing: BTreeMap<String, u32> = BTreeMap::new();
        for group in contribution.evidence.groups.iter() {
            let group = group?;
            if contribution.published.contains(&group.instance_id) {
                agreeing.insert(group.group.group_id, group.agreeing);
            }
        }
        for target in &mut published {
            let mut groups: Vec<&str> = target.cases.iter().map(|case| case.group_id.as_str()).collect();
            groups.dedup();
            target.attempts =
                groups.iter().filter_map(|group| agreeing.get(*group)).min().copied().unwrap_or(0);
            for group in groups {
                let functions = work.traces.whole(group)?.map(|traced| traced.functions).unwrap_or_default();
                let inside = functions.into_iter().filter(|one| one.file == target.file && one.is_called());
                target.traces.extend(inside.map(|function| (group.to_owned(), function)));
            }
        }
        published.sort_by(|one, other| (&one.file, &one.scope).cmp(&(&other.file, &other.scope)));
        let recube = RecubeRecord { targets: selection.rows, published, domain: self.repo.domain.clone() };
        Ok(Contribution { recube: Some(recube), ..contribution })
    }
}

/// Largest installed file that is looked at, in bytes.
const LARGEST_INSTALLED: u64 = 1 << 20;

/// The Python files of an environment, as `venv/…`.
fn installed(venv: &Path) -> Result<BTreeMap<String, String>> {
    let folder = Folder::open(venv)?;
    let mut texts = BTreeMap::new();
    for entry in folder.walk()?.into_iter().filter(|entry| entry.kind == Kind::File) {
        let Some(path) = entry.path.to_str().filter(|path| path.ends_with(".py")) else { continue };
        let text = folder.read(&entry.path, LARGEST_INSTALLED).ok();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        texts.extend(text.map(|text| (format!("venv/{path}"), text)));
    }
    Ok(texts)
}

/// The cases that pass in the first attempt in the base world, which all others of a kept group agree with.
fn passed(attempts: &[Attempt]) -> Vec<String> {
    let first = attempts.iter().find(|attempt| attempt.is_reference());
    let cases = first.into_iter().flat_map(|attempt| &attempt.cases);
    cases.filter(|case| case.outcome == Outcome::Passed).map(|case| case.case_id.clone()).collect()
}
