//! What a dataset of masked files says in several places, held against each other, and against the trees it has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::derived::head_of;
use super::groups::{self, Groups, Key};
use super::summary::{card_text, compare_subsets, differing, lines, rate_again, reproducible, value};
use super::{Compared, cells_differ, is_older, read, row_of, rows};
use crate::dataset::recube::{self, InstanceCases, RecubeInstance, card_of};
use crate::dataset::{Dataset, card, counts, trees};
use crate::error::Result;
use crate::family::WORKDIR;
use crate::family::recube::docstring::DocstringKind;
use crate::family::recube::leaks::Bodies;
use crate::family::recube::mask::{Cut, Function, mask, published_leak, text_of_target};
use crate::family::recube::{flags, prompt};
use crate::family::tier::flake_bound;
use crate::family::tokens;
use crate::interrupt;
use crate::record::entry::pytest_line;
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::outcome::Outcome;
use crate::record::recube::{InstanceCase, Kind, Way};
use crate::record::trace::{is_test_path, test_roots};

const INSTANCES: &str = "instances";
const JUDGING: &str = "instance_cases.parquet";
const TRACES: &str = "traces.parquet";
const TARGETS: &str = "targets.parquet";

/// What the tables say of one dataset.
struct Tables<'a> {
    dataset: &'a Dataset,
    instances: &'a [RecubeInstance],
    cases: &'a InstanceCases,
    groups: &'a Groups,
}

/// Holds all of a dataset against itself.
pub(super) fn compare(dataset: &Dataset) -> Result<Compared> {
    let mut found = Compared::default();
    let Some(instances) = rows(&mut found, dataset, dataset.recube_instances())? else { return Ok(found) };
    let cases = read(&mut found, JUDGING, dataset.recube_cases())?.unwrap_or_default();
    let groups = groups::read(&mut found, dataset)?;
    let tables = Tables { dataset, instances: &instances, cases: &cases, groups: &groups };
    let judging = tables.judging(&mut found);
    groups.compare(&mut found, &dataset.manifest, (&[], &judging))?;
    let contexts = read(&mut found, "contexts.parquet", dataset.recube_contexts())?;
    tables.derived(&mut found, &contexts.unwrap_or_default())?;
    let traced = tables.traces(&mut found);
    read(&mut found, TRACES, traced)?;
    let candidates = tables.candidates(&mut found);
    read(&mut found, TARGETS, candidates)?;
    tables.summary(&mut found)?;
    tables.card(&mut found)?;
    not_looked_at(&mut found);
    Ok(found)
}

fn not_looked_at(found: &mut Compared) {
    for what in [
        "groups.parquet: why groups that judge nothing were dropped, and what was measured of them",
        "attempts.parquet: outcomes, observations and durations",
        "traces.parquet: how often, in which order and in which lines",
        "targets.parquet: evidence, ranks, and what was measured of files that are not masked",
        "instances: called_functions, noticed_functions, mutation_score, reached_by, callers, trace_calls, what is installed of leaks, hidden_files but for tests",
        "instance_cases: kind, reason and entry, but for the kind of a reason; cases that the gates took, but for those that a run shows",
        "contexts.parquet: that a context has the mask and not the original",
        "environments/: Dockerfiles, what was built with, and other files beside requirements.lock",
        "manifest.json: sources, but for the hashes of the trees; environments, but for requirements.lock; parity, rules, failed, \
         isolation, machine, worlds, normalized, spent, varies, notes",
    ] {
        found.is_not_verified(what.to_owned());
    }
}

impl Tables<'_> {
    fn cases_of(&self, one: &RecubeInstance) -> &[InstanceCase] {
        self.cases.get(one.head.instance_id.as_str()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The groups that judge, each of which has to be kept, with cases that pass.
    fn judging(&self, found: &mut Compared) -> BTreeSet<Key> {
        let slugs: BTreeMap<&str, &str> = self
            .instances
            .iter()
            .map(|one| (one.head.instance_id.as_str(), one.head.slug.as_str()))
            .collect();
        let mut judging = BTreeSet::new();
        for (id, cases) in self.cases {
            let Some(slug) = slugs.get(id.as_str()) else {
                found.wrong(JUDGING, id, "the dataset has no such instance");
                continue;
            };
            for case in cases {
                let passes = self.groups.cases_of(slug, &case.group_id).is_some_and(|known| {
                    known
                        .expected
                        .iter()
                        .any(|one| one.case_id == case.case_id && one.outcome == Some(Outcome::Passed))
                });
                if !passes {
                    found.wrong(JUDGING, &case.case_id, "cases.parquet has no such case that passed");
                }
                let row = self.groups.row(slug, &case.group_id);
                if row.is_none_or(|row| row.get("kept") != Some(&Value::Bool(true))) {
                    found.wrong(JUDGING, &case.group_id, "groups.parquet does not have it as kept");
                }
                if let Some(expected) = case.reason.kind().filter(|kind| *kind != case.kind) {
                    let (said, expected) = (case.kind.as_str(), expected.as_str());
                    found.differs(JUDGING, &case.case_id, "kind", (&said.into(), &expected.into()));
                }
                judging.insert(((*slug).to_owned(), case.group_id.clone()));
            }
        }
        judging
    }

    /// Columns of the instances that follow from something else.
    fn derived(&self, found: &mut Compared, contexts: &BTreeMap<String, String>) -> Result<()> {
        let manifest = &self.dataset.manifest;
        let mut rated = self.instances.to_vec();
        rate_again(&mut rated, manifest);
        let mut trees: BTreeMap<&str, Option<BTreeMap<String, String>>> = BTreeMap::new();
        for (said, mut expected) in self.instances.iter().zip(rated) {
            interrupt::check()?;
            if let Some(environment) = head_of(found, manifest, &mut expected.head) {
                expected.lock_sha256.clone_from(&environment.lock_sha256);
                expected.image = environment.image.as_ref().map(|image| image.tag.clone());
                expected.image_id = environment.image.as_ref().map(|image| image.id.clone());
            }
            self.follow_from_cases(&mut expected);
            let context = contexts.get(said.head.instance_id.as_str());
            expected.context_sha256 = context.map(|context| sha256_hex(context.as_bytes()));
            expected.context_tokens = context.map_or(said.context_tokens, |context| tokens::count(context));
            let slug = said.head.slug.as_str();
            if !trees.contains_key(slug) {
                let place = manifest.trees.get(slug).cloned().unwrap_or_default();
                let texts = read(found, &place, trees::python_files(self.dataset, slug))?.flatten();
                trees.insert(slug, texts.map(|texts| texts.into_iter().collect()));
            }
            match trees.get(slug).and_then(Option::as_ref) {
                Some(tree) => self.follow_from_tree(found, tree, &mut expected),
                None => found
                    .is_not_verified(format!("masks of {slug}: the dataset has no tree that can be read")),
            }
            if !is_older(self.dataset) {
                found.rows_differ(
                    INSTANCES,
                    said.head.instance_id.as_str(),
                    &row_of(said)?,
                    &row_of(&expected)?,
                );
            }
        }
        Ok(())
    }

    fn follow_from_cases(&self, one: &mut RecubeInstance) {
        let cases = self.cases_of(one);
        let judging: Vec<&InstanceCase> = cases.iter().filter(|case| case.left_out.is_none()).collect();
        let count = |counts: &dyn Fn(&InstanceCase) -> bool| {
            judging.iter().filter(|case| counts(case)).count() as u64
        };
        let mut ids: Vec<&str> = judging.iter().map(|case| case.group_id.as_str()).collect();
        ids.dedup();
        one.entry_command = pytest_line(&ids);
        one.n_groups = ids.len() as u64;
        one.n_cases = judging.len() as u64;
        one.n_external = count(&|case| case.kind == Kind::External);
        one.n_internal = count(&|case| case.kind == Kind::Internal);
        one.n_direct = count(&|case| case.way == Way::Direct);
        one.n_through = count(&|case| case.way == Way::Through);
        one.fail_to_pass = judging.iter().map(|case| case.case_id.clone()).collect();
        one.pass_to_pass = Vec::new();
        one.caller_files = one.callers.len() as u64;
        let slug = one.head.slug.as_str();
        let agreeing = cases.iter().filter_map(|case| {
            let row = self.groups.row(slug, &case.group_id)?;
            u32::try_from(row.get("agreeing")?.as_u64()?).ok()
        });
        one.attempts = agreeing.min().unwrap_or(0);
        one.flake_bound = flake_bound(one.attempts);
        one.environment = format!("environments/{}", one.head.slug.file_name());
        one.head.instance_id =
            InstanceId::of_target(&one.head.slug, &one.head.commit, &one.scope, &one.target);
        one.prompt = prompt(one.head.slug.as_str(), &one.target, WORKDIR);
        one.flags = flags(one.noticed_functions, one.masked_functions, one.target_tokens);
        if let Some(masked) = &one.masked {
            one.masked_sha256 = sha256_hex(masked.as_bytes());
        }
    }

    /// The mask is made again of the original.
    fn follow_from_tree(
        &self,
        found: &mut Compared,
        tree: &BTreeMap<String, String>,
        one: &mut RecubeInstance,
    ) {
        let id = one.head.instance_id.to_string();
        let Some(original) = tree.get(&one.target) else {
            found.wrong(INSTANCES, &id, "its tree does not have the target");
            return;
        };
        let masked = text_of_target(original.as_bytes()).and_then(|text| mask(text, Cut::All));
        let masked = match masked {
            Ok(masked) => masked,
            Err(why) => {
                found.wrong(INSTANCES, &id, &format!("its target cannot be masked: {}", why.reason()));
                return;
            }
        };
        let with_body = || masked.functions.iter().filter(|one| !one.is_trivial);
        let of_kind = |kind| with_body().filter(|one: &&Function| one.docstring == kind).count() as u64;
        one.original_sha256 = sha256_hex(original.as_bytes());
        one.masked_sha256 = sha256_hex(masked.text.as_bytes());
        one.target_lines = original.lines().count() as u64;
        one.target_statements = with_body().map(|one| u64::from(one.statements)).sum();
        one.functions = masked.functions.len() as u64;
        one.masked_functions = with_body().count() as u64;
        one.docstring_none = of_kind(DocstringKind::None);
        one.docstring_line = of_kind(DocstringKind::Line);
        one.docstring_sections = of_kind(DocstringKind::Sections);
        one.docstring_full = of_kind(DocstringKind::Full);
        one.imports_removed = masked.imports.into();
        one.published_leak = published_leak(original).map(str::to_owned);
        let names: BTreeSet<&str> = with_body().map(|one| one.name.as_str()).collect();
        let unknown = one.unnoticed.iter().any(|name| !names.contains(name.as_str()));
        // Functions of one name are in it once.
        let unnoticed = with_body().filter(|function| one.unnoticed.contains(&function.name)).count() as u64;
        let too_few = one.noticed_functions + unnoticed < one.masked_functions;
        if unknown || too_few || one.noticed_functions + one.unnoticed.len() as u64 > one.masked_functions {
            found.wrong(
                INSTANCES,
                &id,
                "`unnoticed` and `noticed_functions` are not all functions with a body",
            );
        }
        if one.masked.is_some() {
            one.masked = Some(masked.text);
        }
        let roots = self.test_roots(one);
        let is_hidden = |path: &String| one.hidden_files.contains(path);
        let tests = tree.keys().filter(|path| is_test_path(path, &roots));
        let bodies = Bodies::of(original);
        let others = tree.iter().filter(|(path, _)| **path != one.target && !is_test_path(path, &roots));
        let copies = others.filter(|(_, text)| bodies.are_in(text)).map(|(path, _)| path);
        for path in tests.chain(copies).filter(|path| !is_hidden(path)) {
            found.wrong(INSTANCES, &id, &format!("`hidden_files` does not have {path}"));
        }
    }

    /// Folders of tests of a repository: of what could be collected.
    fn test_roots(&self, one: &RecubeInstance) -> Vec<String> {
        let rows = self.groups.rows.iter().filter(|((slug, _), row)| {
            slug == one.head.slug.as_str() && row.get("n_cases") != Some(&json!(0))
        });
        test_roots(rows.filter_map(|(_, row)| row.get("test_file").and_then(Value::as_str)))
    }

    /// Every row is about a function of the target, and a group that was chosen.
    fn traces(&self, found: &mut Compared) -> Result<()> {
        let table =
            self.dataset.table("traces", &["instance_id", "group_id", "file", "function", "calls"])?;
        let (ids, groups) = (table.whole_texts("instance_id")?, table.whole_texts("group_id")?);
        let (files, functions) = (table.whole_texts("file")?, table.whole_texts("function")?);
        let calls = table.whole_numbers("calls")?;
        let instances: BTreeMap<&str, &RecubeInstance> =
            self.instances.iter().map(|one| (one.head.instance_id.as_str(), one)).collect();
        let mut traced: BTreeSet<(&str, &str)> = BTreeSet::new();
        for at in 0..table.rows() {
            let (id, group) = (ids[at], groups[at]);
            traced.insert((id, group));
            let Some(one) = instances.get(id) else {
                found.wrong(TRACES, id, "the dataset has no such instance");
                continue;
            };
            if one.target != files[at] {
                found.differs(TRACES, id, "file", (&files[at].into(), &one.target.as_str().into()));
            }
            if !self.cases_of(one).iter().any(|case| case.group_id == group) {
                found.wrong(TRACES, group, &format!("is not a group of {id}"));
            }
            if calls[at] < 1 {
                found.wrong(TRACES, functions[at], "is not called");
            }
        }
        for one in self.instances {
            let id = one.head.instance_id.as_str();
            for case in self.cases_of(one) {
                if !traced.contains(&(id, case.group_id.as_str())) {
                    found.wrong(TRACES, &case.group_id, &format!("calls no function of {id}"));
                }
            }
        }
        Ok(())
    }

    /// What `targets` says of a masked file is what its instance says.
    fn candidates(&self, found: &mut Compared) -> Result<()> {
        let table = self.dataset.table("targets", &[])?;
        let (slugs, files) = (table.whole_texts("slug")?, table.whole_texts("target")?);
        let causes = table.texts("cause")?;
        let mut missing: BTreeMap<(&str, &str), &RecubeInstance> =
            self.instances.iter().map(|one| ((one.head.slug.as_str(), one.target.as_str()), one)).collect();
        for at in 0..table.rows() {
            let instance = missing.remove(&(slugs[at], files[at]));
            let mut expected = json!({ "kept": causes[at].is_none(), "published": instance.is_some() });
            if let Some(one) = instance {
                let Value::Object(row) = value(one)? else { continue };
                for column in COPIED {
                    expected[column] = row.get(column).cloned().unwrap_or_default();
                }
            }
            cells_differ(found, (TARGETS, &table, at), files[at], &expected);
        }
        for ((_, file), _) in missing {
            found.wrong(TARGETS, file, "is an instance, and not in this table");
        }
        Ok(())
    }

    /// The manifest against what a build would write.
    fn summary(&self, found: &mut Compared) -> Result<()> {
        let manifest = &self.dataset.manifest;
        let mut expected = self.groups.counts(&[]);
        for (slug, said) in &manifest.counts.repositories {
            expected.entry(slug.to_string()).or_default().deselected = said.deselected;
        }
        for one in self.instances {
            let counts = expected.entry(one.head.slug.to_string()).or_default();
            counts.published += 1;
            *counts.tiers.entry(one.tier.as_str().to_owned()).or_default() += 1;
        }
        differing(found, "counts.repositories", &value(&manifest.counts.repositories)?, &value(&expected)?);
        let total = counts::total(expected.values());
        differing(found, "counts.total", &value(&manifest.counts.total)?, &value(&total)?);
        let rows = |table: &str| manifest.counts.rows.get(table).copied();
        let judging: usize = self.cases.values().map(Vec::len).sum();
        for (table, expected) in [(INSTANCES, self.instances.len()), ("instance_cases", judging)] {
            differing(found, &format!("counts.rows.{table}"), &value(&rows(table))?, &value(&expected)?);
        }
        compare_subsets(found, manifest, self.instances)?;
        let worst = self.instances.iter().map(|one| one.flake_bound).max_by(f64::total_cmp);
        differing(found, "flake_bound.worst", &value(&manifest.flake_bound.worst)?, &value(&worst)?);
        let contexts = manifest.counts.rows.contains_key("contexts").then(|| "contexts.parquet".to_owned());
        reproducible(found, self.dataset, recube::reproducible().chain(contexts))
    }

    fn card(&self, found: &mut Compared) -> Result<()> {
        if is_older(self.dataset) {
            found.is_not_verified(format!("{}: its text", card::FILE));
            return Ok(());
        }
        let Some(said) = card_text(found, self.dataset)? else { return Ok(()) };
        let expected = card_of(&self.dataset.manifest, self.instances.len());
        lines(found, "text", &said, &expected);
        Ok(())
    }
}

/// Columns that `targets` and `instances` share.
const COPIED: [&str; 11] = [
    "target_lines",
    "target_statements",
    "functions",
    "masked_functions",
    "called_functions",
    "reached_by",
    "caller_files",
    "trace_calls",
    "imports_removed",
    "published_leak",
    "slug",
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::testing::made_up::MadeUp;
    use crate::testing::masked::TARGET;

    struct Bench {
        _folder: tempfile::TempDir,
        directory: PathBuf,
    }

    impl Bench {
        fn new(change: impl Fn(&mut MadeUp)) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let directory = folder.path().join("1");
            let mut made_up = MadeUp::masked(&[12, 5]);
            change(&mut made_up);
            made_up.write(&directory);
            Bench { _folder: folder, directory }
        }

        fn found(&self) -> Vec<(String, String, String)> {
            let dataset = Dataset::open_any(&self.directory).unwrap();
            let found = super::super::compare(&dataset).unwrap();
            found.differences.into_iter().map(|one| (one.file, one.column, one.said)).collect()
        }

        fn replace(&self, file: &str, from: &str, to: &str) {
            let path = self.directory.join(file);
            let text = fs_err::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{file} has {from}");
            fs_err::write(&path, text.replacen(from, to, 1)).unwrap();
        }
    }

    #[test]
    fn a_dataset_as_it_was_written_agrees_with_itself() {
        assert_eq!(Bench::new(|_| {}).found(), []);
    }

    #[test]
    fn a_mask_that_is_not_that_of_the_original_is_named() {
        let bench = Bench::new(|made_up| {
            let target = &mut made_up.repositories[0].recube.as_mut().unwrap().published[0];
            target.masked = target.masked.replace("return 3", "raise NotImplementedError()") + "# more\n";
            target.masked_sha256 = sha256_hex(target.masked.as_bytes());
            target.hidden_files.remove(0);
            target.unnoticed.clear();
        });
        let found = bench.found();
        for (column, said) in [
            ("masked", ""),
            ("masked_sha256", ""),
            ("", "`hidden_files` does not have tests/test_0.py"),
            ("", "`unnoticed` and `noticed_functions` are not all functions with a body"),
        ] {
            let is_there = |one: &(String, String, String)| one.1 == column && one.2.contains(said);
            assert!(found.iter().any(is_there), "{column} {said}: {found:?}");
        }
    }

    #[test]
    fn tables_that_do_not_say_the_same_are_named() {
        let bench = Bench::new(|made_up| {
            let recube = made_up.repositories[0].recube.as_mut().unwrap();
            recube.targets[1].measured.reached_by = 99;
            recube.published[0].cases[0].case_id.push('x');
            recube.published[0].traces[0].1.file = "src/made/other.py".to_owned();
        });
        bench.replace("instances.jsonl", "\"n_external\":", "\"n_external\":1");
        let found = bench.found();
        let has = |file: &str, column: &str| found.iter().any(|one| one.0 == file && one.1 == column);
        for (file, column) in [
            (TARGETS, "reached_by"),
            (JUDGING, ""),
            (TRACES, "file"),
            ("instances.parquet", "n_external"),
            (INSTANCES, "n_external"),
        ] {
            assert!(has(file, column), "{file} {column}: {found:?}");
        }
        assert!(found.iter().all(|one| !one.2.contains(TARGET) || one.0 != JUDGING), "{found:?}");
    }
}
