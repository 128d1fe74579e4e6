//! `labels.toml` of a labelled tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gistmill::record::verdict::{Cause, Dimension};
use serde::Deserialize;
use toml::{Table, Value};

/// The verdict of a group that nothing drops.
pub const KEPT: &str = "kept";
/// The table of rows that stand for whole files.
const FILES: &str = "files";

/// Groups that leave something behind, and those that would find it.
const NEIGHBOURS: [&str; 9] = [
    "::test_changes_the_state_of_its_module",
    "::test_sees_no_changed_state_of_its_module",
    "::test_fills_a_shelf",
    "::test_gets_an_empty_shelf",
    "::test_changes_the_environment",
    "::test_sees_no_changed_environment",
    "::test_leaves_a_file_in_the_checkout",
    "::test_finds_nothing_left_in_the_checkout",
    "::TestInOrder::",
];

/// What a group must be found to be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Label {
    /// The expected verdict, then those that the machine may make of it.
    #[serde(skip)]
    verdicts: Vec<String>,
    /// What the evidence says, among other things.
    pub evidence: Vec<String>,
    /// Parameters of its cases, in pytest's order; numbers `below` this one follow.
    cases: Vec<String>,
    below: usize,
    /// Calls by `file::function`, as a person counts them.
    pub calls: BTreeMap<String, u64>,
    /// What cases print, by what their names add to that of the group.
    pub stdout: BTreeMap<String, String>,
}

impl Label {
    fn read(value: &Value) -> Self {
        let one = |value: &Value| value.as_str().expect("a verdict is text or a list of texts").to_owned();
        let verdicts = |value: &Value| match value {
            Value::Array(values) => values.iter().map(one).collect(),
            value => vec![one(value)],
        };
        let (verdicts, more) = match value {
            Value::Table(table) => {
                let mut table = table.clone();
                let verdict = table.remove("verdict").map_or(vec![KEPT.to_owned()], |one| verdicts(&one));
                (verdict, table.try_into().expect("a label has known keys"))
            }
            value => (verdicts(value), Label::default()),
        };
        assert!(!verdicts.is_empty(), "a label is empty");
        for verdict in &verdicts {
            assert!(verdict == KEPT || Cause::try_from(verdict.clone()).is_ok(), "no verdict: {verdict}");
        }
        Label { verdicts, ..more }
    }

    /// What is expected where nothing stands in the way.
    pub fn expected(&self) -> &str {
        &self.verdicts[0]
    }

    pub fn is_kept(&self) -> bool {
        self.expected() == KEPT
    }

    /// The cases of the group; a file that never became one has none.
    pub fn case_ids(&self, group: &str) -> Vec<String> {
        let numbers = (0..self.below).map(|number| number.to_string());
        let named = self.cases.iter().cloned().chain(numbers).map(|one| format!("{group}[{one}]"));
        let named: Vec<String> = named.collect();
        let is_one = named.is_empty() && group.contains("::");
        if is_one { vec![group.to_owned()] } else { named }
    }

    /// Whether the group can be run at all.
    pub fn is_attempted(&self, group: &str) -> bool {
        self.expected() != "unsupported-item" && !self.case_ids(group).is_empty()
    }

    /// Whether it is expected to depend on who else wants the processor.
    pub fn is_about_load(&self) -> bool {
        self.expected() == Cause::DependsOn(Dimension::Load).to_string()
    }

    fn allows(&self, verdict: &str, quiet: bool) -> bool {
        if quiet && self.is_about_load() {
            self.expected() == verdict
        } else {
            // What depends on the load may seem to depend on anything where the load comes and goes.
            self.verdicts.iter().any(|one| one == verdict)
                || self.is_about_load() && verdict.starts_with("depends-on-")
        }
    }
}

/// Labels by group.
#[derive(Debug)]
pub struct Labels(BTreeMap<String, Label>);

impl Labels {
    pub fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(tree(name).join("labels.toml")).expect("the labels can be read");
        let tables: Table = text.parse().expect("the labels are TOML");
        let mut labels = BTreeMap::new();
        for (file, table) in &tables {
            for (name, value) in table.as_table().expect("labels stand in tables") {
                let group = if file == FILES { name.clone() } else { format!("{file}::{name}") };
                assert!(labels.insert(group, Label::read(value)).is_none(), "{file}, {name}: labelled twice");
            }
        }
        Labels(labels)
    }

    /// Every n-th label of each file, from the first, and [`NEIGHBOURS`].
    pub fn part(mut self, n: usize) -> Self {
        let (mut file, mut number) = (String::new(), 0);
        self.0.retain(|group, _| {
            let own = group.split("::").next().unwrap_or(group);
            if own != file {
                (file, number) = (own.to_owned(), 0);
            }
            number += 1;
            (number - 1) % n == 0 || NEIGHBOURS.iter().any(|one| group.contains(one))
        });
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Label)> {
        self.0.iter().map(|(group, label)| (group.as_str(), label))
    }

    /// One line for each group whose verdict is not what it is labelled, or that is not labelled, or not there.
    pub fn disagreements(&self, found: &BTreeMap<String, String>, quiet: bool) -> Vec<String> {
        let groups: BTreeSet<&String> = self.0.keys().chain(found.keys()).collect();
        groups
            .into_iter()
            .filter_map(|group| match (self.0.get(group), found.get(group)) {
                (Some(label), Some(verdict)) if label.allows(verdict, quiet) => None,
                (Some(label), Some(verdict)) => {
                    Some(format!("{group}: {verdict}, labelled {:?}", label.verdicts))
                }
                (None, verdict) => Some(format!("{group}: {verdict:?}, not labelled")),
                (label, None) => Some(format!("{group}: no such group, labelled {label:?}")),
            })
            .collect()
    }

    /// What the machine made of the groups whose label leaves it a choice, one line each.
    pub fn chosen_among_alternatives(&self, found: &BTreeMap<String, String>) -> String {
        let chosen = self.0.iter().filter(|(_, label)| label.verdicts.len() > 1);
        let lines =
            chosen.map(|(group, label)| format!("  {group}: {:?} of {:?}", found.get(group), label.verdicts));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A labelled tree.
pub fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(name)
}
